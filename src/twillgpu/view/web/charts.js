/* Charts over cycles: Gantt charts and occupancy. A bar is [op, start, stop, iteration, level, height, what]. */
const LEFT = 130, ROW = 34, AXIS = 26, RIGHT = 12;

class TimeChart {
  constructor(host, view, label, height, paintRows) {
    this.view = view;
    this.height = height;
    this.paintRows = paintRows;
    this.svg = draw(host, "svg", { class: "chart", tabindex: 0, role: "group", "aria-label": `${label}. Keys: arrows move, plus and minus zoom, 0 shows all, brackets step.`, height });
    explainable(this.svg);
  }
  get width() { return Math.max(320, this.svg.clientWidth || 900); }
  x(cycle) { return LEFT + ((cycle - this.view.from) / (this.view.to - this.view.from)) * (this.width - LEFT - RIGHT); }
  fraction(event) {
    const box = this.svg.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)));
  }
  redraw() {
    this.svg.replaceChildren();
    this.paintRows(this);
    this.axis();
  }
  axis() {
    const span = this.view.to - this.view.from;
    const rough = span / Math.max(2, Math.floor((this.width - LEFT) / 110));
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough));
    const bottom = this.height - AXIS;
    draw(this.svg, "line", { class: "rule", x1: LEFT, x2: this.width - RIGHT, y1: bottom, y2: bottom });
    for (let cycle = Math.ceil(this.view.from / step) * step; cycle <= this.view.to; cycle += step) {
      draw(this.svg, "line", { class: "rule", x1: this.x(cycle), x2: this.x(cycle), y1: bottom, y2: bottom + 5 });
      draw(this.svg, "text", { class: "soft", x: this.x(cycle), y: bottom + 18, "text-anchor": "middle" }, number(cycle));
    }
  }
}

function iterationWords(chart, iteration) {
  if (iteration < 0) return "outside the loop";
  if (!chart.steady) return `iteration ${iteration}`;
  return iteration === 0 ? "newest iteration" : `${iteration} iteration${iteration === 1 ? "" : "s"} earlier`;
}

const WORK = new Set(["op", "put", "get"]);

function ganttRows(chart, self) {
  chart.lanes.forEach((lane, row) => {
    const top = row * ROW;
    draw(self.svg, "line", { class: "rule", x1: 0, x2: self.width, y1: top + ROW, y2: top + ROW });
    const name = lane.capacity > 1 ? `${lane.name} (of ${lane.capacity})` : lane.name;
    draw(self.svg, "text", { x: LEFT - 8, y: top + ROW / 2 + 4, "text-anchor": "end" }, name);
    for (const bar of lane.bars) if (bar[2] > self.view.from && bar[1] < self.view.to) ganttBar(chart, self, lane, bar, top);
  });
  if (chart.steady) return;
  for (let cycle = chart.ii_cycles; cycle < self.view.to; cycle += chart.ii_cycles) {
    if (cycle > self.view.from) draw(self.svg, "line", { class: "period", x1: self.x(cycle), x2: self.x(cycle), y1: 0, y2: self.height - AXIS });
  }
}

function ganttBar(chart, self, lane, bar, top) {
  const [op, start, stop, iteration, level, height, what] = bar;
  const left = Math.max(LEFT, self.x(start)), right = Math.min(self.width - RIGHT, self.x(stop));
  const room = ROW - 6, work = WORK.has(what);
  const rect = draw(self.svg, "rect", {
    class: work && iteration >= 0 ? "bar hit" : "idle hit",
    x: left, y: top + 3 + room * (1 - (level + height) / lane.capacity),
    width: Math.max(1.5, right - left), height: (room * height) / lane.capacity,
    "data-op": work ? op.replace(/^(put|get) /, "") : "",
  });
  if (work && iteration >= 0) rect.setAttribute("fill", paint(iteration));
  const cycles = `cycles ${number(start)} to ${number(stop)} (${number(stop - start)})`;
  const held = lane.capacity > 1 ? `, ${height} of ${lane.capacity}` : "";
  rect.dataset.tip = `${op}, ${iterationWords(chart, iteration)}\n${lane.name}${held}: ${cycles}${sourceOf(op)}`;
  if (lane.capacity > 1 || right - left < op.length * 6.4 + 8) return;
  const middle = (left + right) / 2, half = op.length * 3.2 + 3;
  if (work && iteration >= 0) draw(self.svg, "rect", { class: "plate", x: middle - half, y: top + 9, width: 2 * half, height: 16, fill: page.colours[iteration % page.colours.length] });
  draw(self.svg, "text", { class: work && iteration >= 0 ? "on" : "soft", x: middle, y: top + ROW / 2 + 4, "text-anchor": "middle", style: "pointer-events:none" }, op);
}

function legend(chart) {
  const seen = [...new Set(chart.lanes.flatMap((lane) => lane.bars.map((bar) => bar[3])))].filter((one) => one >= 0).sort((a, b) => a - b);
  const line = make("p", { class: "legend" });
  for (const iteration of seen.slice(0, page.colours.length)) {
    const swatch = draw(line, "svg", { class: "swatch", "aria-hidden": "true" });
    draw(swatch, "rect", { width: "100%", height: "100%", class: "bar", fill: paint(iteration) });
    line.append(iterationWords(chart, iteration));
  }
  if (seen.length > page.colours.length) line.append("; colours come round again");
  return line;
}

function ganttChart(host, chart, view, label, redrawAll) {
  const self = new TimeChart(host, view, label, chart.lanes.length * ROW + AXIS, (one) => ganttRows(chart, one));
  const redraw = redrawAll || (() => self.redraw());
  host.prepend(movable(self.svg, view, redraw, (event) => self.fraction(event)));
  host.append(legend(chart));
  return self;
}

/* How full one group or memory is; limit and what is set aside as lines. */
function occupancyRows(one, self) {
  const bottom = self.height - AXIS, top = 22;
  const most = Math.max(one.limit || 0, one.reserved || 0, ...one.steps.map((step) => step.amount), 1);
  const y = (amount) => bottom - (amount / most) * (bottom - top);
  const unit = one.kind === "registers" ? "registers per thread" : "bytes";
  for (const step of one.steps) {
    if (step.stop <= self.view.from || step.start >= self.view.to) continue;
    const left = Math.max(LEFT, self.x(step.start)), right = Math.min(self.width - RIGHT, self.x(step.stop));
    const rect = draw(self.svg, "rect", { class: "level hit", x: left, y: y(step.amount), width: Math.max(0.5, right - left), height: Math.max(0.5, bottom - y(step.amount)) });
    const held = step.held.map(([name, amount]) => `${name} ${number(amount)}`).join(", ");
    const base = one.base ? `; ${number(one.base)} ${one.kind === "registers" ? "overhead" : "outside the loop"}` : "";
    rect.dataset.tip = `${one.name}: ${number(step.amount)} ${unit} live in cycles ${number(step.start)} to ${number(step.stop)}\n${held}${base}`;
  }
  const words = [`${one.name}: at most ${number(one.peak)}`];
  for (const [level, kind, said] of [[one.limit, "limit", "of"], [one.reserved, "aside", "set aside (dashed)"]]) {
    if (level === null) continue;
    draw(self.svg, "line", { class: kind, x1: LEFT, x2: self.width - RIGHT, y1: y(level), y2: y(level) });
    words.push(kind === "limit" ? `of ${number(level)} ${unit} live` : `${number(level)} ${said}`);
  }
  draw(self.svg, "text", { x: 4, y: 13 }, words.length > 1 ? `${words[0]} ${words.slice(1).join(", ")}` : `${words[0]} ${unit} live`);
}

function occupancyChart(host, one, view, redrawAll) {
  const label = `Occupancy of ${one.name}: at most ${number(one.peak)}${one.limit === null ? "" : ` of ${number(one.limit)}`}`;
  const self = new TimeChart(host, view, label, 120, (chart) => occupancyRows(one, chart));
  movable(self.svg, view, redrawAll, (event) => self.fraction(event));
  return self;
}
