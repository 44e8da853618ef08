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

class GridPicture {
  #canvas;
  #scene = null;

  constructor(canvas) {
    this.#canvas = canvas;
    onWidth(canvas.parentElement, () => this.draw());
  }

  /**
   * What to draw from now on.
   *
   * @param {{rows, cols, depth}} grid  C in tiles, and steps along K
   * @param {Uint32Array} tiles  row and column of each, as they run
   * @param {number} sms  tiles of a wave
   * @param {number} wave  the current one, from 0
   */
  show(grid, tiles, sms, wave) {
    this.#scene = { grid, tiles, sms, wave };
    this.draw();
  }

  /** Draws for the canvas's present width and the present theme. */
  draw() {
    if (!this.#scene) return;
    const { grid, tiles, sms, wave } = this.#scene;
    const layout = this.#layout(grid);
    const context = this.#canvas.getContext("2d");
    const paint = (x, y, width, height, fill) => {
      context.fillStyle = fill;
      context.fillRect(x, y, width, height);
    };
    const { c, a, b, cell } = layout;

    paint(c.x, c.y, c.width, c.height, colour("later"));
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
      paint(c.x + col * cell, c.y + row * cell, cell, cell, fill);
    }
    this.#gaps(context, c, cell);
    this.#ids(context, layout);

    // A: rows of tiles down, steps along K across. B: the other way round.
    paint(a.x, a.y, a.width, a.height, colour("later"));
    const [colourA, colourB] = [colour("a"), colour("b")];
    for (const row of touched.rows) paint(a.x, a.y + row * cell, a.width, cell, colourA);
    this.#gaps(context, a, a.width / grid.depth, cell);
    paint(b.x, b.y, b.width, b.height, colour("later"));
    for (const col of touched.cols) paint(b.x + col * cell, b.y, cell, b.height, colourB);
    this.#gaps(context, b, cell, b.height / grid.depth);

    context.fillStyle = colour("soft");
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText("A", a.x, a.y - 6);
    context.textAlign = "right";
    context.fillText("B", b.x - 8, b.y + 10);
    context.fillText("C", c.x - 8, c.y - 6);
  }

  /** Sizes the canvas, and places A, B and C on it. */
  #layout({ rows, cols }) {
    const ratio = window.devicePixelRatio || 1;
    const width = this.#canvas.parentElement.clientWidth;
    const side = Math.min(width, 560);
    const margin = 22;
    const operand = Math.max(40, Math.round(side * OPERAND_SHARE));
    const room = { width: width - operand - margin, height: Math.max(side, 300) - operand - margin };
    const fitting = Math.min(room.width / cols, room.height / rows, 44);
    // Whole pixels, where that costs little, have no seams.
    const cell = fitting > 8 ? Math.floor(fitting) : fitting;
    const c = { x: operand + margin, y: operand + margin, width: cell * cols, height: cell * rows };
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

  /** Lines between cells, where they are wide enough to be told apart. */
  #gaps(context, box, stepX, stepY = stepX) {
    context.fillStyle = colour("page");
    if (stepX >= 5) {
      for (let x = stepX; x < box.width - 1; x += stepX) context.fillRect(box.x + x - 1, box.y, 1, box.height);
    }
    if (stepY >= 5) {
      for (let y = stepY; y < box.height - 1; y += stepY) context.fillRect(box.x, box.y + y - 1, box.width, 1);
    }
  }

  /** The number of each tile in the order, where it fits. */
  #ids(context, { c, cell }) {
    const { tiles, sms, wave } = this.#scene;
    const last = String(tiles.length / 2 - 1);
    if (cell < 7 * last.length + 6) return;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    const [onCurrent, onOther] = [colour("on-accent"), colour("soft")];
    for (let id = 0; 2 * id < tiles.length; id += 1) {
      context.fillStyle = Math.floor(id / sms) === wave ? onCurrent : onOther;
      const [x, y] = [c.x + (tiles[2 * id + 1] + 0.5) * cell, c.y + (tiles[2 * id] + 0.5) * cell + 4];
      context.fillText(String(id), x - 0.5, y);
    }
  }
}
