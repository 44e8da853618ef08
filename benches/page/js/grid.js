/**
 * The picture of Triton's matmul tutorial ("L2 Cache Optimizations"): C in tiles, A to
 * its left and B above it, and what of both the current wave loads.
 *
 * On a canvas, because a product has up to hundreds of thousands of tiles.
 *
 * @module grid
 */

/** Waves are told apart by this many colours, in turns. */
const WAVE_COLOURS = 6;

/** Share of the picture's width that A gets, and of its height that B gets. */
const OPERAND_SHARE = 0.17;

/** Tallest that the picture gets, in pixels; and in parts of the window, where it stays in sight. */
const TALLEST = 560;
const SHARE_OF_WINDOW = 0.5;

/** Narrowest cell that is told apart from its neighbour by a line. */
const LINED_CELL = 5;

class GridPicture {
  #canvas;
  #scene = null;
  #layout = null;

  constructor(canvas) {
    this.#canvas = canvas;
    onWidth(canvas.parentElement, () => this.draw());
    canvas.addEventListener("pointermove", (event) => {
      canvas.title = this.#describe(event.offsetX, event.offsetY);
    });
  }

  /**
   * What to draw from now on.
   *
   * @param {{rows, cols, depth}} grid  C in tiles, and k-blocks
   * @param {number} aspect  width of a tile over its height, in elements
   * @param {Uint32Array} tiles  row and column of each, as they run
   * @param {number} sms  tiles of a wave
   * @param {number} wave  the current one, from 0
   */
  show(grid, aspect, tiles, sms, wave) {
    this.#scene = { grid, aspect, tiles, sms, wave };
    this.draw();
  }

  /** Draws for the canvas's present width and the present theme. */
  draw() {
    if (!this.#scene) return;
    const { grid, tiles, sms, wave } = this.#scene;
    this.#layout = this.#place();
    const { a, b, c, cell } = this.#layout;
    const context = this.#canvas.getContext("2d");
    const paint = (x, y, width, height, fill) => {
      context.fillStyle = fill;
      context.fillRect(x, y, width, height);
    };

    for (const { x, y, width, height } of [a, b, c]) paint(x, y, width, height, colour("later"));
    const past = Array.from({ length: WAVE_COLOURS }, (_, index) => colour(`wave-${index}`));
    const now = colour("accent");
    const touched = { rows: new Set(), cols: new Set() };
    const done = Math.min((wave + 1) * sms, tiles.length / 2);
    for (let id = 0; id < done; id += 1) {
      const [row, col] = [tiles[2 * id], tiles[2 * id + 1]];
      const itsWave = Math.floor(id / sms);
      if (itsWave === wave) {
        touched.rows.add(row);
        touched.cols.add(col);
      }
      const fill = itsWave === wave ? now : past[itsWave % WAVE_COLOURS];
      paint(c.x + col * cell.width, c.y + row * cell.height, cell.width, cell.height, fill);
    }
    const [colourA, colourB] = [colour("a"), colour("b")];
    for (const row of touched.rows) paint(a.x, a.y + row * cell.height, a.width, cell.height, colourA);
    for (const col of touched.cols) paint(b.x + col * cell.width, b.y, cell.width, b.height, colourB);

    // A: rows of tiles down, k-blocks across. B: the other way round.
    this.#lines(c, cell.width, cell.height);
    this.#lines(a, a.width / grid.depth, cell.height);
    this.#lines(b, cell.width, b.height / grid.depth);
    this.#numbers();
    this.#names();
  }

  /** Sizes the canvas, and places A, B and C on it: a tile has the shape of its elements. */
  #place() {
    const { grid, aspect } = this.#scene;
    const ratio = window.devicePixelRatio || 1;
    const width = this.#canvas.parentElement.clientWidth;
    const tallest = Math.min(TALLEST, window.innerHeight * SHARE_OF_WINDOW);
    const margin = 22;
    const operand = Math.max(40, Math.round(Math.min(width, tallest) * OPERAND_SHARE));
    const room = { width: width - operand - margin, height: tallest - operand - margin };
    const fitting = Math.min(room.height / grid.rows, room.width / grid.cols / aspect, 44);
    // Whole pixels, where that costs little, have no seams.
    const whole = (size) => (size > 8 ? Math.floor(size) : size);
    const cell = { width: whole(fitting * aspect), height: whole(fitting) };
    const c = {
      x: operand + margin,
      y: operand + margin,
      width: cell.width * grid.cols,
      height: cell.height * grid.rows,
    };
    const height = c.y + c.height;
    this.#canvas.style.height = `${height}px`;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    this.#canvas.getContext("2d").scale(ratio, ratio);
    return {
      cell,
      c,
      a: { x: 0, y: c.y, width: operand, height: c.height },
      b: { x: c.x, y: 0, width: c.width, height: operand },
    };
  }

  /** Lines between cells, where these are wide enough to be told apart. */
  #lines(box, stepX, stepY) {
    const context = this.#canvas.getContext("2d");
    context.fillStyle = colour("page");
    if (stepX >= LINED_CELL) {
      for (let x = stepX; x < box.width - 1; x += stepX) context.fillRect(box.x + x - 1, box.y, 1, box.height);
    }
    if (stepY >= LINED_CELL) {
      for (let y = stepY; y < box.height - 1; y += stepY) context.fillRect(box.x, box.y + y - 1, box.width, 1);
    }
  }

  /** The number of each tile in the order, where it fits. */
  #numbers() {
    const { tiles, sms, wave } = this.#scene;
    const { c, cell } = this.#layout;
    const last = String(tiles.length / 2 - 1);
    if (cell.width < 7 * last.length + 6 || cell.height < 16) return;
    const context = this.#canvas.getContext("2d");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    const [onCurrent, onOther] = [colour("on-accent"), colour("text")];
    for (let id = 0; 2 * id < tiles.length; id += 1) {
      context.fillStyle = Math.floor(id / sms) === wave ? onCurrent : onOther;
      const x = c.x + (tiles[2 * id + 1] + 0.5) * cell.width;
      const y = c.y + (tiles[2 * id] + 0.5) * cell.height;
      context.fillText(String(id), x - 0.5, y + 4);
    }
  }

  /** A, B and C by name. */
  #names() {
    const { a, b, c } = this.#layout;
    const context = this.#canvas.getContext("2d");
    context.fillStyle = colour("soft");
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText("A", a.x, a.y - 6);
    context.textAlign = "right";
    context.fillText("B", b.x - 8, b.y + 10);
    context.fillText("C", c.x - 8, c.y - 6);
  }

  /** The tile under the pointer, in words. */
  #describe(x, y) {
    const { grid, tiles, sms } = this.#scene;
    const { c, cell } = this.#layout;
    const [row, col] = [Math.floor((y - c.y) / cell.height), Math.floor((x - c.x) / cell.width)];
    if (row < 0 || col < 0 || row >= grid.rows || col >= grid.cols) return "";
    for (let id = 0; 2 * id < tiles.length; id += 1) {
      if (tiles[2 * id] === row && tiles[2 * id + 1] === col) {
        return `Tile of row ${row} and column ${col}: number ${id}, in wave ${Math.floor(id / sms) + 1}`;
      }
    }
    return "";
  }
}
