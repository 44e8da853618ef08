/**
 * Records of the benchmark: TFLOP/s of each implementation on each product, with
 * cuBLASLt and Triton beside. A record is `Record` of `benches/src/record.rs`.
 *
 * @module bench
 */
function showBench(records) {
  const first = records[0];
  const sms = first.sms ? `${first.sms} SMs, ` : "";
  const driver = first.driver ? `driver CUDA ${first.driver}, ` : "";
  byId("bench-machine").textContent =
    `${first.device}, ${sms}${driver}kernels by ${first.toolchain}; inputs ${first.data}. ` +
    "Medians; everything compared ran in turns in one process, but Triton, which has its own.";
  const timed = records.filter((record) => record.status === "timed");
  const content = distinct(timed.map((record) => record.regime)).map((regime) => {
    const rows = timed.filter((record) => record.regime === regime);
    return html("div", {}, benchChart(regime, rows), benchTable(rows));
  });
  byId("bench-content").append(...content);
  byId("bench").hidden = false;
}

/** The product of a record. */
const productName = (record) => `${shapeName(record)} ${record.dtype} ${record.layout}`;

/** The best of each implementation, in groups by product. */
function benchChart(regime, rows) {
  const implementations = distinct(rows.map((record) => record.implementation));
  const groups = [...groupBy(rows, productName)].map(([name, of]) => ({
    name,
    bars: implementations.flatMap((implementation, series) => {
      const best = of
        .filter((record) => record.implementation === implementation && isNumber(record.tflops))
        .reduce((a, b) => (a && a.tflops >= b.tflops ? a : b), null);
      return best ? [{ value: best.tflops, series, title: `${name}, ${configuration(best)}: ${digits(best.tflops)} TFLOP/s` }] : [];
    }),
  }));
  return bars(`${regime}: the best of each implementation`, {
    axis: { label: "TFLOP/s; longer is better", text: digits },
    groups,
    legend: seriesLegend(implementations),
  });
}

/** Implementation, kernel, order and schedule, as far as there are such. */
function configuration(record) {
  return [record.implementation, record.kernel, record.order, record.schedule].filter(Boolean).join(" ");
}

function benchTable(rows) {
  const number = (key) => [(record) => (isNumber(record[key]) ? digits(record[key]) : ""), true];
  return foldedTable("Every record, as a table", [
    ["product", productName],
    ["implementation", (record) => record.implementation + (record.interleaved ? "" : " (own process)")],
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
