/* The page: what is chosen, and everything drawn anew when that changes. */
const element = (id) => document.getElementById(id);
let charts = [];

function fill(id, ...children) {
  element(id).replaceChildren(...children);
  return element(id);
}

function table(host, header, rows, right) {
  const head = make("tr", {}, ...header.map((one) => make("th", { scope: "col" }, one)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, index) => make("td", right.includes(index) ? { class: "n" } : {}, cell))));
  host.append(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

function opsTable(variant) {
  const rows = variant.ops.map((placed) => {
    const op = opOf.get(placed.name);
    const line = make("code", {}, (lineOf.get(op.source) || "").trim());
    return [placed.name, op.kind, op.source, line, number(placed.start_cycle), number(placed.stage), number(placed.slot), variant.groups[placed.group]];
  });
  table(fill("ops"), ["op", "kind", "source", "line", "start", "stage", "slot", "group"], rows, [4, 5, 6]);
}

function moduloTable(variant) {
  const found = variant.modulo;
  const rows = found.rows.map((row) => [number(row.start), number(row.stop), ...row.cells.map((cell, index) => {
    const ops = cell.ops.map(([op, age]) => (age ? `${op} (-${age})` : op)).join(" ");
    return found.capacities[index] > 1 && cell.held ? `${cell.held}/${found.capacities[index]}: ${ops}` : ops;
  })]);
  table(fill("modulo"), ["from", "to", ...found.columns], rows, [0, 1]);
}

function show() {
  hideTip();
  const variant = page.variants[state.variant];
  element("variant").value = String(state.variant);
  element("says").textContent = `${variant.name}, I = ${number(variant.ii_cycles)} cycles: ${variant.says}`;
  const period = new Window(variant.ii_cycles);
  charts = [];
  const redraw = () => charts.forEach((chart) => chart.redraw());
  const chart = state.whole ? variant.whole : variant.steady;
  charts.push(ganttChart(fill("gantt"), chart, state.whole ? new Window(chart.stop) : period, state.whole ? "Gantt chart with prologue and epilogue" : "Gantt chart of one period of the steady state", redraw));
  const host = fill("occupancy");
  for (const one of variant.occupancies) charts.push(occupancyChart(host, one, period, redraw));
  graphView(fill("graph"), variant);
  element("s-run").hidden = variant.simulated === null;
  if (variant.simulated) charts.push(ganttChart(fill("run"), variant.simulated, new Window(variant.simulated.stop), "Simulated run", redraw));
  opsTable(variant);
  moduloTable(variant);
  redraw();
}

function choose(index) {
  if (index !== state.variant) state.before = state.variant;
  state.variant = index;
  show();
}

function start() {
  patterns();
  element("title").textContent = page.title;
  element("verdict").textContent = page.verdict;
  const select = element("variant");
  page.variants.forEach((one, index) => select.append(make("option", { value: index }, `${one.name} (I = ${number(one.ii_cycles)})`)));
  select.addEventListener("change", () => choose(Number(select.value)));
  element("toggle").disabled = page.variants.length < 2;
  element("toggle").addEventListener("click", () => choose(state.before));
  element("whole").addEventListener("change", (event) => { state.whole = event.target.checked; show(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "t" && !event.ctrlKey && !event.metaKey && !event.altKey && event.target.tagName !== "SELECT" && page.variants.length > 1) choose(state.before);
  });
  addEventListener("resize", () => charts.forEach((chart) => chart.redraw()));
  show();
}

start();
