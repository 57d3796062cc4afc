// The button that starts a long run, its progress, and the button that stops it.
import { element } from "./page.js";

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
