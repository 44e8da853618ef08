/**
 * The form beside the picture: sizes have a slider and a field that follow each
 * other, the rest are lists.
 *
 * @module controls
 */

/** Tiles that kernels of the library have. */
const TILES = ["64x64", "64x128", "128x64", "128x128", "128x192", "128x256", "256x128", "256x192"];
const BLOCK_KS = ["32", "64", "128"];

/** Names on the command line, whether they have a size, and what they mean. */
const ORDERS = [
  ["row", false, "row-major"],
  ["col", false, "column-major"],
  ["grouped", true, "grouped: bands of rows"],
  ["groupedn", true, "grouped: bands of columns"],
  ["serpentine", true, "serpentine: bands of rows, to and fro"],
  ["serpentinen", true, "serpentine: bands of columns"],
  ["morton", false, "Morton (Z-order)"],
  ["hilbert", false, "Hilbert curve"],
];

class Controls {
  #gpus;
  #changed;

  /**
   * @param {{name, sms}[]} gpus  that the model knows
   * @param {object} start  settings, as `#apply` takes them
   * @param {() => void} changed  called after each change
   */
  constructor(gpus, start, changed) {
    this.#gpus = gpus;
    this.#changed = changed;
    const list = (id, entries) => byId(id).append(...entries.map(([value, text]) => html("option", { value }, text)));
    list("tile", TILES.map((tile) => [tile, tile.replace("x", "×")]));
    list("block-k", BLOCK_KS.map((step) => [step, step]));
    list("order", ORDERS.map(([name, , text]) => [name, text]));
    list("gpu", gpus.map(({ name, sms }, index) => [index, `${name.toUpperCase()}, ${sms} SMs`]));

    for (const id of ["m", "n", "k", "group", "sms"]) this.#link(id);
    for (const id of ["tile", "block-k", "element", "order"]) {
      byId(id).addEventListener("change", () => this.#settle());
    }
    byId("gpu").addEventListener("change", () => {
      this.#number("sms", this.#gpus[byId("gpu").value].sms);
      this.#settle();
    });
    byId("example").addEventListener("click", () => {
      // 9×9 tiles, 9 k-blocks deep, whatever their size.
      this.#apply({ m: 9 * 128, n: 9 * 128, k: 9 * 64, tile: "128x128", blockK: 64, order: "grouped:3", sms: 9 });
      this.#settle();
    });
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    this.#apply(start);
  }

  /** A slider and a field for one number. */
  #link(id) {
    const [field, slider] = [byId(id), byId(`${id}-slider`)];
    slider.addEventListener("input", () => {
      field.value = slider.value;
      this.#settle();
    });
    field.addEventListener("input", () => {
      if (!field.checkValidity() || field.value === "") return;
      slider.value = field.value;
      this.#settle();
    });
  }

  #number(id, value) {
    byId(id).value = value;
    byId(`${id}-slider`).value = value;
  }

  /** Chooses in a list; a value that it does not have yet is added. */
  #choose(id, value) {
    const list = byId(id);
    if (![...list.options].some((option) => option.value === String(value))) {
      list.append(html("option", { value }, String(value).replace("x", "×")));
    }
    list.value = value;
  }

  /** Sets what is named: `{m, n, k, tile, blockK, elementBytes, order, gpu, sms}`. */
  #apply({ m, n, k, tile, blockK, elementBytes, order, gpu, sms }) {
    const numbers = { m, n, k, sms };
    if (gpu !== undefined) {
      this.#choose("gpu", gpu);
      numbers.sms ??= this.#gpus[gpu].sms;
    }
    if (order !== undefined) {
      const [name, size] = order.split(":");
      this.#choose("order", name);
      numbers.group = size;
    }
    for (const [id, value] of Object.entries(numbers)) {
      if (value !== undefined) this.#number(id, value);
    }
    for (const [id, value] of Object.entries({ tile, "block-k": blockK, element: elementBytes })) {
      if (value !== undefined) this.#choose(id, value);
    }
    this.#enable();
  }

  #settle() {
    this.#enable();
    this.#changed();
  }

  /** Only some orders have groups. */
  #enable() {
    const sized = ORDERS.find(([name]) => name === byId("order").value)[1];
    for (const id of ["group", "group-slider"]) byId(id).disabled = !sized;
    byId("group").closest(".size").classList.toggle("off", !sized);
    byId("group-hint").textContent = sized ? this.#squareGroup() : "";
  }

  /** The group that makes a wave square, in elements: docs/tile-order.md derives it. */
  #squareGroup() {
    const { blockM, blockN, order, sms } = this.query();
    const alongN = order.startsWith("groupedn") || order.startsWith("serpentinen");
    const [across, down] = alongN ? [blockM, blockN] : [blockN, blockM];
    const [names, lines] = alongN ? ["BLOCK_M / BLOCK_N", "columns"] : ["BLOCK_N / BLOCK_M", "rows"];
    return `A wave is square in elements at √(SMs · ${names}) ≈ ${digits(Math.sqrt((sms * across) / down))} ${lines}.`;
  }

  /** What is asked now, as {@link loadModel} takes it. */
  query() {
    const number = (id) => Number(byId(id).value);
    const [blockM, blockN] = byId("tile").value.split("x").map(Number);
    const [name, sized] = ORDERS.find(([order]) => order === byId("order").value);
    return {
      m: number("m"),
      n: number("n"),
      k: number("k"),
      blockM,
      blockN,
      blockK: number("block-k"),
      elementBytes: number("element"),
      order: sized ? `${name}:${number("group")}` : name,
      gpu: number("gpu"),
      sms: number("sms"),
    };
  }
}
