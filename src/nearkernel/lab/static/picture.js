// Pictures of the server as Plotly figures in the colors of the page.
import { legend, names } from "./legend.js";
import { element, save } from "./page.js";

const BINS = 32; // colors of filled polygons
const PHONE = 480; // pixels

function colors() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  const series = [named("faint"), ...[1, 2, 3, 4, 5, 6].map((i) => named(`series-${i}`))];
  return { series, ink: named("ink"), faint: named("faint"), line: named("line"), card: named("card") };
}

function pale(color, share) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${share})`;
}

const RISING = [[0, "#f7fbff"], [0.25, "#c6dbef"], [0.5, "#6baed6"], [0.75, "#2171b5"], [1, "#08306b"]];
const DIVERGING = [[0, "#0072b2"], [0.25, "#7fb8d8"], [0.5, "#f7f7f7"], [0.75, "#eaae7f"], [1, "#d55e00"]];

function curve(part, look) {
  const color = look.series[part.series];
  const base = { x: part.x, y: part.y, name: part.name, legendgroup: part.name, type: "scatter" };
  const traces = [];
  if (part.band) {
    const edge = { ...base, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    traces.push({ ...edge, y: part.band[0] }, { ...edge, y: part.band[1], fill: "tonexty", fillcolor: pale(color, 0.18) });
  }
  if (part.kind === "bars") traces.push({ ...base, type: "bar", marker: { color: pale(color, 0.75) } });
  else if (part.kind === "thin") traces.push({ ...base, mode: "lines", hoverinfo: "skip", line: { color: pale(color, 0.45), width: 1 } });
  else if (part.kind === "line" || part.kind === "dashes") {
    traces.push({ ...base, mode: "lines", line: { color: color, width: 2, dash: part.kind === "dashes" ? "dash" : "solid" } });
  } else {
    traces.push({ ...base, mode: "markers", marker: { color: part.kind === "points" ? look.ink : color, size: 7 } });
  }
  if (part.sem) traces.at(-1).error_y = { type: "data", array: part.sem, color: color, thickness: 1.2, width: 3 };
  return traces;
}

function range(values, diverging) {
  const finite = values.flat().filter((v) => v !== null);
  let [low, high] = [Math.min(...finite), Math.max(...finite)];
  if (!(low < high)) [low, high] = [low - 1, low + 1];
  const most = Math.max(Math.abs(low), Math.abs(high));
  return diverging ? [-most, most] : [low, high];
}

function heat(part) {
  const base = { x: part.x, y: part.y, z: part.z, type: "heatmap", name: part.name, hovertemplate: "%{x:.3g}, %{y:.3g}: %{z:.4g}<extra></extra>" };
  const [zmin, zmax] = range(part.z, part.diverging);
  return [{ ...base, zmin, zmax, colorscale: part.diverging ? DIVERGING : RISING,
    colorbar: { thickness: 12, outlinewidth: 0, title: { text: part.name, side: "right" } } }];
}

function mixed(scale, share) {
  const at = scale.findIndex(([p]) => p >= share);
  const [[p0, c0], [p1, c1]] = [scale[Math.max(0, at - 1)], scale[at]];
  const t = p1 > p0 ? (share - p0) / (p1 - p0) : 0;
  const channel = (k) => Math.round(parseInt(c0.slice(k, k + 2), 16) * (1 - t) + parseInt(c1.slice(k, k + 2), 16) * t);
  return `rgb(${channel(1)},${channel(3)},${channel(5)})`;
}

/** Thousands of polygons as a few traces, one per color. */
function cells(part, look) {
  const [low, high] = range([part.values], part.diverging);
  const scale = part.diverging ? DIVERGING : RISING;
  const bins = Array.from({ length: BINS }, () => ({ x: [], y: [] }));
  part.polygons.forEach((polygon, i) => {
    const share = part.values[i] === null ? 0.5 : (part.values[i] - low) / (high - low);
    const bin = bins[Math.min(BINS - 1, Math.floor(share * BINS))];
    for (const [x, y] of [...polygon, polygon[0]]) { bin.x.push(x); bin.y.push(y); }
    bin.x.push(null); bin.y.push(null);
  });
  const traces = bins.map(({ x, y }, i) => ({ x, y, type: "scatter", mode: "lines", fill: "toself", hoverinfo: "skip",
    showlegend: false, fillcolor: mixed(scale, (i + 0.5) / BINS), line: { width: 0.6, color: look.faint } }))
    .filter(({ x }) => x.length);
  const bar = { x: [null], y: [null], type: "scatter", mode: "markers", showlegend: false, hoverinfo: "skip",
    marker: { color: [low], cmin: low, cmax: high, colorscale: scale, showscale: true,
      colorbar: { thickness: 12, outlinewidth: 0, title: { text: part.name, side: "right" } } } };
  return [...traces, bar];
}

/** Ticks of a logarithmic axis: not so many that they cover each other, and more than one; between powers of ten, numbers in full. */
function decades(limits, values) {
  const [low, high] = limits ?? range([values.filter((v) => v > 0)], false);
  const width = Math.log10(high / low);
  if (!(width < 2.2)) return { dtick: Math.ceil(width / (innerWidth < PHONE ? 4 : 7)) };
  const digits = width < 0.7 ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5];
  const tickvals = [];
  for (let power = Math.floor(Math.log10(low)) - 1; 10 ** power <= 10 * high; power += 1) tickvals.push(...digits.map((digit) => Number(`${digit}e${power}`)));
  return { tickvals, ticktext: tickvals.map(full), tickfont: undefined };
}

/** A number beside an axis. */
function full(value) {
  if (value >= 1e-3 && value < 1e5) return String(value);
  const [digits, power] = value.toExponential().replace("+", "").replace("e-", "e−").split("e");
  return `${digits === "1" ? "" : `${digits}·`}10<sup>${power}</sup>`;
}

function figure(picture, look, hidden = new Set()) {
  const make = { Curve: curve, Heat: heat, Cells: cells };
  const large = document.documentElement.classList.contains("lecture") ? 1.35 : 1;
  const layer = (part) => (part.type !== "Curve" ? 0 : part.kind === "thin" ? 1 : 2); // many networks do not cover theory
  const parts = picture.parts.filter((part) => !hidden.has(part.name)).sort((one, other) => layer(one) - layer(other));
  const data = parts.flatMap((part) => make[part.type](part, look));
  const named = new Set();
  for (const trace of data) {
    if (trace.showlegend === false || trace.type === "heatmap") continue;
    trace.showlegend = !named.has(trace.name);
    named.add(trace.name);
  }
  const values = (at) => parts.flatMap((part) => (part.type === "Curve" ? part[at] : []));
  const axis = (at, title, log, limits) => ({ title: { text: title, standoff: 8 }, type: log ? "log" : "linear",
    ...(log ? { tickfont: { size: 10.5 * large }, ...decades(limits, values(at)) } : {}), tickangle: 0,
    range: limits ? (log ? limits.map(Math.log10) : limits) : undefined, autorange: !limits, gridcolor: look.line, zeroline: false,
    linecolor: look.faint, ticks: "outside", tickcolor: look.faint, exponentformat: "power", automargin: true });
  const layout = {
    title: { text: picture.title, x: 0.01, xanchor: "left", y: 0.985, yanchor: "top", font: { size: 15 * large, weight: 600 } },
    xaxis: axis("x", picture.x, picture.log_x, picture.x_range), yaxis: axis("y", picture.y, picture.log_y, picture.y_range),
    font: { family: "system-ui, sans-serif", size: 12.5 * large, color: look.ink }, paper_bgcolor: look.card, plot_bgcolor: look.card,
    margin: { l: 52, r: 14, t: 36 * large, b: 46 * large }, showlegend: false, hovermode: "closest", barmode: "group", bargap: 0.05,
  };
  if (picture.square) {
    Object.assign(layout.xaxis, { constrain: "domain" });
    Object.assign(layout.yaxis, { scaleanchor: "x", constrain: "domain" });
  }
  return { data, layout, named: named.size };
}

/** The same figure as a file shows it: with its legend inside. */
function filed({ data, layout, named }) {
  const legendBelow = { orientation: "h", x: 0, yref: "container", y: 0.01, yanchor: "bottom", font: { size: 11.5 } };
  const margin = { ...layout.margin, b: 46 + 20 * Math.ceil(named / 4) };
  return { data, layout: { ...layout, margin, showlegend: named > 1, legend: legendBelow } };
}

const QUIET = { responsive: true, displaylogo: false, displayModeBar: false };

/** A picture on the page that can be drawn again and saved. */
export function board(name, openProgram) {
  let now = null;
  const hidden = new Set();
  const plot = element("div", { class: "plot" });
  const keys = element("div", { class: "legend" });
  const file = (ending) => `nearkernel-${name}-${now.picture.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}.${ending}`;
  const image = async (format) => save(file(format), await Plotly.toImage(
    filed(figure(now.picture, colors(), hidden)), { format, width: 900, height: 560, scale: format === "png" ? 2 : 1 }));
  const button = (word, onclick) => element("button", { type: "button", onclick, "data-save": word.toLowerCase() }, word);
  const node = element("figure", {}, plot, keys, element("div", { class: "save" },
    button("PNG", () => image("png")), button("SVG", () => image("svg")),
    button("CSV", () => save(file("csv"), new Blob([now.csv], { type: "text/csv" }))), button("Python", openProgram)));
  const draw = async (picture, csv) => {
    now = { picture, csv };
    node.setAttribute("aria-label", picture.title);
    const look = colors();
    const { data, layout } = figure(picture, look, hidden);
    const focused = keys.contains(document.activeElement) ? document.activeElement.dataset.curve : undefined;
    keys.replaceChildren(...legend(picture, look, hidden, redraw));
    if (focused !== undefined) keys.querySelector(`[data-curve="${CSS.escape(focused)}"]`)?.focus();
    await Plotly.react(plot, data, layout, QUIET);
  };
  const redraw = () => now && draw(now.picture, now.csv);
  return { node, plot, draw, redraw, shown: () => now };
}

/** The names of a picture's curves, to read alone. */
export function keys(picture) {
  return names(picture, colors());
}

/** A picture to look at alone, small. */
export function sketch(plot, picture) {
  const { data, layout } = figure(picture, colors());
  const small = { ...layout, title: undefined, margin: { l: 44, r: 10, t: 8, b: 40 }, font: { ...layout.font, size: 11 } };
  return Plotly.react(plot, data, small, { ...QUIET, staticPlot: true }).then(() => Plotly.Plots.resize(plot));
}
