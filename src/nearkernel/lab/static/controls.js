// Controls, made from what the server says about each setting.
import { element, lowered } from "./page.js";

const POSITIONS = 400; // of a slider between its ends
const ENCODED = 2; // an address may be this many times as long as the text of a table

/** The name of a setting as a page shows it. */
export function named(name) {
  return name.replace(/_var$/, "_variance").replaceAll("_", " ");
}

function scale({ low, high, log, kind }) {
  if (kind === "whole" && !log) {
    return { min: low, max: high, step: 1, value: (p) => p, position: (v) => v };
  }
  const [from, to] = log ? [Math.log(low), Math.log(high)] : [low, high];
  const inside = (v) => Math.min(high, Math.max(low, v));
  const round = (v, old, p, before) => {
    if (kind !== "whole") { const rough = Number(v.toPrecision(3)); return rough === old ? Number(v.toPrecision(4)) : rough; }
    // A step of a slider is a step, also where the numbers lie closer than its positions.
    return Math.round(v) === old && p !== before ? old + Math.sign(p - before) : Math.round(v);
  };
  return {
    min: 0, max: POSITIONS, step: 1,
    value: (p, old, before) => {
      const at = from + (to - from) * p / POSITIONS;
      return inside(round(log ? Math.exp(at) : at, old, p, before));
    },
    position: (v) => Math.round(POSITIONS * ((log ? Math.log(v) : v) - from) / (to - from)),
  };
}

/** The words of a control. */
function helping(name, help) {
  return element("p", { class: "help", id: `help-${name}` }, ...lowered(help));
}

function number(spec, value, changed) {
  const { name, low, high, help } = spec;
  const to = scale(spec);
  const text = named(name);
  const box = element("input", { type: "number", id: `control-${name}`, min: low, max: high, value,
    step: spec.kind === "whole" ? 1 : "any", "aria-describedby": `help-${name}` });
  const slider = element("input", { type: "range", id: `slider-${name}`, min: to.min, max: to.max, step: to.step,
    "aria-label": `${text}: ${help}` });
  const follow = () => { slider.value = to.position(Number(box.value)); slider.setAttribute("aria-valuetext", box.value); };
  slider.addEventListener("input", () => {
    const old = Number(box.value);
    box.value = to.value(Number(slider.value), old, to.position(old));
    slider.setAttribute("aria-valuetext", box.value);
    changed();
  });
  box.addEventListener("input", () => { follow(); changed(); });
  follow();
  const wrong = trouble(name, box);
  return {
    node: element("div", { class: "control" }, element("label", { for: box.id }, text), box, slider,
      helping(name, help), wrong.node),
    get: () => box.value,
    set: (now) => { box.value = now; follow(); },
    mark: wrong.mark,
    /** Where a movie can go: positions of the slider. */
    places: () => ({ low: Number(slider.min), high: Number(slider.max), at: () => Number(slider.value), go: (place) => {
      slider.value = place;
      box.value = to.value(place, NaN, place);
      slider.setAttribute("aria-valuetext", box.value);
    } }),
  };
}

/** The line below a control that says what is wrong with it. */
function trouble(name, box) {
  const node = element("p", { class: "error", role: "alert", id: `error-${name}` });
  return { node, mark: (message) => {
    node.textContent = message;
    box.setAttribute("aria-invalid", Boolean(message));
  } };
}

function choice({ name, help, choices }, value, changed) {
  const box = element("select", { id: `control-${name}`, onchange: changed, "aria-describedby": `help-${name}` },
    ...[...choices, ...(choices.includes(value) ? [] : [value])].map((word) => element("option", { value: word, selected: word === value }, word)));
  const wrong = trouble(name, box);
  return { node: worded(name, help, box, wrong.node), get: () => box.value, set: (now) => { box.value = now; }, mark: wrong.mark };
}

function text({ name, help, high }, value, changed) {
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(changed, 350); };
  const box = element("input", { type: "text", class: "wide", id: `control-${name}`, value, maxlength: high, spellcheck: "false",
    autocomplete: "off", oninput: later, "aria-describedby": `help-${name}` });
  const wrong = trouble(name, box);
  return { node: worded(name, help, box, wrong.node), get: () => box.value, set: (now) => { box.value = now; }, mark: wrong.mark };
}

/** Rows of numbers, pasted or read from a file, which never leaves the machine by another way than the question. */
function table({ name, help, high }, value, changed) {
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(changed, 500); };
  const box = element("textarea", { id: `control-${name}`, rows: 8, spellcheck: "false", autocomplete: "off", wrap: "off", oninput: later,
    "aria-describedby": `help-${name}` });
  box.value = value;
  const wrong = trouble(name, box);
  const file = element("input", { type: "file", id: `file-${name}`, accept: ".csv,.tsv,.txt,text/csv,text/plain", "aria-label": "A file of rows",
    onchange: async () => {
      const [chosen] = file.files;
      if (!chosen) return;
      if (chosen.size > high) { wrong.mark(`${chosen.name} has ${chosen.size} characters; at most ${high} are allowed.`); return; }
      box.value = await chosen.text();
      changed();
    } });
  const get = () => box.value.trim();
  /** What is wrong before the server is asked: an address cannot hold it. */
  const problem = () => {
    const { length } = get();
    if (length > high) return `${name}: ${length} characters; at most ${high} are allowed.`;
    return encodeURIComponent(get()).length > ENCODED * high ? `${name}: too many special characters; paste lines of numbers.` : "";
  };
  return { node: worded(name, help, box, file, wrong.node), get, set: (now) => { box.value = now; }, mark: wrong.mark, problem };
}

function worded(name, help, box, ...more) {
  return element("div", { class: "control" }, element("label", { for: box.id }, named(name)), box,
    helping(name, help), ...more);
}

/** Points of the plane: a row each, and handles on a picture that `handles.js` draws. */
function points({ name, help, low, high }, value, changed) {
  let list = read(value);
  const rows = element("div", { class: "points" });
  const cell = (i, k) => element("input", { type: "number", step: 0.05, min: low, max: -low, value: list[i][k],
    "aria-label": `${"xy"[k]} of point ${i + 1}`, oninput: (event) => {
      const typed = Number(event.target.value);
      if (Number.isFinite(typed)) { list[i][k] = typed; changed(); }
    } });
  const draw = () => {
    rows.replaceChildren(...list.flatMap((_, i) => [cell(i, 0), cell(i, 1),
      element("button", { type: "button", "aria-label": `Remove point ${i + 1}`, disabled: list.length < 2,
        onclick: () => { remove(i); add.focus(); } }, "×")]));
    add.disabled = list.length >= high;
  };
  const remove = (i) => { if (list.length > 1) { list.splice(i, 1); draw(); changed(); } };
  const add = element("button", { type: "button", id: `add-${name}`, onclick: () => {
    list.push([roomiest(list.map(([x]) => x), -low), 0]);
    draw();
    changed();
  } }, "Add a point");
  draw();
  const wrong = trouble(name, rows);
  return {
    node: element("fieldset", { class: "control", id: `control-${name}` }, element("legend", {}, name), rows, add,
      element("p", { class: "help" }, help), wrong.node),
    get: () => list.map((pair) => pair.join(",")).join(";"),
    set: (now) => { list = read(now); draw(); },
    mark: wrong.mark,
    points: () => list,
    move: (i, pair) => { list[i] = pair; draw(); changed(); },
    remove,
    bound: -low,
  };
}

/** The middle of the widest gap, so that no two points are the same. */
function roomiest(taken, bound) {
  const sorted = [-bound, ...taken.filter(Number.isFinite).sort((a, b) => a - b), bound];
  const gaps = sorted.slice(1).map((x, i) => x - sorted[i]);
  const at = gaps.indexOf(Math.max(...gaps));
  return Number(((sorted[at] + sorted[at + 1]) / 2).toFixed(3));
}

function read(typed) {
  return typed.split(";").filter(Boolean).map((pair) => pair.split(",").map(Number));
}

/** A slider over the values that a copy on disk holds. */
function framed({ name, help, frames }, value, changed) {
  const box = element("input", { type: "text", id: `control-${name}`, readonly: true, value });
  const slider = element("input", { type: "range", id: `slider-${name}`, min: 0, max: frames.length - 1, step: 1,
    "aria-label": `${named(name)}: ${help}`, oninput: () => { box.value = frames[slider.value]; changed(); } });
  const set = (now) => { box.value = now; slider.value = Math.max(0, frames.indexOf(now)); };
  set(value);
  const node = element("div", { class: "control" }, element("label", { for: box.id }, named(name)), box, slider, helping(name, help));
  return { node, get: () => box.value, set, mark: () => {},
    places: () => ({ low: 0, high: frames.length - 1, at: () => Number(slider.value), go: (place) => {
      slider.value = place;
      box.value = frames[place];
    } }) };
}

/** The control of a setting: its `node`, `get()` as it is typed in an address, `set`, `mark(message)`. */
export function control(spec, typed, changed) {
  const make = spec.frames ? framed : { whole: number, number, choice, text, table, points }[spec.kind];
  return make(spec, typed ?? spec.default, changed);
}

/** The settings that are not at their defaults, as an address has them. */
export function typed(controls) {
  const found = new URLSearchParams();
  for (const { spec, get: value } of controls) if (value() !== spec.default) found.set(spec.name, value());
  return found;
}
