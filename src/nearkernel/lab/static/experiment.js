// One experiment: its words, controls, pictures, numbers, and its check by real training.
import { control, typed } from "./controls.js";
import { follow } from "./handles.js";
import { board } from "./picture.js";
import { copying, element, get, program, shown, stream } from "./page.js";

const LATE = 300; // ms after which newer settings do not wait for an answer: they replace the question, if that still waits

export function showExperiment(content, about, query) {
  const controls = Object.fromEntries(about.controls.map((spec) =>
    [spec.name, { ...control(spec, query.get(spec.name), changed), spec }]));
  const error = element("p", { class: "error", role: "alert", id: "error" });
  const numbers = element("dl", { class: "numbers", id: "numbers", "aria-live": "polite" });
  const notes = element("div", { class: "notes" });
  const speed = element("p", { class: "speed", id: "speed" });
  const pictures = element("div", { class: "shown" });
  const python = program("");
  const check = checking(about, runCheck);
  const boards = [];
  const leaving = new AbortController();
  let asked = 0; // questions so far
  let answered = 0; // the newest question that has an answer
  let changedAt = null; // when a setting changed that has not been asked for
  let timer = 0;
  let gone = false;
  let newest = null;
  let drawn = Promise.resolve();

  const formulas = element("div", { class: "formulas" });
  formulas.innerHTML = about.formulas.join("");
  const reset = element("button", { type: "button", id: "reset", onclick: () => {
    for (const { set, spec } of Object.values(controls)) set(spec.default);
    changed();
  } }, "Reset");
  content.replaceChildren(
    element("h1", {}, about.title), element("p", { class: "about" }, about.about), formulas,
    element("div", { class: "work" },
      element("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
        ...Object.values(controls).map(({ node }) => node), element("div", { class: "run" }, ...check.nodes),
        element("div", { class: "buttons" }, reset, copying("Copy link", () => location.href)), error),
      element("div", {}, pictures, numbers, notes, speed, python.details)));

  function address() {
    const text = typed(Object.values(controls)).toString();
    return `/${about.name}${text ? `?${text}` : ""}`;
  }

  function changed() {
    if (gone) return;
    history.replaceState(null, "", address());
    check.stop();
    changedAt ??= performance.now();
    if (asked === answered) ask(); // else the newest settings are asked for when the answer is here, or when it is late
    else timer ||= setTimeout(ask, LATE);
  }

  async function ask() {
    if (gone) return;
    clearTimeout(timer);
    timer = 0;
    const mine = ++asked;
    const began = changedAt ?? performance.now();
    changedAt = null;
    const slow = setTimeout(() => { // said only where one would wonder
      tell("");
      pictures.classList.add("waiting");
      speed.textContent = "Computing … a new size or formula takes some seconds, the first time.";
    }, 500);
    try {
      const answer = await get(`/api/experiments/${about.name}?${typed(Object.values(controls))}`, leaving.signal);
      if (answer === null || mine < answered) return; // a newer question has replaced or overtaken this one
      await take(answer);
      tell("");
      const ms = performance.now() - began;
      speed.textContent = `Answered in ${ms.toFixed(0)} ms.`;
      speed.dataset.ms = ms.toFixed(1);
      content.dataset.answered = Number(content.dataset.answered ?? 0) + 1;
    } catch (trouble) {
      if (trouble.name === "AbortError" || mine < answered) return;
      tell(trouble.message);
      speed.textContent = "";
    } finally {
      clearTimeout(slow);
    }
    answered = Math.max(answered, mine);
    if (asked > answered) return; // a newer question is on its way
    pictures.classList.remove("waiting");
    if (changedAt !== null) ask();
  }

  function tell(message) {
    error.textContent = message;
    for (const [name, { mark }] of Object.entries(controls)) {
      mark(Boolean(message) && message.startsWith(name.replaceAll("_", "-")));
    }
  }

  /** Shows answers one after the other, leaving out those that a newer one has overtaken. */
  function take(answer) {
    newest = answer;
    drawn = drawn.then(() => (newest === answer ? draw(answer) : undefined));
    return drawn;
  }

  async function draw(answer) {
    if (gone) return;
    while (boards.length < answer.pictures.length) {
      const made = board(about.name, () => { python.details.open = true; python.details.scrollIntoView({ behavior: "smooth" }); });
      boards.push(made);
      pictures.append(made.node);
    }
    while (boards.length > answer.pictures.length) boards.pop().node.remove();
    await Promise.all(answer.pictures.map((picture, i) => boards[i].draw(picture, answer.csv[i])));
    grip();
    numbers.replaceChildren(...answer.numbers.flatMap(({ name, value, help, sem }) => [element("dt", {}, name),
      element("dd", { "data-number": name, "data-value": value }, shown(value) + (sem === null ? "" : ` ± ${shown(sem)}`),
        element("small", {}, help))]));
    notes.replaceChildren(...answer.notes.map((note) => element("p", {}, note)));
    python.set(answer.python);
  }

  function grip() {
    const points = Object.values(controls).find(({ spec }) => spec.kind === "points");
    const held = boards.find((each) => each.shown()?.picture.parts.some((part) => part.kind === "points"));
    if (points && held) follow(held.plot, points);
  }

  async function runCheck(signal, progress) {
    await stream(`/api/experiments/${about.name}/check?${typed(Object.values(controls))}`, signal, (event) => {
      if (event.error) throw new Error(event.error);
      progress(event);
      if (event.answer) take(event.answer).catch((trouble) => tell(trouble.message));
    });
  }

  const redraw = async () => { await Promise.all(boards.map((each) => each.redraw())); grip(); };
  window.addEventListener("themechange", redraw);
  const sized = new ResizeObserver(() => requestAnimationFrame(grip));
  sized.observe(pictures);
  ask();
  return () => {
    gone = true;
    leaving.abort();
    clearTimeout(timer);
    check.stop();
    window.removeEventListener("themechange", redraw);
    sized.disconnect();
    for (const { plot } of boards) Plotly.purge(plot);
  };
}

/** The button that starts a long run, its progress, and the button that stops it. */
export function checking(about, run) {
  if (!about.button) return { nodes: [], stop: () => {}, start: () => {} };
  let running = null;
  const start = element("button", { type: "button", class: "main", id: "check", onclick: begin }, about.button);
  const stopper = element("button", { type: "button", id: "stop", hidden: true, onclick: () => stop() }, "Stop");
  const bar = element("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress" });
  const words = element("p", { class: "notes", id: "progress", role: "status" });

  async function begin() {
    stop();
    const mine = running = new AbortController();
    for (const each of [stopper, bar]) each.hidden = false;
    start.disabled = true;
    words.textContent = "starting";
    const began = performance.now();
    try {
      await run(mine.signal, ({ share, words: now }) => {
        if (running !== mine) return;
        if (share === null) bar.removeAttribute("value"); else bar.value = share;
        words.textContent = now + left(share, performance.now() - began);
      });
    } catch (trouble) {
      if (trouble.name !== "AbortError") { words.textContent = trouble.message; mine.abort(); }
    }
    if (running === mine) end();
  }

  /** How long it will go on, once that can be guessed. */
  function left(share, ms) {
    const seconds = (ms / 1000) * (1 / share - 1);
    if (!(share > 0.02 && ms > 3000 && seconds > 2)) return "";
    return seconds < 90 ? `, about ${Math.ceil(seconds)} s left` : `, about ${Math.ceil(seconds / 60)} min left`;
  }

  function end() {
    running = null;
    for (const each of [stopper, bar]) each.hidden = true;
    start.disabled = false;
  }

  function stop() {
    if (!running) { words.textContent = ""; return; } // what it said is of settings that have changed
    running.abort();
    words.textContent = "stopped";
    end();
  }

  return { nodes: [element("div", { class: "buttons" }, start, stopper), bar, words], stop, start: begin };
}
