// The claims: verdicts of the last whole run, and each claim run again while you watch.
import { control, typed } from "./controls.js";
import { checking } from "./check.js";
import { element, get, lowered, program, save, stream } from "./page.js";

const MARKS = { confirmed: "✓", refuted: "✗", "not run": "·" };

export function showClaims(content, { version, claims }, query, around) {
  const confirmed = claims.filter(({ verdict }) => verdict === "confirmed").length;
  const list = element("div", { class: "list", role: "navigation", "aria-label": "Claims" });
  const detail = element("div", { id: "claim", "aria-live": "polite" });
  const search = element("input", { type: "search", id: "search", placeholder: "Search the claims", "aria-label": "Search the claims",
    oninput: () => fill() });
  let leave = () => {};
  let turns = 0; // claims opened so far: an answer that comes late shows nothing
  around.turning.prepend(around.fullscreen());
  content.replaceChildren(
    element("div", { class: "head" }, element("h1", {}, "Claims"), around.turning),
    element("p", { class: "about" }, `Statements of the theory, each with an experiment that could refute it. ${confirmed} of ` +
      `${claims.length} were confirmed in the last full run (version ${version}). Open one to run a smaller version of it here.`),
    element("div", { class: "claims" }, element("div", {}, search, list), detail));

  function fill() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = new URLSearchParams(location.search).get("name");
    const fits = (claim) => words.every((word) => `${claim.name} ${claim.topic} ${claim.statement}`.toLowerCase().includes(word));
    const nodes = [];
    let topic = "";
    for (const claim of claims.filter(fits)) {
      if (claim.topic !== topic) nodes.push(element("h2", {}, topic = claim.topic));
      const good = claim.verdict === "confirmed" ? "good" : claim.verdict === "refuted" ? "bad" : "faint";
      nodes.push(element("a", { href: `/claims?name=${claim.name}`, "data-claim": claim.name, "data-verdict": claim.verdict,
        "aria-current": claim.name === chosen ? "true" : null, onclick: open },
      element("span", { class: good, title: claim.verdict }, MARKS[claim.verdict] ?? "·"), element("span", {}, claim.name),
      element("small", {}, ...lowered(claim.statement))));
    }
    list.replaceChildren(...(nodes.length ? nodes : [element("p", { class: "faint" }, "No claim matches.")]));
  }

  function open(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    history.pushState(null, "", event.currentTarget.getAttribute("href"));
    fill();
    show(event.currentTarget.dataset.claim, new URLSearchParams(location.search));
  }

  async function show(name, settings) {
    leave();
    leave = () => {};
    const turn = ++turns;
    try {
      const about = await get(`/api/claims/${encodeURIComponent(name)}`);
      if (turn === turns) leave = showClaim(detail, about, settings);
    } catch (trouble) {
      if (turn === turns) detail.replaceChildren(element("p", { class: "error" }, trouble.message));
    }
  }

  fill();
  show(query.get("name") ?? claims[0].name, query);
  return () => { turns += 1; leave(); };
}

function showClaim(detail, about, query) {
  const controls = about.controls.map((spec) => ({ spec, ...control(spec, query.get(spec.name), changed) }));
  const verdict = element("p", { id: "verdict" });
  const rows = element("div", { class: "scroll" });
  const drawing = element("figure", { hidden: true });
  const saves = element("div", { class: "save" });
  const python = program(about.python);
  const check = checking({ button: "Run it now" }, run);
  const formula = element("p");
  formula.innerHTML = about.formula; // made and escaped by the server

  function changed() {
    const more = typed(controls).toString();
    history.replaceState(null, "", `/claims?name=${about.name}${more ? `&${more}` : ""}`);
    check.stop();
  }

  function fill(lines) {
    rows.replaceChildren(element("table", {}, element("tr", {}, ...about.heads.map((head) => element("th", {}, head))),
      ...lines.map((line) => element("tr", { class: line.at(-1) === "ok" ? null : "bad" }, ...line.map((cell) => element("td", {}, ...lowered(cell)))))));
  }

  async function run(signal, progress) {
    await stream(`/api/claims/${about.name}/check?${typed(controls)}`, signal, (event) => {
      if (event.error) throw new Error(event.error);
      progress(event);
      if (!event.record) return;
      const good = event.record.verdict === "confirmed";
      verdict.replaceChildren(element("b", { class: good ? "good" : "bad" }, event.record.verdict), ` just now, in ${event.record.seconds} s`);
      verdict.dataset.verdict = event.record.verdict;
      fill(event.record.rows);
      drawing.innerHTML = event.svg;
      drawing.append(saves);
      drawing.hidden = false;
      const file = (ending, content) => element("button", { type: "button", "data-save": ending, onclick: () =>
        save(`nearkernel-${about.name}.${ending}`, content) }, ending.toUpperCase());
      saves.replaceChildren(file("png", `data:image/png;base64,${event.png}`),
        file("svg", new Blob([event.file], { type: "image/svg+xml" })), file("csv", new Blob([event.csv], { type: "text/csv" })));
    });
  }

  verdict.append(element("b", { class: about.verdict === "confirmed" ? "good" : "faint" }, about.verdict), " in the last full run");
  fill(about.rows);
  detail.replaceChildren(
    element("h2", {}, about.name), element("p", {}, ...lowered(about.statement)),
    ...(about.erratum ? [element("p", { class: "notes" }, element("b", {}, "Erratum: "), about.erratum)] : []),
    formula, element("p", { class: "notes" }, `Source: ${about.source}`),
    element("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
      ...controls.map(({ node }) => node), element("div", { class: "run" }, ...check.nodes)),
    verdict, rows, drawing, python.details);
  if (query.has("name")) check.start(); // who only looks in has asked for nothing yet
  return () => check.stop();
}
