/**
 * The roofline: arithmetic a byte of DRAM against arithmetic a second, under the two
 * roofs. (Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.)
 *
 * @module roofline
 */
function roofline(rows) {
  const points = rows.filter(
    (row) => isNumber(row.sustained_tflops ?? row.cold_tflops) && isNumber(row.dram_read_bytes ?? row.model_dram_read_bytes),
  );
  const { dram_bytes_per_second: bandwidth, peak_tflops: peak } =
    points.find((row) => isNumber(row.dram_bytes_per_second) && isNumber(row.peak_tflops)) ?? {};
  if (points.length === 0) return null;
  const families = distinct(points.map(family));
  const flopPerByte = (row) => {
    const read = row.dram_read_bytes ?? row.model_dram_read_bytes;
    const written = row.dram_write_bytes ?? row.model_dram_write_bytes ?? 0;
    return (2 * row.m * row.n * row.k) / (read + written);
  };
  const placed = points.map((row) => ({
    x: flopPerByte(row),
    y: row.sustained_tflops ?? row.cold_tflops,
    series: families.indexOf(family(row)),
    hollow: !isNumber(row.dram_read_bytes),
    title: `${problemName(row)}, ${row.order}: ${digits(row.sustained_tflops ?? row.cold_tflops)} TFLOP/s, ${digits(flopPerByte(row))} FLOP a byte`,
  }));
  const guides = [];
  if (bandwidth && peak) {
    const ridge = (peak * 1e12) / bandwidth;
    const [least, most] = [Math.min(ridge, ...placed.map(({ x }) => x)), Math.max(2 * ridge, ...placed.map(({ x }) => x))];
    guides.push(
      { points: [[least / 1.5, ((least / 1.5) * bandwidth) / 1e12], [ridge, peak]], text: `DRAM, ${byteTick(bandwidth)}/s` },
      { points: [[ridge, peak], [most, peak]], text: `tensor cores, ${digits(peak)} TFLOP/s` },
    );
  }
  return scatter("Roofline", {
    x: { label: "FLOP a byte from and to DRAM", log: true, text: digits },
    y: { label: "TFLOP/s, sustained or else cold", log: true, text: digits },
    points: placed,
    guides,
    legend: [
      ...seriesLegend(families),
      swatch("soft", "hollow: bytes predicted, not measured", true),
      ...guides.map((guide) => html("span", {}, `dashed: ${guide.text}`)),
    ],
  });
}
