/**
 * The order by rank: what each of several GPUs multiplies and copies when, by the programs of
 * `tilewise-parallel` and their estimate, and the rows of C by the time at which a rank computes
 * them.
 *
 * @module ranks
 */

/** Heights of a rank's products and of its copies, and the room below them. */
const PRODUCT_HEIGHT = 20;
const COPY_HEIGHT = 10;
const RANK_GAP = 8;

/** Widest and tallest that the map of C gets. */
const MAP_WIDTH = 520;
const MAP_HEIGHT = 260;

/** Least room for a number in a bar, and for a time in a row of the map. */
const NUMBER_WIDTH = 14;
const TIME_HEIGHT = 16;

/** What the layer cannot be. */
const LAYER_REFUSED = "M, N and K are from 1 to 1 048 576.";

/** The place of an operation in the model's list, and its name. */
const OPERATIONS = ["all-gather + GEMM", "GEMM + reduce-scatter", "GEMM + all-reduce"];

function startRanks(model) {
  const list = (id, entries) => byId(id).append(...entries.map(([value, text]) => html("option", { value }, text)));
  list("operation", OPERATIONS.map((name, place) => [place, name]));
  list("rank-count", [2, 4, 8].map((ranks) => [ranks, String(ranks)]));
  list("chunks", [[0, "chosen"], ...[1, 2, 3, 4, 6, 8].map((chunks) => [chunks, String(chunks)])]);
  byId("rank-count").value = 4;
  for (const id of ["operation", "layer-m", "layer-n", "layer-k", "rank-count", "chunks"]) {
    byId(id).addEventListener("change", update);
  }
  byId("map-rank").addEventListener("change", () => drawMap());
  byId("rank-controls").addEventListener("submit", (event) => event.preventDefault());
  let shown = null;
  update();

  function update() {
    const number = (id) => Number(byId(id).value);
    const fields = ["layer-m", "layer-n", "layer-k"].map(byId);
    const isValid = fields.every((field) => field.value !== "" && field.checkValidity());
    const query = {
      operation: number("operation"),
      m: number("layer-m"),
      n: number("layer-n"),
      k: number("layer-k"),
      ranks: number("rank-count"),
      chunks: number("chunks"),
    };
    const order = isValid ? model.ranks(query) : null;
    byId("ranks-refused").textContent = order ? "" : LAYER_REFUSED;
    if (!order) return;
    shown = { query, order };
    byId("rank-figures").replaceChildren(
      figure("rank_seconds", "Run, estimated", order.seconds, seconds(order.seconds), `${digits(order.seconds / order.alone)} × the product`),
      figure("rank_alone", "Product alone", order.alone, seconds(order.alone), "of one rank, at 670 TFLOP/s"),
      figure("rank_chunks", "Chunks", order.chunks, String(order.chunks), query.chunks === 0 ? "chosen by the estimate" : "at most, as asked"),
    );
    byId("rank-times").replaceChildren(rankTimes(query, order));
    const chosen = Math.min(Number(byId("map-rank").value || 0), query.ranks - 1);
    byId("map-rank").replaceChildren(
      ...Array.from({ length: query.ranks }, (_, rank) => html("option", { value: rank }, `rank ${rank}`)),
    );
    byId("map-rank").value = chosen;
    drawMap();
  }

  function drawMap() {
    const rank = Number(byId("map-rank").value);
    byId("rank-map").replaceChildren(rankMap(shown.query, shown.order, rank));
  }
}

/** From when to when, of a step. */
function during({ begin, end }) {
  return `${digits(begin * 1e3)} to ${digits(end * 1e3)}${NBSP}ms`;
}

/** Rows of C, as people count them: from 0, both ends named. */
function rowsName({ first, last }) {
  return `rows ${count(first)} to ${count(last - 1)}`;
}

/** The products of each rank over time, and below them its copies. */
function rankTimes({ operation, ranks }, { seconds: total, steps }) {
  const legend = Array.from({ length: ranks }, (_, rank) => swatch(`series-${rank % SERIES_COLOURS}`, `rows of rank ${rank}`));
  return chart(`${OPERATIONS[operation]}: products, and copies below them, estimated`, (width) => {
    const [left, right] = [52, width - 10];
    const at = (time) => left + (time / total) * (right - left);
    const rankHeight = PRODUCT_HEIGHT + COPY_HEIGHT + 1 + RANK_GAP;
    const bottom = ranks * rankHeight;
    const content = [];
    for (const tick of linearTicks(total)) {
      content.push(svg("line", { class: "grid", x1: at(tick), x2: at(tick), y1: 0, y2: bottom }));
      // The last label would leave the chart.
      const anchor = at(tick) > right - 24 ? "end" : "middle";
      content.push(svg("text", { x: at(tick), y: bottom + 16, "text-anchor": anchor }, digits(tick * 1e3, 2)));
    }
    content.push(svg("text", { x: right, y: bottom + 34, "text-anchor": "end" }, "milliseconds, estimated"));
    for (let rank = 0; rank < ranks; rank += 1) {
      content.push(svg("text", { x: 0, y: rank * rankHeight + 15 }, `rank ${rank}`));
    }
    for (const step of steps) {
      const { rank, isCopy, owner, begin, end } = step;
      const y = rank * rankHeight + (isCopy ? PRODUCT_HEIGHT + 1 : 0);
      const place = { x: at(begin), y, width: Math.max(0.5, at(end) - at(begin)), height: isCopy ? COPY_HEIGHT : PRODUCT_HEIGHT };
      const what = isCopy ? `a copy of rows of rank ${owner}` : `${rowsName(step)} of C, with rows of rank ${owner}`;
      const text = `rank ${rank}, ${during(step)}: ${what}`;
      const kind = isCopy ? "step copy" : "step";
      content.push(svg("rect", { class: kind, ...place, fill: seriesColour(owner) }, svg("title", {}, text)));
      if (!isCopy && place.width >= NUMBER_WIDTH) {
        const middle = place.x + place.width / 2;
        content.push(svg("text", { class: "on-mark", x: middle, y: y + 14, "text-anchor": "middle" }, String(owner)));
      }
    }
    return { width, height: bottom + 40, content };
  }, legend);
}

/** The rows of C, each chunk in the colour of the time at which `rank` computes it. */
function rankMap({ operation, m, n, ranks }, { seconds: total, steps }, rank) {
  const products = steps.filter((step) => step.rank === rank && !step.isCopy);
  // Earlier is stronger.
  const shade = (begin) => `color-mix(in oklab, var(--accent) ${Math.round(90 - 75 * (begin / total))}%, var(--page))`;
  const isGather = operation === 0;
  const cols = isGather ? Math.floor(n / ranks) : n;
  const title = isGather
    ? `C of rank ${rank}, ${m}×${cols}, by the time at which its rows are computed`
    : `C, ${m}×${cols}, by the time at which rank ${rank} adds its product to the rows`;
  return chart(title, (there) => {
    const width = Math.min(there, MAP_WIDTH);
    const [left, right] = [64, width - 10];
    const at = (row) => (row / m) * MAP_HEIGHT;
    const content = [];
    for (const step of products) {
      const place = { x: left, y: at(step.first), width: right - left, height: Math.max(0.5, at(step.last) - at(step.first)) };
      const text = `${rowsName(step)}: ${during(step)}`;
      const mark = svg("rect", { class: "chunk", ...place }, svg("title", {}, text));
      mark.style.setProperty("fill", shade(step.begin));
      content.push(mark);
      if (place.height < TIME_HEIGHT) continue;
      content.push(
        svg("text", { x: left - 6, y: place.y + 12, "text-anchor": "end" }, count(step.first)),
        svg("text", { class: step.begin / total < 0.5 ? "on-mark" : "on-page", x: left + 8, y: place.y + 13 }, during(step)),
      );
    }
    return { width, height: MAP_HEIGHT + 6, content };
  });
}
