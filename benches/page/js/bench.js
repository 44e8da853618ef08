/**
 * Records of the benchmark: TFLOP/s of row-major order, of the library's choice and of the
 * peers on each product. A record is `Record` of `benches/src/records/record.rs`.
 *
 * @module bench
 */
function showBench({ records, comparisons }) {
  const first = records[0];
  const sms = first.sms ? `${first.sms} SMs, ` : "";
  const driver = first.driver ? `driver CUDA ${first.driver}, ` : "";
  byId("bench-machine").textContent =
    `${first.device}, ${sms}${driver}kernels by ${first.toolchain}; inputs ${first.data}. ` +
    "Medians. All candidates ran in turns in one process, except Triton, which has its own.";
  const timed = records.filter((record) => record.status === "timed");
  const content = distinct(timed.map((record) => record.regime)).map((regime) => {
    const rows = timed.filter((record) => record.regime === regime);
    return html("div", {}, benchChart(regime, rows, comparisons), benchTable(rows));
  });
  byId("bench-content").append(comparisonTable(comparisons), ...content);
  byId("bench").hidden = false;
}

/** The product of a record, or of a comparison. */
const productName = (record) => `${shapeName(record)} ${record.dtype} ${record.layout}`;

/** What the bars of row-major order are. */
const ROW_MAJOR = "tilewise in row-major order: the same kernel and schedule";

/** What the bars of the order beside it are. */
const CHOSEN = "tilewise, the library’s choice of kernel, order and schedule";
const FORCED = "tilewise in the order that was forced";

/** What the bars of an implementation without a comparison are. */
function implementationName(implementation) {
  if (implementation.startsWith("cuBLASLt")) return `${implementation}, the best of its first eight heuristics`;
  if (implementation.startsWith("Triton")) return `${implementation}, its tutorial’s kernel, autotuned, in its own process`;
  if (implementation === "tilewise (chosen)") return CHOSEN;
  if (implementation === "tilewise (tuned)") return "tilewise, the fastest launch that its tuner measured";
  if (implementation === "tilewise (batch-invariant)") return "tilewise, the library’s choice for batch-invariant results";
  return "tilewise, the fastest of the kernels, orders and schedules that were forced";
}

/** A group of bars for each product, and for each comparison where it has several. */
function benchChart(regime, rows, comparisons) {
  const groups = [...groupBy(rows, productName)].flatMap(([name, of]) => {
    const compared = comparisons.filter((one) => one[regime] && productName(one) === name);
    const isOwn = ({ implementation }) => ["tilewise", "tilewise (chosen)"].includes(implementation);
    if (compared.length === 0) return [{ name, bars: bestOfEach(of) }];
    const peers = bestOfEach(of.filter((record) => !isOwn(record)));
    return compared.map((one) => ({
      name: compared.length === 1 ? name : `${name}, ${one.order}\n${one.kernel}`,
      bars: [...comparedBars(one, one[regime]), ...peers],
    }));
  });
  // A colour for each meaning, in the order in which they stand in a group.
  const meanings = distinct(groups.flatMap(({ bars }) => bars.map(({ meaning }) => meaning)));
  const coloured = ({ name, bars }) => ({
    name,
    bars: bars.map(({ value, meaning, launch, label }) => ({
      value,
      label,
      series: meanings.indexOf(meaning),
      title: `${name.replace("\n", " ")}, ${launch}: ${digits(value)} TFLOP/s`,
    })),
  });
  const title = comparisons.length > 0 ? "row-major order, the order beside it, and peers" : "the fastest of each implementation";
  return bars(`${regime}: ${title}`, {
    axis: { label: "TFLOP/s; longer is better", text: digits },
    groups: groups.map(coloured),
    legend: seriesLegend(meanings),
  });
}

/** Row-major order and the order compared with it. */
function comparedBars({ kernel, schedule, order, chosen }, times) {
  const launch = (order) => `tilewise ${kernel} ${order} ${schedule}`;
  return [
    { value: times.row_major_tflops, meaning: ROW_MAJOR, launch: launch("row"), label: "row-major" },
    { value: times.order_tflops, meaning: chosen ? CHOSEN : FORCED, launch: launch(order), label: order },
  ];
}

/** The fastest record of each implementation. */
function bestOfEach(rows) {
  const measured = rows.filter((record) => isNumber(record.tflops));
  return [...groupBy(measured, (record) => record.implementation)].map(([implementation, of]) => {
    const best = of.reduce((a, b) => (a.tflops >= b.tflops ? a : b));
    const kind = { "tilewise (tuned)": ", tuned", "tilewise (batch-invariant)": ", batch-invariant" }[implementation] ?? "";
    const label = best.order ? best.order + kind : implementation.split(" ")[0];
    return { value: best.tflops, meaning: implementationName(implementation), launch: configuration(best), label };
  });
}

/** A text that may be broken after each underscore. */
const breakable = (text) => html("span", {}, ...text.split(/(?<=_)/).flatMap((part) => [part, html("wbr")]));

/** A line for each comparison; on a phone its cells stand below each other. */
function comparisonTable(comparisons) {
  if (comparisons.length === 0) return html("p", { class: "hint" }, "Row-major order was not timed beside another order.");
  const change = (row, order, unit) =>
    isNumber(row) && isNumber(order) ? `${digits(row)} → ${digits(order)}${NBSP}${unit}` : "";
  const regime = (name) => [
    [`${name}: row-major → order`, (one) => change(one[name]?.row_major_ms, one[name]?.order_ms, "ms"), true],
    [`${name}: speedup`, (one) => (one[name] ? `${digits(one[name].speedup)}×` : ""), true],
  ];
  const table = dataTable([
    ["product", productName],
    ["kernel", (one) => breakable(one.kernel)],
    ["order", (one) => one.order],
    ...regime("cold"),
    ...regime("sustained"),
    ["DRAM by the model", (one) => change(one.row_major_gb, one.order_gb, "GB"), true],
  ], comparisons);
  const against = comparisons[0].chosen ? "the library’s choice" : "the orders that were asked for";
  const title = `Row-major order against ${against}: same kernel, same schedule`;
  return html("div", { class: "comparison cards" }, html("p", { class: "chart-title" }, title), table);
}

/** Implementation, kernel, order and schedule, as far as there are such. */
function configuration(record) {
  return [record.implementation, record.kernel, record.order, record.schedule].filter(Boolean).join(" ");
}

/** An implementation as the table names it: `tilewise` alone would not say what it is. */
const tableName = (implementation) => (implementation === "tilewise" ? "tilewise (forced)" : implementation);

function benchTable(rows) {
  const number = (key) => [(record) => (isNumber(record[key]) ? digits(record[key]) : ""), true];
  return foldedTable("Every record, as a table", [
    ["product", productName],
    ["implementation", (record) => tableName(record.implementation) + (record.interleaved ? "" : " (own process)")],
    ["kernel", (record) => record.kernel],
    ["order", (record) => record.order],
    ["schedule", (record) => record.schedule],
    ["median ms", ...number("median_ms")],
    ["TFLOP/s", ...number("tflops")],
    ["× row-major", ...number("speedup_over_row_major")],
    ["× cuBLASLt", (record) => (isNumber(overCublaslt(record)) ? digits(overCublaslt(record)) : ""), true],
    ["model GB", ...number("modelled_dram_gb")],
    ["MHz", ...number("sm_clock_mhz")],
    ["W", ...number("power_w")],
  ], rows);
}

/** The paired ratio, else that of medians: as in the report. */
function overCublaslt(record) {
  return record.paired_over_cublaslt ?? record.speedup_over_cublaslt;
}
