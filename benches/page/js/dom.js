/**
 * Elements in a line, so that charts and tables read as what they show.
 *
 * @module dom
 */

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id; a page without it is broken, and says so. */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found;
}

/** Sets attributes (and `class`) and appends children; text is text, never markup. */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element. */
function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/**
 * A colour of the style sheet as canvas understands it: a custom property's own value
 * is still `light-dark(…)`, so the browser is asked what it comes to.
 */
function colour(name) {
  const probe = byId("grid-legend");
  const before = probe.style.color;
  probe.style.color = `var(--${name})`;
  const resolved = getComputedStyle(probe).color;
  probe.style.color = before;
  return resolved;
}

/** Calls back with an element's width, now and when it has changed. */
function onWidth(element, draw) {
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (Math.abs(contentRect.width - width) < 1) return;
    width = contentRect.width;
    // In the next frame: what is drawn changes the layout that is being observed.
    requestAnimationFrame(() => draw(width));
  }).observe(element);
}

/** An entry of a legend. */
function swatch(colourName, text, hollow = false) {
  const mark = html("i", { class: hollow ? "hollow" : null, style: `--swatch: var(--${colourName})` });
  return html("span", {}, mark, text);
}

/**
 * A table. Columns are `[head, row => text, isNumber]`. Each cell names its head too, for
 * style sheets that put cells below each other.
 */
function dataTable(columns, rows) {
  const kind = (column) => ({ class: column[2] ? "number" : null });
  const head = html("tr", {}, ...columns.map((column) => html("th", { scope: "col", ...kind(column) }, column[0])));
  const body = rows.map((row) =>
    html("tr", {}, ...columns.map((column) => html("td", { "data-head": column[0], ...kind(column) }, column[1](row) ?? ""))),
  );
  return html("table", {}, html("thead", {}, head), html("tbody", {}, ...body));
}

/**
 * A table, folded away: the figures of a chart for those who cannot see it, or want
 * to copy them. Columns are those of `dataTable`.
 */
function foldedTable(title, columns, rows) {
  const place = { class: "scroll", tabindex: 0, role: "group", "aria-label": title };
  return html("details", {}, html("summary", {}, title), html("div", place, dataTable(columns, rows)));
}
