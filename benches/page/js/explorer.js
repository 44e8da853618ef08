/**
 * The order explorer: the form, the picture and the figures, kept in step.
 *
 * Tiles and waves are computed at once, what the model of L2 says follows when it is
 * there; until then the section is `aria-busy`.
 *
 * @module explorer
 */

/** Why the model answered nothing. */
const TOO_LARGE =
  "This page draws at most 262 144 tiles and models 4 194 304 blocks of A and B: take larger tiles or a smaller product.";

function startExplorer(model, predictor, { gpus, limits, start }) {
  const picture = new GridPicture(byId("grid"));
  let shown = null;

  const player = new Player(() => showWave());
  const controls = new Controls(gpus, start, () => update());
  byId("grid-legend").append(
    swatch("accent", "tiles of this wave"),
    swatch("wave-0", "earlier waves"),
    swatch("later", "not yet run"),
    swatch("a", "blocks of A that it loads"),
    swatch("b", "blocks of B that it loads"),
  );
  update();

  function update() {
    const query = controls.query();
    const tiles = model.tiles(query);
    byId("refused").textContent = tiles ? "" : TOO_LARGE;
    if (!tiles) return;
    shown = {
      query,
      tiles,
      grid: model.grid(query),
      waves: model.waves(query),
      rowMajor: model.waves({ ...query, order: "row" }),
    };
    player.waves(shown.waves.length);
    showWave();
    byId("explorer").setAttribute("aria-busy", "true");
    predictor.ask(query);
  }

  function showWave() {
    if (!shown) return;
    const { query, tiles, grid, waves, rowMajor } = shown;
    const at = Math.min(player.wave, waves.length - 1);
    const wave = waves[at];
    picture.show(grid, query.blockN / query.blockM, tiles, query.sms, at);
    byId("wave-text").textContent =
      `${grid.rows}×${grid.cols} tiles of ${query.blockM}×${query.blockN}, ${query.order}. Wave ${at + 1} computes ` +
      `${count(wave.tiles)} tiles and loads ${count(wave.a)} blocks of A and ${count(wave.b)} of B.`;
    const total = (list) => list.reduce((sum, each) => sum + each.shared, 0);
    byId("wave-figures").replaceChildren(
      figure("blocks_uncached", "No cache at all", wave.uncached, count(wave.uncached), "blocks, this wave"),
      figure("blocks_row_major", "Row-major", rowMajor[at].shared, count(rowMajor[at].shared), "blocks, this wave"),
      figure("blocks", "This order", wave.shared, count(wave.shared), "blocks, this wave"),
      figure("blocks_total", "All waves", total(waves), count(total(waves)), against(total(waves), total(rowMajor))),
    );
  }

  return {
    redraw: () => picture.draw(),
    /** Takes an answer of the predictor. */
    answer({ query, figures, rowMajor }) {
      if (JSON.stringify(query) !== JSON.stringify(shown.query)) return;
      showPrediction(figures, rowMajor, limits);
      byId("explorer").setAttribute("aria-busy", "false");
    },
  };
}

/** How many times row-major's figure. */
function against(value, rowMajor) {
  return rowMajor > 0 ? `${digits(value / rowMajor)} × row-major` : "";
}

/** One figure: its exact value stands in `data-value`. */
function figure(name, title, value, text, note = "") {
  return html(
    "div",
    { class: "figure", "data-figure": name, "data-value": String(value) },
    html("span", { class: "name" }, title),
    html("span", { class: "value" }, text),
    html("span", { class: "note" }, note),
  );
}

/** What the model says of the product. */
function showPrediction(figures, rowMajor, limits) {
  const rows = [
    ["l2_read_bytes", "Read from L2", bytes],
    ["l2_hit_rate", "L2 hit rate", percent],
    ["dram_read_bytes", "Read from DRAM", bytes],
    ["dram_write_bytes", "Written to DRAM", bytes],
    ["seconds", "Time, at least", seconds],
  ];
  const bound = figures.bound_by;
  byId("model-figures").replaceChildren(
    ...rows.map(([name, title, text]) => {
      const isShare = name === "l2_hit_rate";
      const note = isShare ? `row-major: ${percent(rowMajor[name])}` : against(figures[name], rowMajor[name]);
      return figure(name, title, figures[name], text(figures[name]), note);
    }),
    figure("bound_by", "What that time is for", bound, limits[bound], `row-major: ${limits[rowMajor.bound_by]}`),
  );
}
