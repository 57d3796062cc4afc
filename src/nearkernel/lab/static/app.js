// The frame of the lab: which page is shown, its address, light and dark.
import { element, get } from "./page.js";
import { showExperiment } from "./experiment.js";
import { showClaims } from "./claims.js";

const content = document.getElementById("content");
const nav = document.getElementById("pages");
let experiments = [];
let leave = () => {};
let turns = 0; // pages shown so far: who comes late, after another page was chosen, shows nothing

function current() {
  return location.pathname.slice(1) || "regression";
}

async function show() {
  leave();
  leave = () => {};
  const name = current();
  const turn = ++turns;
  const query = new URLSearchParams(location.search);
  for (const link of nav.children) {
    if (link.dataset.name === name) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  const about = experiments.find((each) => each.name === name);
  document.title = `${about ? about.title : "Claims"} · nearkernel lab`;
  if (about) leave = showExperiment(content, about, query);
  else {
    content.replaceChildren(element("p", { class: "faint" }, "Loading …"));
    try {
      const claims = await get("/api/claims");
      if (turn === turns) leave = showClaims(content, claims, query);
    } catch (trouble) {
      if (turn === turns) content.replaceChildren(element("p", { class: "error" }, trouble.message));
    }
  }
}

/** Goes to an address of the lab without loading the page again. */
export function go(address) {
  history.pushState(null, "", address);
  show();
}

function followLinks(event) {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.getAttribute("href"));
  if (nav.contains(link)) content.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function followTheme() {
  const button = document.getElementById("theme");
  const names = ["auto", "light", "dark"];
  const use = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.querySelector("span").textContent = name;
    button.setAttribute("aria-label", `Colours: ${name}. Change.`);
    window.dispatchEvent(new Event("themechange"));
  };
  let chosen = remembered();
  use(names.includes(chosen) ? chosen : chosen = "auto");
  button.addEventListener("click", () => {
    chosen = names[(names.indexOf(chosen) + 1) % 3];
    remembered(chosen);
    use(chosen);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    window.dispatchEvent(new Event("themechange")));
}

/** The colours chosen last, or now; some browsers keep nothing. */
function remembered(chosen) {
  try { return chosen ? (localStorage.theme = chosen) : localStorage.theme; } catch { return chosen; }
}

async function begin() {
  followTheme();
  experiments = await get("/api/experiments");
  for (const { name, title } of [...experiments, { name: "claims", title: "Claims" }]) {
    nav.append(element("a", { href: `/${name}`, "data-name": name }, title));
  }
  document.body.addEventListener("click", followLinks);
  window.addEventListener("popstate", show);
  await show();
}

begin().catch((error) => content.replaceChildren(element("p", { class: "error" }, `The lab does not answer: ${error.message}`)));
