// The frame of the lab: which page is shown, its address, turning pages, light and dark.
import { addressOf, copied, element, get } from "./page.js";
import { showClaims } from "./claims.js";
import { showExperiment } from "./experiment.js";
import { screenFilling } from "./lecture.js";
import { showStory } from "./story.js";

const content = document.getElementById("content");
const nav = document.getElementById("pages");
const menu = document.getElementById("menu");
const fullscreen = screenFilling(content);
let experiments = [];
let pages = []; // all, in order: name and title
let leave = () => {};
let turns = 0; // pages shown so far: who comes late, after another page was chosen, shows nothing

function current() {
  return copied ? copied.page : location.pathname.slice(1);
}

async function show() {
  leave();
  leave = () => {};
  const name = current();
  const turn = ++turns;
  const query = new URLSearchParams(copied ? "" : location.search);
  for (const link of nav.children) {
    if (link.dataset.name === name) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  menu.value = name;
  const about = experiments.find((each) => each.name === name);
  document.title = `${pages.find((each) => each.name === name)?.title ?? "Claims"} · nearkernel lab`;
  const around = { turning: turning(name), fullscreen, still: Boolean(copied) };
  delete content.dataset.answered;
  if (about) leave = showExperiment(content, about, query, around);
  else {
    content.replaceChildren(element("p", { class: "faint" }, "Loading …"));
    try {
      const claims = name === "claims" ? await get("/api/claims") : null;
      if (turn !== turns) return;
      const done = claims ? showClaims(content, claims, query, around) : await showStory(content, experiments, around);
      if (turn === turns) leave = done; else done();
    } catch (trouble) {
      if (turn === turns) content.replaceChildren(element("p", { class: "error" }, trouble.message));
    }
  }
}

/** Links to the page before and the page after. */
function turning(name) {
  const at = pages.findIndex((each) => each.name === name);
  const link = (page, id, text) => (page ? element("a", { id, href: addressOf(page.name), title: page.title }, text(page.menu)) : null);
  return element("div", { class: "turning" }, link(pages[at - 1], "previous", (title) => `‹ ${title}`), link(pages[at + 1], "next", (title) => `${title} ›`));
}

/** Goes to an address of the lab without loading the page again. */
function go(address) {
  if (copied) { location.href = address; return; }
  history.pushState(null, "", address);
  show();
  window.scrollTo(0, 0);
  content.scrollTo(0, 0);
}

function followLinks(event) {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const stays = nav.contains(link);
  go(link.getAttribute("href"));
  if (stays) content.focus({ preventScroll: true });
}

/** On the whole screen, the keys of a presenter turn pages. */
function followKeys(event) {
  if (!document.documentElement.classList.contains("lecture")) return;
  const id = { PageUp: "previous", PageDown: "next" }[event.key];
  const link = id && document.getElementById(id);
  if (!link) return;
  event.preventDefault();
  go(link.getAttribute("href"));
}

function followTheme() {
  const button = document.getElementById("theme");
  const names = ["auto", "light", "dark"];
  const use = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.querySelector("span").textContent = name;
    button.setAttribute("aria-label", `Colors: ${name}. Change.`);
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

/** The colors chosen last, or now; some browsers keep nothing. */
function remembered(chosen) {
  try { return chosen ? (localStorage.theme = chosen) : localStorage.theme; } catch { return chosen; }
}

/** All pages: links where there is room, a select where there is not. */
function fillMenus() {
  const story = { name: "", title: "The story", menu: "Story", group: "" };
  pages = [story, ...experiments, ...(copied ? [] : [{ name: "claims", title: "Claims", menu: "Claims", group: "Verdicts" }])];
  for (const { name, title, menu: word } of pages) nav.append(element("a", { href: addressOf(name), "data-name": name, title }, word));
  for (const group of new Set(pages.map((each) => each.group))) {
    const options = pages.filter((each) => each.group === group).map(({ name, title }) => element("option", { value: name }, title));
    menu.append(...(group ? [element("optgroup", { label: group }, ...options)] : options));
  }
  menu.addEventListener("change", () => go(addressOf(menu.value)));
}

async function begin() {
  followTheme();
  experiments = await get("/api/experiments");
  fillMenus();
  document.body.addEventListener("click", followLinks);
  document.addEventListener("keydown", followKeys);
  window.addEventListener("popstate", show);
  await show();
}

begin().catch((error) => content.replaceChildren(element("p", { class: "error" }, `The lab does not answer: ${error.message}`)));
