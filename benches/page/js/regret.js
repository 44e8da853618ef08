/**
 * What each rule for choosing an order loses: its time over the best time measured,
 * less one, on the same product with the same kernel.
 *
 * @module regret
 */

/** Rules that need no column: an order that is always the same. */
const FIXED_RULES = [
  ["always row-major", "row"],
  ["always grouped:8", "grouped:8"],
];

/** Regimes: the column of the time, and the name. */
const REGIMES = [
  ["cold_us", "cold"],
  ["sustained_us", "sustained"],
];

function regretTables(rows) {
  const parts = REGIMES.map(([key, name]) => regretTable(rows, key, name)).filter(Boolean);
  return parts.length > 0 && html("div", {}, html("h3", {}, "What a rule for the order loses"), ...parts);
}

function regretTable(rows, key, regime) {
  const timed = rows.filter((row) => isNumber(row[key]));
  const problems = [...groupBy(timed, problemName)];
  const named = distinct(timed.flatMap((row) => row.picked_by.split("+"))).filter(Boolean);
  const rules = [
    ...named.map((rule) => [rule, (row) => row.picked_by.split("+").includes(rule)]),
    ...FIXED_RULES.map(([rule, order]) => [rule, (row) => row.order === order]),
  ];
  const losses = rules
    .map(([rule, picks]) => {
      const each = problems.flatMap(([problem, orders]) => {
        const picked = orders.find(picks);
        const best = Math.min(...orders.map((row) => row[key]));
        return picked ? [{ problem, order: picked.order, loss: picked[key] / best - 1 }] : [];
      });
      if (each.length === 0) return null;
      const worst = each.reduce((a, b) => (b.loss > a.loss ? b : a));
      return { rule, count: each.length, mean: each.reduce((sum, { loss }) => sum + loss, 0) / each.length, worst };
    })
    .filter(Boolean);
  if (losses.length === 0) return null;
  const table = foldedTable(`${regime}: time lost against the best order measured, over ${problems.length} products`, [
    ["rule", (row) => row.rule],
    ["products", (row) => count(row.count), true],
    ["mean", (row) => percent(row.mean), true],
    ["worst", (row) => percent(row.worst.loss), true],
    ["where", (row) => `${row.worst.problem}: ${row.worst.order}`],
  ], losses);
  table.open = true;
  return table;
}
