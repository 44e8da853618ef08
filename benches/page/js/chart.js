/**
 * Charts as SVG, drawn for the width there is: on a phone they get narrower, not
 * smaller in print. Marks carry their figures as `<title>`, which browsers show on
 * hover and screen readers read.
 *
 * @module chart
 */

/** Widest that a scatter gets: wider ones only spread the points. */
const SCATTER_WIDTH = 760;

/** Colours that series take, in turns. */
const SERIES_COLOURS = 8;

const seriesColour = (index) => `var(--series-${index % SERIES_COLOURS})`;

/** A place for a chart, drawn again when its width changes. */
function chart(title, draw, legend = []) {
  const canvas = html("div", {});
  const place = html("figure", { class: "chart" }, canvas, html("figcaption", { class: "legend" }, ...legend));
  onWidth(place, (there) => {
    const { width, height, content } = draw(Math.max(there, 260));
    const box = `0 0 ${width} ${height}`;
    const style = `max-width: ${width}px`;
    canvas.replaceChildren(svg("svg", { viewBox: box, style, role: "img", "aria-label": title }, ...content));
  });
  return html("div", {}, html("p", { class: "chart-title" }, title), place);
}

/** Legend entries for named series. */
function seriesLegend(names) {
  return names.map((name, index) => swatch(`series-${index % SERIES_COLOURS}`, name));
}

/**
 * From values to pixels. `log` for powers of ten; else from 0.
 *
 * @param {number[]} values  that must be inside
 */
function scale(values, [from, to], log) {
  const largest = Math.max(...values);
  const smallest = log ? Math.min(...values) : 0;
  const bend = log ? Math.log10 : (value) => value;
  // A little room, so that no mark sits on the frame.
  const [low, high] = log ? [bend(smallest) - 0.08, bend(largest) + 0.08] : [0, largest * 1.06];
  const at = (value) => from + ((bend(value) - low) / (high - low || 1)) * (to - from);
  return { at, ticks: log ? logTicks(10 ** low, 10 ** high) : linearTicks(high) };
}

/** 0 and four to six round values up to `high`. */
function linearTicks(high) {
  const rough = high / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, index) => index * step);
}

/** Powers of ten inside the range; with 2 and 5 between where those are few. */
function logTicks(low, high) {
  const ticks = (factors) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      for (const factor of factors) found.push(factor * 10 ** power);
    }
    return found.filter((value) => value >= low && value <= high);
  };
  const tens = ticks([1]);
  return tens.length >= 4 ? tens : ticks([1, 2, 5]);
}

/**
 * Points over two axes.
 *
 * @param {{label, log, text}} x  the axis: its name with the unit, and how a tick reads
 * @param {{label, log, text}} y
 * @param {{x, y, series, hollow, title}[]} points  `series` is a number
 * @param {{points: [number, number][], text}[]} guides  dashed lines, two points each
 */
function scatter(title, { x, y, points, guides = [], legend = [] }) {
  return chart(title, (there) => {
    const width = Math.min(there, SCATTER_WIDTH);
    const height = Math.min(420, Math.max(280, width * 0.72));
    const box = { left: 54, right: width - 10, top: 26, bottom: height - 46 };
    const all = [...points.map((point) => [point.x, point.y]), ...guides.flatMap((guide) => guide.points)];
    const across = scale(all.map(([value]) => value), [box.left, box.right], x.log);
    const up = scale(all.map(([, value]) => value), [box.bottom, box.top], y.log);
    const content = [...axes(box, across, up, x, y)];
    for (const guide of guides) {
      const line = guide.points.map(([a, b]) => `${across.at(a)},${up.at(b)}`).join(" ");
      content.push(svg("polyline", { class: "guide", points: line }, svg("title", {}, guide.text)));
    }
    for (const point of points) {
      const mark = svg("circle", { cx: across.at(point.x), cy: up.at(point.y), r: 4.5 }, svg("title", {}, point.title));
      mark.setAttribute("class", point.hollow ? "mark hollow" : "mark");
      mark.style.setProperty("--mark", seriesColour(point.series));
      content.push(mark);
    }
    return { width, height, content };
  }, legend);
}

/** Grid lines, ticks and names of two axes. */
function axes(box, across, up, x, y) {
  const lines = [];
  let last = -Infinity;
  for (const tick of across.ticks) {
    const at = across.at(tick);
    lines.push(svg("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom }));
    const text = x.text(tick);
    // Labels that would touch are left out.
    if (at - last < 9 * text.length * 0.8) continue;
    last = at;
    lines.push(svg("text", { x: at, y: box.bottom + 16, "text-anchor": "middle" }, text));
  }
  for (const tick of up.ticks) {
    const at = up.at(tick);
    lines.push(
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }),
      svg("text", { x: box.left - 6, y: at + 4, "text-anchor": "end" }, y.text(tick)),
    );
  }
  lines.push(
    svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    svg("line", { class: "axis", x1: box.left, x2: box.left, y1: box.top, y2: box.bottom }),
    svg("text", { x: box.right, y: box.bottom + 36, "text-anchor": "end" }, x.label),
    svg("text", { x: 0, y: 12 }, y.label),
  );
  return lines;
}

/**
 * Bars that lie, in groups with a name each.
 *
 * @param {{label, text}} axis  its name with the unit, and how a value reads
 * @param {{name, bars: {value, series, title, label}[]}[]} groups  a name may have several
 *   lines; a label, if there is one, stands behind the bar's figure
 */
function bars(title, { axis, groups, legend = [] }) {
  const BAR = 13;
  return chart(title, (width) => {
    const names = 7.4 * Math.max(...groups.map(({ name }) => name.length)) + 12;
    // Names that would take too much of a narrow chart, or have several lines, stand above
    // their bars.
    const beside = names < width * 0.4 && !groups.some(({ name }) => name.includes("\n"));
    const left = beside ? names : 0;
    const values = groups.flatMap((group) => group.bars.map((bar) => bar.value));
    const figure = ({ value, label }) => (label ? `${axis.text(value)} ${label}` : axis.text(value));
    const longest = Math.max(...groups.flatMap((group) => group.bars.map((bar) => figure(bar).length)));
    const across = scale(values, [left, width - Math.max(58, 6.6 * longest + 10)], false);
    const content = [];
    let y = 8;
    for (const group of groups) {
      if (beside) {
        const middle = y + (group.bars.length * BAR) / 2 + 4;
        content.push(svg("text", { x: left - 8, y: middle, "text-anchor": "end" }, group.name));
      } else {
        for (const line of group.name.split("\n")) {
          content.push(svg("text", { x: 0, y: y + 10 }, line));
          y += 16;
        }
      }
      for (const bar of group.bars) {
        const { value, series, title: text } = bar;
        const length = Math.max(1, across.at(value) - left);
        const place = { x: left, y, width: length, height: BAR - 2, rx: 2, fill: seriesColour(series) };
        content.push(
          svg("rect", place, svg("title", {}, text)),
          svg("text", { x: left + length + 5, y: y + BAR - 3 }, figure(bar)),
        );
        y += BAR;
      }
      y += 9;
    }
    content.push(svg("text", { x: left, y: y + 8 }, axis.label));
    return { width, height: y + 14, content };
  }, legend);
}
