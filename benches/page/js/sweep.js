/**
 * The sweep: on problems drawn from a seed, what the library's choice of a kernel loses against
 * the fastest kernel measured, and where both stand beside cuBLASLt.
 *
 * An outcome is `Outcome` of `benches/src/sweep/outcome.rs`, one problem in one regime; a summary
 * is `Summary` there.
 *
 * @module sweep
 */
function showSweep({ sweep: outcomes, sweep_summaries: summaries }) {
  const devices = distinct(outcomes.map(({ device }) => device));
  byId("sweep-machine").textContent =
    `Measured on ${devices.join("; ")}: every kernel on each problem, beside the best of cuBLASLt’s first eight ` +
    "heuristics. The kernel that the library chooses is that of this page’s build. Constants of its estimate were " +
    "fitted on problems of even index first; those of odd index are called held out, and the README of the sweep says " +
    "which of them a later fit has seen.";
  const shown = summaries.filter(({ problems }) => problems > 0).sort((a, b) => groupPlace(a) - groupPlace(b));
  const name = ({ regime, group }) => `${regime}, ${group}`;
  byId("sweep-content").append(
    chosen("The choice, problem by problem", "Problems", shown.map(name), (text) => {
      const summary = shown.find((one) => name(one) === text);
      const isIn = SWEEP_GROUPS[summary.group];
      return sweepCharts(outcomes.filter((outcome) => outcome.regime === summary.regime && isIn(outcome)));
    }),
    summaryTable(summaries),
  );
  byId("sweep").hidden = false;
}

/** The groups of problems, in the order of the list. */
const SWEEP_GROUPS = {
  "held out": (outcome) => outcome.held_out,
  "16-byte pitch": (outcome) => outcome.aligned,
  fitted: (outcome) => !outcome.held_out,
  all: () => true,
};

const groupPlace = ({ group }) => Object.keys(SWEEP_GROUPS).indexOf(group);

/** What the two series of points are. */
const SWEEP_SERIES = ["the library’s choice", "the fastest kernel measured"];

/** Values in rising order, over the share of problems that are no larger. */
function quantilePoints(outcomes, value, series, text) {
  const sorted = [...outcomes].sort((a, b) => value(a) - value(b));
  return sorted.map((outcome, index) => ({
    x: (index + 0.5) / sorted.length,
    y: value(outcome),
    series,
    title: `${outcome.problem}: ${text(outcome)}`,
  }));
}

function sweepCharts(outcomes) {
  const x = { label: "share of the problems, in rising order", log: false, text: percent };
  const across = (y, text) => ({ points: [[0, y], [1, y]], text });
  const beside = outcomes.filter(({ cublaslt_ms: time }) => isNumber(time));
  const ours = ({ cublaslt_ms: peer, ms }) => peer / ms;
  const best = ({ cublaslt_ms: peer, best_ms: ms }) => peer / ms;
  const speedup = scatter("Speedup over cuBLASLt", {
    x,
    y: { label: "× cuBLASLt; higher is better", log: true, text: digits },
    points: [
      ...quantilePoints(beside, best, 1, (outcome) => `${outcome.best_kernel} ${digits(best(outcome))} × cuBLASLt`),
      ...quantilePoints(beside, ours, 0, (outcome) => `${outcome.kernel} ${digits(ours(outcome))} × cuBLASLt`),
    ],
    guides: [across(1, "as fast as cuBLASLt")],
    legend: [...seriesLegend(SWEEP_SERIES), html("span", {}, "dashed: as fast as cuBLASLt")],
  });
  const lost = ({ ms, best_ms: least }) => ms / least - 1;
  const regret = scatter("Time lost by the choice", {
    x,
    y: { label: "more time than the fastest kernel measured", log: false, text: percent },
    points: quantilePoints(outcomes, lost, 0, (outcome) =>
      `${outcome.kernel} takes ${percent(lost(outcome))} more than ${outcome.best_kernel}`),
  });
  return [
    html("div", { class: "charts" }, ...(beside.length > 0 ? [speedup, regret] : [regret])),
    foldedTable("As a table", [
      ["problem", (outcome) => outcome.problem],
      ["chosen", (outcome) => outcome.kernel],
      ["µs", (outcome) => digits(outcome.ms * 1e3), true],
      ["× cuBLASLt", (outcome) => (isNumber(outcome.cublaslt_ms) ? digits(ours(outcome)) : ""), true],
      ["fastest", (outcome) => outcome.best_kernel],
      ["µs", (outcome) => digits(outcome.best_ms * 1e3), true],
      ["lost", (outcome) => percent(lost(outcome)), true],
    ], outcomes),
  ];
}

/** Means and quantiles of each group of problems. */
function summaryTable(summaries) {
  const figure = (list, index) => [(row) => (isNumber(row[list][index]) ? digits(row[list][index]) : ""), true];
  const table = foldedTable("Time over the fastest kernel, and speedup over cuBLASLt", [
    ["problems", ({ regime, group }) => `${regime}, ${group}`],
    ["number", (row) => count(row.problems), true],
    ["time over the fastest: mean", ...figure("regret", 0)],
    ["95 %", ...figure("regret", 1)],
    ["most", ...figure("regret", 2)],
    ["choice × cuBLASLt: mean", ...figure("rule", 0)],
    ["5 %", ...figure("rule", 1)],
    ["least", ...figure("rule", 2)],
    ["fastest × cuBLASLt: mean", ...figure("best", 0)],
    ["5 %", ...figure("best", 1)],
    ["least", ...figure("best", 2)],
  ], summaries);
  table.open = true;
  table.classList.add("cards");
  return table;
}
