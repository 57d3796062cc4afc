// Handles over a plot: data points that are dragged with the pointer or moved with arrow keys.
const NS = "http://www.w3.org/2000/svg";

export function handles(plot, control) {
  plot.querySelector(".handles")?.remove();
  const { xaxis, yaxis } = plot._fullLayout;
  const layer = document.createElementNS(NS, "svg");
  layer.setAttribute("class", "handles");
  layer.setAttribute("width", "100%");
  layer.setAttribute("height", "100%");
  const clip = (v) => Number(Math.min(control.bound, Math.max(-control.bound, v)).toFixed(3));
  control.points().forEach(([x, y], i) => {
    const circle = document.createElementNS(NS, "circle");
    circle.setAttribute("cx", xaxis._offset + xaxis.d2p(x));
    circle.setAttribute("cy", yaxis._offset + yaxis.d2p(y));
    circle.setAttribute("r", 9);
    circle.setAttribute("tabindex", 0);
    circle.setAttribute("role", "button");
    circle.setAttribute("data-point", i);
    circle.setAttribute("aria-label", `Point ${i + 1} at ${x}, ${y}: arrow keys move it, Delete removes it`);
    circle.addEventListener("pointerdown", (event) => drag(event, circle, i));
    circle.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 0.2 : 0.05;
      const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
      if (event.key === "Delete") control.remove(i);
      else if (by) { const [a, b] = control.points()[i]; control.move(i, [clip(a + by[0]), clip(b + by[1])]); }
      else return;
      event.preventDefault();
    });
    layer.append(circle);
  });
  plot.append(layer);

  function drag(event, circle, i) {
    event.preventDefault();
    const corner = plot.getBoundingClientRect();
    plot.dataset.dragging = i;
    const move = (now) => {
      const at = [xaxis.p2d(now.clientX - corner.left - xaxis._offset), yaxis.p2d(now.clientY - corner.top - yaxis._offset)];
      circle.setAttribute("cx", now.clientX - corner.left);
      circle.setAttribute("cy", now.clientY - corner.top);
      control.move(i, at.map(clip));
    };
    const up = () => {
      window.removeEventListener("pointermove", move);
      for (const end of ["pointerup", "pointercancel"]) window.removeEventListener(end, up);
      delete plot.dataset.dragging;
      if (plot.isConnected) handles(plot, control);
    };
    window.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, up);
  }
}

/** Draws the handles again where the answer has moved the axes, keeping the focus; not under a pointer that drags. */
export function follow(plot, control) {
  if (plot.dataset.dragging !== undefined) return;
  const focused = plot.querySelector(".handles circle:focus")?.dataset.point;
  handles(plot, control);
  if (focused !== undefined) plot.querySelector(`.handles circle[data-point="${focused}"]`)?.focus();
}
