// For an audience: a setting that moves by itself, views to try, and the page on the whole screen.
import { named } from "./controls.js";
import { element } from "./page.js";

const FRAMES = 60; // of a movie, if every position can be asked for
const LEAST = 90; // ms that a frame is shown

/** The button that moves a control from end to end; `shown()` resolves when the page has answered. */
export function player(control, moved, shown) {
  if (!control?.places) return { nodes: [], stop: () => {} };
  const name = named(control.spec.name);
  const button = element("button", { type: "button", id: "play", onclick: () => (playing ? stop() : play()) });
  let playing = null;
  label();

  function label() {
    button.textContent = playing ? "❚❚ Pause" : `▶ Play ${name}`;
    button.setAttribute("aria-pressed", Boolean(playing));
  }

  async function play() {
    const mine = playing = {};
    label();
    const { low, high, at, go } = control.places();
    const step = Math.max(1, (high - low) / FRAMES);
    for (let place = at() >= high ? low : at(); playing === mine; place = Math.min(high, place + step)) {
      const began = performance.now();
      go(Math.round(place));
      moved();
      await shown();
      await new Promise((after) => setTimeout(after, Math.max(0, LEAST - (performance.now() - began))));
      if (place >= high && playing === mine) stop();
    }
  }

  function stop() {
    playing = null;
    label();
  }

  return { nodes: [button], stop };
}

/** Buttons of views to try; `choose(settings)` shows one. */
export function presets(list, choose) {
  if (!list.length) return [];
  const see = element("p", { class: "see", id: "see", role: "status" });
  const buttons = list.map((each, i) => element("button", { type: "button", class: "preset", "data-preset": i, "aria-pressed": "false",
    onclick: (event) => {
      choose(each.settings);
      for (const other of buttons) other.setAttribute("aria-pressed", other === event.currentTarget);
      see.textContent = each.see;
    } }, each.title));
  const forget = () => {
    see.textContent = "";
    for (const button of buttons) button.setAttribute("aria-pressed", "false");
  };
  return [element("div", { class: "try", id: "try" }, element("span", {}, "Try this:"), ...buttons, see), forget];
}

/** The button that gives the page the whole screen, with larger words; leaving by Escape is noticed. */
export function screenFilling(content) {
  const root = document.documentElement;
  const word = () => (root.classList.contains("lecture") ? "Exit fullscreen" : "Fullscreen");
  const set = (on) => {
    root.classList.toggle("lecture", on);
    document.getElementById("fullscreen")?.replaceChildren(word());
    window.dispatchEvent(new Event("themechange")); // pictures are drawn again, in their new size
  };
  document.addEventListener("fullscreenchange", () => set(document.fullscreenElement === content));
  const toggle = async () => {
    const on = !root.classList.contains("lecture");
    const ask = on ? content.requestFullscreen?.() : document.fullscreenElement && document.exitFullscreen();
    try { await ask; } catch { /* not allowed here: larger words alone */ }
    if (root.classList.contains("lecture") !== on) set(on);
  };
  return () => element("button", { type: "button", id: "fullscreen", onclick: toggle, title: "Full screen; Page Up and Page Down change pages" },
    word());
}
