// What the curves of a picture are: grouped, once a name, each a button that hides it.
import { element } from "./page.js";

/** Names with their group, look and color, in the order of the picture. */
function entries(parts, look) {
  const found = new Map();
  for (const part of parts) {
    if (part.type !== "Curve" || found.has(part.name)) continue;
    const kind = part.band ? "band" : part.kind;
    found.set(part.name, { name: part.name, group: part.group, kind, color: part.kind === "points" ? look.ink : look.series[part.series] });
  }
  return [...found.values()];
}

/** What a name looks like in the picture, and the name. */
function key({ name, kind, color }) {
  return [element("i", { class: `key ${kind}`, style: `--key: ${color}` }), name];
}

/** The names of a picture that is only looked at. */
export function names(picture, look) {
  const all = entries(picture.parts, look);
  return all.length < 2 ? [] : all.map((each) => element("span", {}, ...key(each)));
}

export function legend(picture, look, hidden, redraw) {
  const all = entries(picture.parts, look);
  if (all.length < 2) return [];
  const groups = [...new Set(all.map(({ group }) => group))];
  return groups.map((group) => element("div", { class: "group" },
    group ? element("span", { class: "title" }, group) : null,
    ...all.filter((each) => each.group === group).map((each) => element("button", {
      type: "button", "data-curve": each.name, "aria-pressed": !hidden.has(each.name), title: "Show or hide",
      onclick: () => { if (!hidden.delete(each.name)) hidden.add(each.name); redraw(); },
    }, ...key(each)))));
}
