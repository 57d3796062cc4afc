// One experiment: its words, controls, pictures, numbers, and its check by real training.
import { checking } from "./check.js";
import { control, typed } from "./controls.js";
import { follow } from "./handles.js";
import { player, presets } from "./lecture.js";
import { board } from "./picture.js";
import { copied, copying, element, get, measured, program, shown, stream } from "./page.js";

const LATE = 300; // ms after which newer settings do not wait for an answer: they replace the question, if that still waits

export function showExperiment(content, about, query, around) {
  const controls = Object.fromEntries(about.controls.map((spec) =>
    [spec.name, { ...control(spec, query.get(spec.name), () => touched(spec.name)), spec }]));
  const error = element("p", { class: "error", role: "alert", id: "error" });
  const numbers = element("dl", { class: "numbers", id: "numbers", "aria-live": "polite" });
  const notes = element("div", { class: "notes" });
  const speed = element("p", { class: "speed", id: "speed" });
  const pictures = element("div", { class: "shown" });
  const python = program("");
  const check = copied ? { nodes: [], stop: () => {} } : checking(about, runCheck);
  const movie = player(controls[about.movie], () => { alone(); changed(); }, settled);
  const [tries, forget] = presets(about.presets, (chosen) => { movie.stop(); use(chosen); changed(); });
  const boards = [];
  const waiting = []; // who waits for the page to have answered
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
  const reset = element("button", { type: "button", id: "reset", onclick: () => { touched(""); use({}); changed(); } }, "Reset");
  const fields = element("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
    copied ? element("p", { class: "help" }, "This is a copy on disk: the Play slider and the presets work. Run ",
      element("code", {}, "nearkernel lab"), " to move all controls.") : null,
    ...Object.values(controls).map(({ node }) => node),
    copied ? null : element("div", { class: "buttons" }, reset, copying("Copy link", () => location.href)));
  hold();
  content.replaceChildren(
    element("div", { class: "head" }, element("h1", {}, about.title), around.turning),
    element("p", { class: "about" }, about.about), formulas,
    element("div", { class: "deck" }, element("div", { class: "run" }, ...check.nodes), ...movie.nodes, around.fullscreen(), tries ?? null),
    error,
    element("div", { class: "work" }, fields, element("div", { class: "results" }, pictures, numbers, notes, speed, python.details)));

  /** In a copy on disk, only the control of the movie moves. */
  function hold() {
    if (!copied) return;
    for (const { node, spec } of Object.values(controls)) {
      if (!spec.frames) for (const each of node.querySelectorAll("input, select, button, textarea")) each.disabled = true;
    }
  }

  function use(chosen) {
    for (const [name, { set, spec }] of Object.entries(controls)) set(chosen[name] ?? spec.default);
    hold(); // a table of points has new rows
  }

  /** A copy on disk knows the frames of its movie at the defaults alone. */
  function alone() {
    if (!copied) return;
    use({ [about.movie]: controls[about.movie].get() });
    forget?.();
  }

  /** A hand has moved a control. */
  function touched(name) {
    movie.stop();
    forget?.();
    if (name === about.movie) alone();
    if (name) changed();
  }

  function address() {
    const text = typed(Object.values(controls)).toString();
    return `/${about.name}${text ? `?${text}` : ""}`;
  }

  /** What is wrong with the settings before anybody is asked. */
  function problem() {
    return Object.values(controls).map((each) => each.problem?.()).find(Boolean) ?? "";
  }

  function changed() {
    if (gone) return;
    if (!copied && !problem()) history.replaceState(null, "", address());
    check.stop();
    changedAt ??= performance.now();
    if (asked === answered) ask(); // else the newest settings are asked for when the answer is here, or when it is late
    else timer ||= setTimeout(ask, LATE);
  }

  /** Resolves when all that was asked is answered. */
  function settled() {
    return new Promise((done) => { waiting.push(done); rest(); });
  }

  function rest() {
    if (gone || (asked === answered && changedAt === null)) for (const done of waiting.splice(0)) done();
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
      speed.textContent = "Computing … the first answer for a new size or formula takes a few seconds.";
    }, 500);
    try {
      if (problem()) throw new Error(problem());
      const answer = await get(`/api/experiments/${about.name}?${typed(Object.values(controls))}`, leaving.signal);
      if (answer === null || mine < answered) return; // a newer question has replaced or overtaken this one
      await take(answer);
      tell("");
      const ms = performance.now() - began;
      speed.textContent = copied ? "" : `Answered in ${ms.toFixed(0)} ms.`;
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
    if (changedAt !== null) ask(); else rest();
  }

  /** An error stands beside the field that it names, or above the controls if it names none. */
  function tell(message) {
    const names = (name) => message.startsWith(name.replaceAll("_", "-")) && /^[ :]/.test(message.slice(name.length));
    const found = Object.keys(controls).find(names);
    for (const [name, { mark }] of Object.entries(controls)) mark(name === found ? message : "");
    error.textContent = found ? "" : message;
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
      element("dd", { "data-number": name, "data-value": value }, sem === null ? shown(value) : measured(value, sem),
        element("small", {}, help))]));
    notes.replaceChildren(...answer.notes.map((note) => element("p", {}, note)));
    python.set(answer.python);
  }

  function grip() {
    const points = Object.values(controls).find(({ spec }) => spec.kind === "points");
    const held = boards.find((each) => each.shown()?.picture.parts.some((part) => part.kind === "points"));
    if (points && held && !copied) follow(held.plot, points);
  }

  async function runCheck(signal, progress) {
    movie.stop();
    await stream(`/api/experiments/${about.name}/check?${typed(Object.values(controls))}`, signal, (event) => {
      if (event.error) throw new Error(event.error);
      progress(event);
      if (event.answer) take(event.answer).catch((trouble) => tell(trouble.message));
    });
  }

  const redraw = async () => { await Promise.all(boards.map((each) => each.redraw())); grip(); };
  window.addEventListener("themechange", redraw);
  const sized = new ResizeObserver(() => requestAnimationFrame(grip));
  sized.observe(content);
  ask();
  return () => {
    gone = true;
    leaving.abort();
    clearTimeout(timer);
    check.stop();
    movie.stop();
    rest();
    window.removeEventListener("themechange", redraw);
    sized.disconnect();
    for (const { plot } of boards) Plotly.purge(plot);
  };
}
