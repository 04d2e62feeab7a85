/* The dependence graph: places and bends come with the data. */
const NODE = { width: 118, height: 38, dx: 138, dy: 92 };

class Camera {
  constructor(svg, box) { this.svg = svg; this.all = box; this.reset(); }
  get stop() { return this.all.width; }
  get from() { return 0; }
  get to() { return this.box.width; }
  zoom(factor) {
    const next = Math.max(0.05, Math.min(1.5, (this.box.width / this.all.width) * factor));
    const width = this.all.width * next, height = this.all.height * next;
    const x = this.box.x + (this.box.width - width) / 2, y = this.box.y + (this.box.height - height) / 2;
    this.set({ x, y, width, height });
  }
  pan(share) { this.set({ ...this.box, x: this.box.x + share * this.box.width }); }
  lift(share) { this.set({ ...this.box, y: this.box.y + share * this.box.height }); }
  reset() { this.set({ ...this.all }); }
  set(box) {
    this.box = box;
    this.svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
  }
}

function graphPoints(link, places) {
  const tail = places.get(link.tail), head = places.get(link.head), half = NODE.height / 2;
  const down = tail.y <= head.y ? 1 : -1;
  const bends = link.bends.map(([x, y]) => [x * NODE.dx, y * NODE.dy]);
  return [[tail.x, tail.y + half * down], ...bends, [head.x, head.y - (half + 8) * down]];
}

function graphPath(link, places) {
  const place = places.get(link.tail);
  if (link.tail === link.head) {
    const x = place.x + NODE.width / 2;
    return `M${x} ${place.y - 8}C${x + 34} ${place.y - 30} ${x + 34} ${place.y + 30} ${x + 8} ${place.y + 8}`;
  }
  const points = graphPoints(link, places);
  if (link.distance && points.length === 2) {
    const [[x, y], [x2, y2]] = points;
    return `M${x} ${y}C${x + 46} ${(y + y2) / 2} ${x2 + 46} ${(y + y2) / 2} ${x2 + 6} ${y2}`;
  }
  let path = `M${points[0].join(" ")}`;
  for (let index = 1; index < points.length; index += 1) {
    const [x, y] = points[index - 1], [x2, y2] = points[index], middle = (y + y2) / 2;
    path += `C${x} ${middle} ${x2} ${middle} ${x2} ${y2}`;
  }
  return path;
}

function linkWords(link) {
  const words = [`${link.tail} to ${link.head}: ${link.kinds.join(", ")}, ${number(link.latency_cycles)} cycles`];
  if (link.distance) words.push(`of ${link.distance} iteration${link.distance === 1 ? "" : "s"} earlier`);
  if (link.crosses) words.push("crosses groups: hand-off");
  if (link.critical) words.push("on the critical circuit");
  return words.join("\n");
}

function heads(svg) {
  const defs = draw(svg, "defs", {});
  for (const kind of ["plain", "critical"]) {
    const shape = { id: `head-${kind}`, viewBox: "0 0 8 8", refX: 2, refY: 4, markerWidth: 9, markerHeight: 9, orient: "auto", markerUnits: "userSpaceOnUse" };
    draw(draw(defs, "marker", shape), "path", { class: kind === "critical" ? "head critical" : "head", d: "M0 0L8 4L0 8z" });
  }
}

function graphView(host, variant) {
  const places = new Map(variant.network.nodes.map((node) => [node.op, { x: node.x * NODE.dx, y: node.y * NODE.dy }]));
  const bends = variant.network.links.flatMap((link) => link.bends.map(([x, y]) => [x * NODE.dx, y * NODE.dy]));
  const all = [...[...places.values()].map((place) => [place.x, place.y]), ...bends];
  const xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
  const box = { x: Math.min(...xs) - 100, y: Math.min(...ys) - 40 };
  box.width = Math.max(...xs) + 100 - box.x;
  box.height = Math.max(...ys) + 40 - box.y;
  const height = Math.min(1300, Math.max(260, box.height));
  const svg = draw(host, "svg", { class: "chart", tabindex: 0, role: "group", height, "aria-label": "Dependence graph. Keys: arrows move, Page Up and Page Down move up and down, plus and minus zoom, 0 shows all, brackets step." });
  heads(svg);
  for (const link of variant.network.links) graphLink(svg, link, places);
  for (const node of variant.network.nodes) graphNode(svg, node, places.get(node.op), variant);
  const camera = new Camera(svg, box);
  explainable(svg);
  svg.addEventListener("keydown", (event) => {
    if (event.key !== "PageUp" && event.key !== "PageDown") return;
    event.preventDefault();
    camera.lift(event.key === "PageDown" ? 0.2 : -0.2);
  });
  svg.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) camera.lift(-event.movementY / svg.clientHeight);
  });
  host.prepend(movable(svg, camera, () => {}, (event) => (event.clientX - svg.getBoundingClientRect().left) / svg.clientWidth));
  host.append(make("p", { class: "legend" }, "Colour, pattern and second line of a node: its warp group. Dashed: from an earlier iteration. Double line: crosses groups. Thick: the circuit that limits the interval most."), circuitWords(variant));
}

function circuitWords(variant) {
  const circuit = variant.network.circuit;
  if (!circuit) return make("p", { class: "legend" }, "There is no dependence circuit.");
  const least = Math.ceil(circuit.latency_cycles / circuit.distance);
  return make("p", { class: "legend" }, `Critical circuit: ${circuit.ops.join(", ")}; ${number(circuit.latency_cycles)} cycles over distance ${circuit.distance}: no interval below ${number(least)}.`);
}

function graphLink(svg, link, places) {
  const kinds = ["link", "hit"];
  if (link.distance) kinds.push("carried");
  if (link.crosses) kinds.push("crossing");
  if (link.critical) kinds.push("critical");
  const d = graphPath(link, places);
  const path = draw(svg, "path", { class: kinds.join(" "), d, "marker-end": `url(#head-${link.critical ? "critical" : "plain"})` });
  path.dataset.tip = linkWords(link);
  if (link.crosses) draw(svg, "path", { class: "gap", d });
}

function graphNode(svg, node, place, variant) {
  const x = place.x - NODE.width / 2, y = place.y - NODE.height / 2, name = node.op.length > 18 ? `${node.op.slice(0, 17)}\u2026` : node.op;
  const rect = draw(svg, "rect", { class: "bar hit", x, y, width: NODE.width, height: NODE.height, rx: 5, fill: paint(node.group), "data-op": node.op });
  rect.dataset.tip = `${node.op}, ${variant.groups[node.group]}, starts at cycle ${number(node.start_cycle)}${sourceOf(node.op)}`;
  const plate = page.colours[node.group % page.colours.length];
  draw(svg, "rect", { class: "plate", x: x + 5, y: y + 4, width: NODE.width - 10, height: NODE.height - 8, fill: plate });
  draw(svg, "text", { class: "on", x: place.x, y: place.y - 3, "text-anchor": "middle" }, name);
  draw(svg, "text", { class: "on", x: place.x, y: place.y + 12, "text-anchor": "middle" }, `${variant.groups[node.group]} at ${number(node.start_cycle)}`);
}
