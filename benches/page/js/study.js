/**
 * The study: what the model predicts against what was measured, what each order costs
 * on each product, what the chooser loses, and how far from the roofs all that is.
 *
 * A row is `StudyRow` of `benches/src/study/row.rs`; what was not measured is null.
 *
 * @module study
 */
function showStudy({ study: rows, regrets }) {
  const machines = new Set(rows.map((row) => [row.device, `driver ${row.driver}`, row.date].filter(Boolean).join(", ")));
  byId("study-machine").textContent = `Measured on ${[...machines].join("; ")}.`;
  byId("study-content").append(
    ...[predictionCharts(rows), orderCharts(rows), regretTables(regrets), roofline(rows)].filter(Boolean),
  );
  byId("study").hidden = false;
}

const isNumber = (value) => typeof value === "number";

/** The order's family: `grouped:8` is of `grouped`. */
const family = (row) => row.order.split(":")[0];

/** Product, kernel and all else that rows of one comparison share. */
function problemName(row) {
  const cluster = row.cluster ? ` cluster ${row.cluster}` : "";
  return `${shapeName(row)} ${row.dtype} ${row.layout}, tiles ${row.block_m}×${row.block_n}${cluster}, ${row.schedule}`;
}

/** Distinct values, in their first order. */
const distinct = (values) => [...new Set(values)];

/** Rows by a key, in the keys' first order. */
function groupBy(rows, key) {
  const groups = new Map();
  for (const row of rows) {
    const name = key(row);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return groups;
}

/** The middle value, between two the mean. */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** What is predicted and measured both: the column, its name, and how it reads. */
const QUANTITIES = [
  ["dram_read_bytes", "Bytes read from DRAM", bytes, byteTick],
  ["dram_write_bytes", "Bytes written to DRAM", bytes, byteTick],
  ["l2_read_bytes", "Bytes read from L2", bytes, byteTick],
  ["l2_hit_rate", "L2 hit rate", percent, percent],
  ["l2_fabric_bytes", "Bytes between L2’s partitions", bytes, byteTick],
];

/** Predicted against measured, a point a row, for the quantity that is chosen. */
function predictionCharts(rows) {
  const there = QUANTITIES.filter(([key]) => rows.some((row) => row[key] > 0 && row[`model_${key}`] > 0));
  if (there.length === 0) return null;
  const names = there.map(([, name]) => name);
  return chosen("Predicted against measured", "Quantity", names, (name) => {
    const quantity = there.find(([, its]) => its === name);
    return predictionChart(rows.filter((row) => row[quantity[0]] > 0 && row[`model_${quantity[0]}`] > 0), quantity);
  });
}

function predictionChart(rows, [key, name, text, tick]) {
  const measured = (row) => row[key];
  const predicted = (row) => row[`model_${key}`];
  const families = distinct(rows.map(family));
  const values = rows.flatMap((row) => [measured(row), predicted(row)]);
  const ends = [Math.min(...values), Math.max(...values)];
  const line = (factor, its) => ({ points: ends.map((value) => [value, value * factor]), text: its });
  const errors = (fitted) =>
    rows.filter((row) => row.fitted === fitted).map((row) => Math.abs(predicted(row) / measured(row) - 1));
  const summary = (of, list) =>
    list.length === 0
      ? ""
      : `${of}: ${list.length} rows, median error ${percent(median(list))}, ` +
        `${percent(list.filter((error) => error <= 0.25).length / list.length)} of them within 25${NBSP}%. `;
  return [
    scatter(name, {
      x: { label: "measured", log: true, text: tick },
      y: { label: "predicted", log: true, text: tick },
      points: rows.map((row) => ({
        x: measured(row),
        y: predicted(row),
        series: families.indexOf(family(row)),
        hollow: row.fitted,
        title: `${problemName(row)}, ${row.order}: predicted ${text(predicted(row))}, measured ${text(measured(row))}`,
      })),
      guides: [line(1, "equal"), line(1.25, "25 % more"), line(0.75, "25 % less")],
      legend: [
        ...seriesLegend(families),
        swatch("soft", "hollow: the model was fitted on it", true),
        html("span", {}, "dashed: equal, and 25 % more and less"),
      ],
    }),
    html("p", { class: "hint" }, summary("Not fitted on", errors(false)) + summary("Fitted on", errors(true))),
    foldedTable("As a table", [
      ["product", problemName],
      ["order", (row) => row.order],
      ["predicted", (row) => text(predicted(row)), true],
      ["measured", (row) => text(measured(row)), true],
      ["error", (row) => percent(predicted(row) / measured(row) - 1), true],
    ], rows),
  ];
}

/** A list, and below it what its entry shows. */
function chosen(title, label, names, show) {
  const place = html("div", {});
  const list = html("select", {}, ...names.map((name) => html("option", {}, name)));
  const update = () => place.replaceChildren(...show(list.value));
  list.addEventListener("change", update);
  update();
  return html("div", {}, html("h3", {}, title), html("label", { class: "choice" }, `${label} `, list), place);
}

/** Time and DRAM reads of each order, for the product that is chosen. */
function orderCharts(rows) {
  const problems = groupBy(rows, problemName);
  return chosen("Each order on one product", "Product and kernel", [...problems.keys()], (name) => chartsOf(problems.get(name)));
}

function chartsOf(rows) {
  const groups = (series) =>
    rows
      .map((row) => ({
        name: row.order,
        bars: series.flatMap(([key, text], index) =>
          isNumber(row[key]) ? [{ value: row[key], series: index, title: `${row.order}, ${text}` }] : [],
        ),
      }))
      .filter((group) => group.bars.length > 0);
  const one = (title, axis, series) => {
    const shown = groups(series);
    return shown.length > 0 && bars(title, { axis, groups: shown, legend: seriesLegend(series.map(([, text]) => text)) });
  };
  const charts = [
    one("Time", { label: "µs for one product; shorter is better", text: digits }, [
      ["cold_us", "cold: L2 overwritten before each launch"],
      ["sustained_us", "sustained: back to back"],
    ]),
    one("Read from DRAM", { label: "bytes for one product; shorter is better", text: bytes }, [
      ["dram_read_bytes", "measured"],
      ["model_dram_read_bytes", "predicted"],
    ]),
  ];
  const number = (key, text) => [(row) => (isNumber(row[key]) ? text(row[key]) : ""), true];
  return [
    html("div", { class: "charts" }, ...charts.filter(Boolean)),
    foldedTable("As a table", [
      ["order", (row) => row.order],
      ["chosen by", (row) => row.picked_by],
      ["cold µs", ...number("cold_us", digits)],
      ["sustained µs", ...number("sustained_us", digits)],
      ["sustained TFLOP/s", ...number("sustained_tflops", digits)],
      ["MHz", ...number("sm_clock_mhz", digits)],
      ["W", ...number("power_w", digits)],
      ["DRAM read", ...number("dram_read_bytes", bytes)],
      ["predicted", ...number("model_dram_read_bytes", bytes)],
      ["DRAM written", ...number("dram_write_bytes", bytes)],
      ["L2 read", ...number("l2_read_bytes", bytes)],
      ["L2 hits", ...number("l2_hit_rate", percent)],
    ], rows),
  ];
}
