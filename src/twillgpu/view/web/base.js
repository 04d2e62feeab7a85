"use strict";
/* What all pictures share: elements, patterns, the tip, a window on an axis with keys, wheel and drag. */
const page = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const state = { variant: 0, before: Math.min(1, page.variants.length - 1), whole: false };
const opOf = new Map(page.ops.map((op) => [op.name, op]));
const lineOf = new Map(page.lines);

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

function number(value) {
  return Math.round(value).toLocaleString("en-US");
}

/* Six colours, each with a pattern of its own, so that colour is never the only mark. */
function patterns() {
  const holder = draw(document.body, "svg", { width: 0, height: 0, "aria-hidden": "true", style: "position:absolute" });
  const shapes = ["", "M0 8L8 0", "M2 2h1.5v1.5h-1.5zM6 6h1.5v1.5h-1.5z", "M0 0L8 8", "M0 8L8 0M0 0L8 8", "M4 0V8M0 4H8"];
  page.colours.forEach((colour, index) => {
    const size = { id: `p${index}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" };
    const pattern = draw(holder, "pattern", size);
    draw(pattern, "rect", { width: 8, height: 8, fill: colour });
    draw(pattern, "path", { d: shapes[index], stroke: "#00000088", "stroke-width": 1, fill: "none" });
  });
}

function paint(index) {
  return `url(#p${index % page.colours.length})`;
}

const tip = document.getElementById("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
}

function hideTip() {
  tip.hidden = true;
  for (const one of document.querySelectorAll(".same")) one.classList.remove("same");
}

/* The words for an op: name, kind, source line with its text. */
function sourceOf(name) {
  const op = opOf.get(name);
  if (!op || !op.source) return "";
  const text = lineOf.get(op.source);
  return `\n${op.source}${text ? `: ${text.trim()}` : ""}`;
}

function sameOp(name) {
  for (const one of document.querySelectorAll(`[data-op="${CSS.escape(name)}"]`)) one.classList.add("same");
}

/* Hover and the keys [ and ] on whatever has a tip: elements with the class "hit" and words in data-tip. */
function explainable(svg) {
  let chosen = -1;
  const explain = (element, x, y) => {
    hideTip();
    showTip(element.dataset.tip, x, y);
    if (element.dataset.op) sameOp(element.dataset.op);
  };
  svg.addEventListener("pointermove", (event) => {
    const element = event.target.closest(".hit");
    if (element) explain(element, event.clientX, event.clientY);
    else hideTip();
  });
  svg.addEventListener("pointerleave", hideTip);
  svg.addEventListener("blur", hideTip);
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
    if (event.key !== "[" && event.key !== "]") return;
    const hits = [...svg.querySelectorAll(".hit")];
    if (!hits.length) return;
    event.preventDefault();
    hits.forEach((one) => one.classList.remove("chosen"));
    chosen = (chosen + (event.key === "]" ? 1 : -1) + hits.length) % hits.length;
    const box = hits[chosen].getBoundingClientRect();
    explain(hits[chosen], box.left + Math.min(box.width, 40), box.bottom - 8);
    hits[chosen].classList.add("chosen");
  });
}

/* A window [from, to) on [0, stop) with zoom about a point. */
class Window {
  constructor(stop) { this.stop = stop; this.from = 0; this.to = stop; }
  zoom(factor, about = (this.from + this.to) / 2) {
    const size = Math.min(this.stop, Math.max(8, (this.to - this.from) * factor));
    const share = (about - this.from) / (this.to - this.from);
    this.move(about - share * size, size);
  }
  pan(share) { this.move(this.from + share * (this.to - this.from), this.to - this.from); }
  move(from, size) {
    this.from = Math.max(0, Math.min(from, this.stop - size));
    this.to = this.from + size;
  }
  reset() { this.from = 0; this.to = this.stop; }
}

/* Keys, wheel, drag and buttons that move a window; redraw is called after every change. */
function movable(svg, view, redraw, fraction) {
  const after = (change) => { change(); redraw(); };
  const keys = {
    ArrowLeft: () => view.pan(-0.2), ArrowRight: () => view.pan(0.2),
    "+": () => view.zoom(0.7), "=": () => view.zoom(0.7), ArrowUp: () => view.zoom(0.7),
    "-": () => view.zoom(1 / 0.7), ArrowDown: () => view.zoom(1 / 0.7),
    0: () => view.reset(), Home: () => view.reset(),
  };
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    after(keys[event.key]);
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== svg) return;
    event.preventDefault();
    const at = view.from + fraction(event) * (view.to - view.from);
    after(() => (event.shiftKey ? view.pan(Math.sign(event.deltaY) * 0.1) : view.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, at)));
  }, { passive: false });
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = fraction(event); svg.focus(); });
  svg.addEventListener("pointermove", (event) => {
    if (held === null || !(event.buttons & 1)) { held = null; return; }
    const now = fraction(event);
    after(() => view.pan(held - now));
    held = now;
  });
  const buttons = make("div", { class: "buttons" });
  for (const [label, key] of [["Zoom in", "+"], ["Zoom out", "-"], ["Left", "ArrowLeft"], ["Right", "ArrowRight"], ["Show all", "0"]]) {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", () => after(keys[key]));
    buttons.append(button);
  }
  return buttons;
}
