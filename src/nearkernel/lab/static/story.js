// The first page: the story in six pictures, and all pages.
import { addressOf, element, get } from "./page.js";
import { keys, sketch } from "./picture.js";

export async function showStory(content, experiments, around) {
  const scenes = await get("/static/story.json");
  const names = scenes.map(() => element("div", { class: "legend" }));
  const plots = scenes.map(() => element("div", { class: "plot", "aria-hidden": "true" }));
  const link = (scene) => `${addressOf(scene.page)}${!around.still && scene.query ? `?${scene.query}` : ""}`;
  // A copy of some pages tells the whole story, too; pages that it lacks cannot be opened.
  const card = (scene, ...parts) => (experiments.some(({ name }) => name === scene.page)
    ? element("a", { class: "scene", href: link(scene), "data-scene": scene.page }, ...parts) : element("div", { class: "scene" }, ...parts));
  around.turning.prepend(around.fullscreen());
  const groups = [...new Set(experiments.map(({ group }) => group))];
  content.replaceChildren(
    element("div", { class: "head" }, element("h1", {}, "What does a neural network do after training?"), around.turning),
    element("p", { class: "about" }, "Random networks are Gaussian processes. Wide ones learn like kernel machines. Networks of finite width " +
      "learn features, a little or a lot. Six pictures tell the story. Each opens an experiment, where theory answers while you move a slider " +
      "and trained networks check it."),
    element("ol", { class: "story" }, ...scenes.map((scene, i) => element("li", {}, card(scene,
      element("h2", {}, `${i + 1}. ${scene.title}`), plots[i], names[i], element("p", {}, scene.words))))),
    element("h2", {}, "All pages"),
    ...groups.map((group) => element("section", { class: "pages" }, element("h3", {}, group), element("ul", {},
      ...experiments.filter((each) => each.group === group).map((each) => element("li", {},
        element("a", { href: addressOf(each.name) }, each.title), ` ${each.about.split(/(?<=\.) /)[0]}`))))));
  const draw = () => Promise.all(scenes.map((scene, i) => {
    names[i].replaceChildren(...keys(scene.picture));
    return sketch(plots[i], scene.picture);
  }));
  window.addEventListener("themechange", draw);
  await draw();
  content.dataset.drawn = scenes.length;
  return () => {
    window.removeEventListener("themechange", draw);
    for (const plot of plots) Plotly.purge(plot);
  };
}
