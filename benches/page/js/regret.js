/**
 * What each rule for choosing an order loses: `regrets` of `PageData`, which
 * `benches/src/study/rules.rs` computes for the report too.
 *
 * @module regret
 */
function regretTables(regrets) {
  const tables = [...groupBy(regrets, (row) => row.regime)].map(([regime, rows]) => regretTable(regime, rows));
  return tables.length > 0 && html("div", {}, html("h3", {}, "What a rule for the order loses"), ...tables);
}

function regretTable(regime, rows) {
  const table = foldedTable(`${regime}: time lost against the best order measured of the same product and kernel`, [
    ["rule", (row) => row.rule],
    ["products and kernels", (row) => count(row.groups), true],
    ["mean", (row) => percent(row.mean), true],
    ["worst", (row) => percent(row.worst), true],
    ["where", (row) => row.worst_at],
  ], rows);
  table.open = true;
  table.classList.add("cards");
  return table;
}
