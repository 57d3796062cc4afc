// Small tools: elements, requests, streams, files to save.

/** An element with attributes, event listeners (onclick: ...) and children. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A text in which C_W has a subscript. */
export function lowered(text) {
  return text.split(/\b([A-Za-z]_\w)\b/).map((part, i) => (i % 2 ? element("i", {}, part[0], element("sub", {}, part[2])) : part));
}

// A copy on disk carries its answers with it; there is no server to ask.
const KEPT = window.nearkernelCopy ?? null;

/** The page that a copy on disk shows; null if a server is behind the page. */
export const copied = KEPT && { page: KEPT.page };

/** Where a page of the lab is. */
export function addressOf(name) {
  if (!KEPT) return `/${name}`;
  return name ? `${name}.html` : "index.html";
}

/** The answer that a copy holds for settings. */
function kept(address) {
  const [path, query] = address.split("?");
  if (path === "/api/experiments") return KEPT.experiments;
  if (path === "/static/story.json") return KEPT.story;
  const found = KEPT.answers[[...new URLSearchParams(query)].map((pair) => pair.join("=")).join("&")];
  if (!found) throw new Error("this copy does not hold these settings; run nearkernel lab to compute them.");
  if (found.error) throw new Error(found.error);
  return found;
}

// This page's own name: its newer question replaces the older one that still waits.
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const REPLACED = 409;

/** What the server answers; a server that is gone is told in words. */
async function asked(address, signal) {
  try {
    return await fetch(address, { signal, headers: { "X-Lab-Page": PAGE } });
  } catch (trouble) {
    throw trouble.name === "AbortError" ? trouble : new Error("the lab does not answer: is `nearkernel lab` still running?");
  }
}

/** JSON from the server, or null if a newer question has replaced this one; one-line errors are thrown. */
export async function get(address, signal) {
  if (KEPT) return kept(address);
  const response = await asked(address, signal);
  if (response.status === REPLACED) return null;
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(answer.error ?? response.statusText);
  return answer;
}

/** Calls `take` with each line of a stream as it comes. */
export async function stream(address, signal, take) {
  const response = await asked(address, signal);
  if (!response.ok) throw new Error((await response.json()).error);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) take(JSON.parse(line));
  }
}

/** Offers `content` (a Blob, or an address of data) as a file. */
export function save(name, content) {
  const address = content instanceof Blob ? URL.createObjectURL(content) : content;
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  if (content instanceof Blob) setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** A number for people: 4 digits, powers of ten where it is very large or small. */
export function shown(value) {
  if (value === null) return "not a number";
  if (typeof value === "string") return value;
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(3) : Number(value.toPrecision(5)).toString();
}

/** A value with its standard error: two digits of the error, and no more of the value. */
export function measured(value, sem) {
  if (!(sem > 0) || value === null) return `${shown(value)} ± ${shown(sem)}`;
  const decimals = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(sem))));
  if (decimals > 6) return `${shown(value)} ± ${shown(sem)}`;
  const rounded = Number(value.toFixed(decimals)) + 0;  // no -0.0
  return `${rounded.toFixed(decimals)} ± ${sem.toFixed(decimals)}`;
}

/** A button that copies what `text` gives. */
export function copying(word, text) {
  const button = element("button", { type: "button", onclick: async () => {
    button.textContent = await clipped(text()) ? "Copied" : "Not allowed here";
    setTimeout(() => { button.textContent = word; }, 1500);
  } }, word);
  return button;
}

async function clipped(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const box = element("textarea"); // from another machine, without https, browsers know this way alone
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  return done;
}

/** A program that can be opened, read and copied. */
export function program(text) {
  const code = element("pre", { id: "python" }, text);
  const details = element("details", { class: "program" },
    element("summary", {}, "Python that makes the same figures"), element("div", { class: "buttons" },
      copying("Copy", () => code.textContent)), code);
  return { details, set: (now) => { code.textContent = now; } };
}
