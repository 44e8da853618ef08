/**
 * Numbers for people: three or four digits and a unit.
 *
 * @module format
 */

/** `value` with about `digits` significant digits and no exponent. */
function digits(value, count = 3) {
  if (value === 0) return "0";
  const decimals = Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(decimals, 9));
}

/** Between a number and its unit: a space that does not break. */
const NBSP = "\u00a0";

/** The largest of `units` (`[size, name]`, largest first) that `value` reaches. */
function inUnits(value, units) {
  const [size, name] = units.find(([least]) => Math.abs(value) >= least) ?? units[units.length - 1];
  return `${digits(value / size)}${NBSP}${name}`;
}

/** Bytes, in decimal units, as DRAM's bandwidth is given. */
function bytes(value) {
  return inUnits(value, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
}

/** Bytes at a tick, which is round. */
function byteTick(value) {
  return bytes(value).replace(/\.0+(?=\s)/, "");
}

/** Seconds. */
function seconds(value) {
  return inUnits(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);
}

/** A share, in per cent. */
function percent(share) {
  return `${digits(100 * share)}${NBSP}%`;
}

/** A count, with its thousands apart (by narrow spaces that do not break). */
function count(value) {
  return value.toLocaleString("en").replaceAll(",", "\u202f");
}

/** `M×N×K`. */
function shapeName({ m, n, k }) {
  return `${m}×${n}×${k}`;
}
