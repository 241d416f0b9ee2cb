"use strict";
// Tables that can be sorted and filtered, and the page of all records. Text from records is inserted
// only as text, never as HTML. The part of the address after # holds the filters and the sort order.

const PER_PAGE = 100;
const FEW_RECORDS = 20000; // the records of all compilers are loaded at once up to this number
const MIN_ROWS_TO_FILTER = 12;

const readHash = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
const writeHash = (state) => {
  const text = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== "")).toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname.split("/").pop() || "#");
};
const element = (name, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
};
const number = (text) => (text === "" || text === undefined ? NaN : Number(text.replace("inf", "Infinity")));
// Missing values come last in both directions.
const compare = (a, b, sign) => {
  const [noA, noB] = [a === null || a !== a, b === null || b !== b];
  if (noA || noB) return noA - noB;
  if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
  return sign * (a < b ? -1 : a > b ? 1 : 0);
};

function sortHead(cell, onSort) {
  const button = element("button", { type: "button" });
  button.append(...cell.childNodes);
  cell.append(button);
  const first = cell.dataset.kind === "number" ? -1 : 1; // the largest number first, but text from A to Z
  button.addEventListener("click", () => onSort(cell.getAttribute("aria-sort") === (first > 0 ? "ascending" : "descending") ? -first : first));
}
function markSorted(cells, chosen, sign) {
  for (const cell of cells) cell.removeAttribute("aria-sort");
  if (chosen) chosen.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
}

function enhance(table, place) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const key = table.id || `table${place}`;
  const state = () => Object.fromEntries(readHash());
  const value = (row, index, kind) => {
    const cell = row.cells[index];
    if (!cell) return kind === "number" ? NaN : "";
    return kind === "number" ? number(cell.dataset.value) : cell.textContent.trim();
  };
  const sort = (index, sign) => {
    const kind = heads[index].dataset.kind;
    body.append(...rows.slice().sort((a, b) => compare(value(a, index, kind), value(b, index, kind), sign)));
    markSorted(heads, heads[index], sign);
  };
  heads.forEach((cell, index) => {
    if (cell.classList.contains("unsorted") || cell.querySelector("a")) return;
    sortHead(cell, (sign) => {
      sort(index, sign);
      writeHash({ ...state(), [`${key}.sort`]: `${sign > 0 ? "" : "-"}${index}` });
    });
  });
  const filter = (text) => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(text.toLowerCase());
      shown += !row.hidden;
    }
    return shown;
  };
  const hash = readHash();
  const sorted = hash.get(`${key}.sort`);
  if (sorted && heads[Math.abs(parseInt(sorted, 10))]) sort(Math.abs(parseInt(sorted, 10)), sorted.startsWith("-") ? -1 : 1);
  if (rows.length < MIN_ROWS_TO_FILTER) return;
  const input = element("input", { type: "search", value: hash.get(`${key}.find`) || "" });
  const status = element("p", { className: "note" });
  status.setAttribute("role", "status");
  const apply = () => {
    const shown = filter(input.value);
    status.textContent = input.value ? `${shown} of ${rows.length} rows` : "";
  };
  input.addEventListener("input", () => {
    apply();
    writeHash({ ...state(), [`${key}.find`]: input.value });
  });
  table.parentElement.before(element("div", { className: "filters" }, element("label", {}, "Find in this table", input), status));
  if (input.value) apply();
}

// Chunks of data are scripts that call this function, because pages opened from a disk may not fetch files.
const waiting = new Map();
const loaded = new Map();
window.graphnetChunk = async (name, packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  waiting.get(name)?.resolve(JSON.parse(await new Response(stream).text()));
};
function loadScript(path) {
  return new Promise((resolve, reject) => {
    const script = element("script", { src: `${document.body.dataset.root}${path}` });
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error(`${path} cannot be loaded`)));
    document.head.append(script);
  });
}
function loadChunk(name) {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((resolve, reject) => {
      waiting.set(name, { resolve });
      loadScript(`data/${name}.js`).catch(reject);
    }));
  }
  return loaded.get(name);
}

const COLUMNS = [
  ["id", "Sample", "text"], ["task", "Task", "text"], ["subtask", "Subtask", "text"], ["arm", "Compiler", "text"], ["verdict", "Verdict", "text"],
  ["speedup", "speedup", "number"], ["baseline_ms", "eager ms", "number"], ["candidate_ms", "compiled ms", "number"],
  ["min_t", "min_t", "number"], ["compile_time_s", "compile s", "number"], ["error", "Error", "text long"],
];
const print = (value) => (value === null || value !== value ? "" : Number.isFinite(value) ? Number(value.toPrecision(3)).toLocaleString("en") : value > 0 ? "∞" : "−∞");

async function recordsOf(index, samples, chosen) {
  const records = [];
  for (const arm of chosen) {
    const names = Array.from({ length: arm.chunks }, (_, place) => `arm-${arm.page}-${place}`);
    for (const columns of await Promise.all(names.map(loadChunk))) {
      columns.sample.forEach((sample, place) => records.push({
        id: samples.id[sample], page: samples.page[sample], task: samples.task[sample], subtask: samples.subtask[sample], low: samples.low[sample],
        arm: arm.short, armName: arm.name, armPage: arm.page, verdict: index.verdicts[columns.verdict[place]], order: columns.verdict[place],
        error: columns.error[place], ...Object.fromEntries(["speedup", "speedup_low", "speedup_high", "baseline_ms", "candidate_ms", "min_t", "compile_time_s"].map((name) => {
          const value = columns[name][place];
          return [name, typeof value === "string" ? number(value) : value];
        })),
      }));
    }
  }
  return records;
}

function explorer(root, index) {
  const total = index.arms.reduce((sum, arm) => sum + arm.records, 0);
  const start = readHash();
  // A link to one task shows all compilers; otherwise only the first compiler of a large site is loaded.
  const usual = total <= FEW_RECORDS || start.has("task") || start.has("subtask") || start.has("find") ? "" : index.arms[0].page;
  const state = { arm: start.get("arm") ?? usual, task: start.get("task") || "", subtask: start.get("subtask") || "", verdict: start.get("verdict") || "", find: start.get("find") || "", sort: start.get("sort") || "id", page: start.get("page") || "1" };
  const choice = (name, label, options) => {
    const select = element("select", {}, ...options.map(([value, text]) => element("option", { value, textContent: text, selected: value === state[name] })));
    select.addEventListener("change", () => change({ [name]: select.value }));
    return element("label", {}, label, select);
  };
  const find = element("input", { type: "search", value: state.find });
  find.addEventListener("input", () => change({ find: find.value }));
  const status = element("p", { className: "note" });
  status.setAttribute("role", "status");
  const heads = COLUMNS.map(([name, text, kind]) => {
    const cell = element("th", { scope: "col", className: kind, textContent: text });
    cell.dataset.kind = kind;
    sortHead(cell, (sign) => change({ sort: `${sign > 0 ? "" : "-"}${name}` }));
    return cell;
  });
  const body = element("tbody");
  const table = element("table", { className: "dense" }, element("caption", { textContent: "Records" }), element("thead", {}, element("tr", {}, ...heads)), body);
  const region = element("div", { className: "scroll", tabIndex: 0 }, table);
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", "Records");
  const page = (text, step) => {
    const button = element("button", { type: "button", className: "page", textContent: text });
    button.addEventListener("click", () => change({ page: String(Number(state.page) + step) }));
    return button;
  };
  const [before, after] = [page("Previous", -1), page("Next", 1)];
  const where = element("span");
  const pages = element("nav", { className: "pager" }, before, where, after);
  pages.setAttribute("aria-label", "Pages of records");
  root.replaceChildren(
    element("div", { className: "filters" }, element("label", {}, "Find a sample or an error", find),
      choice("arm", "Compiler", [["", `all (${total.toLocaleString("en")} records)`], ...index.arms.map((arm) => [arm.page, `${arm.name} (${arm.records.toLocaleString("en")})`])]),
      choice("task", "Task", [["", "all"], ...index.tasks.map((task) => [task, task])]),
      choice("subtask", "Subtask", [["", "all"], ...index.subtasks.map((subtask) => [subtask, subtask])]),
      choice("verdict", "Verdict", [["", "all"], ...index.verdicts.map((verdict) => [verdict, verdict])])),
    status, region, pages);

  let turn = 0;
  function change(changes) {
    Object.assign(state, "page" in changes ? changes : { ...changes, page: "1" });
    writeHash({ ...state, arm: state.arm === usual ? (usual ? state.arm : "") : state.arm || "all", sort: state.sort === "id" ? "" : state.sort, page: state.page === "1" ? "" : state.page });
    show();
  }
  async function show() {
    const mine = ++turn;
    try {
      status.textContent = "Loading …";
      const samples = await loadChunk("samples");
      samples.low ??= samples.id.map((id) => id.toLowerCase());
      const chosen = index.arms.filter((arm) => state.arm === "" || state.arm === "all" || arm.page === state.arm);
      const records = await recordsOf(index, samples, chosen);
      if (mine === turn) draw(records);
    } catch (error) {
      status.textContent = `${error.message}. The tables on the compilers' pages contain the same records.`;
    }
  }
  function draw(records) {
    const text = state.find.toLowerCase();
    const matches = records.filter((record) => ["task", "subtask", "verdict"].every((name) => !state[name] || record[name] === state[name]) && (!text || record.low.includes(text) || record.error.toLowerCase().includes(text)));
    const sign = state.sort.startsWith("-") ? -1 : 1;
    const name = state.sort.replace("-", "");
    const column = COLUMNS.findIndex((entry) => entry[0] === name);
    const by = name === "verdict" ? "order" : name;
    matches.sort((a, b) => compare(a[by], b[by], sign));
    markSorted(heads, heads[column], sign);
    const last = Math.max(1, Math.ceil(matches.length / PER_PAGE));
    state.page = String(Math.min(Math.max(1, Number(state.page) || 1), last));
    const first = (Number(state.page) - 1) * PER_PAGE;
    body.replaceChildren(...matches.slice(first, first + PER_PAGE).map(row));
    status.textContent = `${matches.length.toLocaleString("en")} of ${records.length.toLocaleString("en")} records`;
    where.textContent = `Page ${state.page} of ${last.toLocaleString("en")}`;
    before.disabled = state.page === "1";
    after.disabled = Number(state.page) === last;
  }
  function row(record) {
    const link = (href, text) => element("a", { href, textContent: text });
    const head = element("th", { scope: "row", className: "text" }, link(`samples/${record.page}.html`, record.id));
    const cells = COLUMNS.slice(1).map(([name, , kind]) => {
      if (name === "arm") return element("td", { title: record.armName }, link(`arms/${record.armPage}.html`, record.arm));
      if (name === "verdict") return element("td", {}, element("span", { className: `verdict ${record.verdict.replace(" ", "-")}`, textContent: record.verdict }));
      if (name === "speedup" && record.speedup_low !== null && record.speedup_high !== null) return element("td", { className: kind }, `${print(record.speedup)} `, element("span", { className: "range", textContent: `${print(record.speedup_low)}–${print(record.speedup_high)}` }));
      return element("td", { className: kind, textContent: kind === "number" ? print(record[name]) : record[name] });
    });
    return element("tr", {}, head, ...cells);
  }
  show();
}

// A graph that can be zoomed and searched. Cytoscape draws labels as text on a canvas.
const LETTER = 7.2;
const textOf = (columns, place) => [columns.title[place], columns.detail[place]].filter(Boolean).join("\n");

function layOut(columns) {
  const graph = new window.dagre.graphlib.Graph();
  graph.setGraph({ nodesep: 24, ranksep: 42 });
  graph.setDefaultEdgeLabel(() => ({}));
  columns.title.forEach((_, place) => {
    const lines = textOf(columns, place).split("\n");
    graph.setNode(place, { width: Math.max(60, ...lines.map((line) => line.length * LETTER)) + 16, height: 14 + 16 * lines.length });
  });
  columns.source.forEach((source, place) => graph.setEdge(source, columns.target[place]));
  window.dagre.layout(graph);
  return graph;
}

async function showGraph(root) {
  const [columns] = await Promise.all([loadChunk(root.dataset.graph), loadScript("cytoscape.min.js"), loadScript("dagre.min.js")]);
  const graph = layOut(columns);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const canvas = element("div", { className: "graph-canvas" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Graph of ${columns.title.length} boxes and ${columns.source.length} edges`);
  const find = element("input", { type: "search" });
  const status = element("p", { className: "note" });
  status.setAttribute("role", "status");
  const button = (text, label, onClick) => {
    const node = element("button", { type: "button", className: "page", textContent: text, title: label });
    node.setAttribute("aria-label", label);
    node.addEventListener("click", onClick);
    return node;
  };
  const zoom = (factor) => view.zoom({ level: view.zoom() * factor, renderedPosition: { x: view.width() / 2, y: view.height() / 2 } });
  root.replaceChildren(
    element("div", { className: "graph-tools" }, element("label", {}, "Find an operator, module or shape", find), button("+", "Zoom in", () => zoom(1.4)), button("−", "Zoom out", () => zoom(1 / 1.4)), button("All", "Show the whole graph", () => view.fit(undefined, 20))),
    canvas, status);
  const nodes = columns.title.map((_, place) => {
    const { x, y, width, height } = graph.node(place);
    return { data: { id: `n${place}`, text: textOf(columns, place), kind: columns.kind[place], width, height }, position: { x, y } };
  });
  const edges = columns.source.map((source, place) => ({ data: { id: `e${place}`, source: `n${source}`, target: `n${columns.target[place]}`, text: columns.shape[source] } }));
  const view = window.cytoscape({
    container: canvas, elements: [...nodes, ...edges], layout: { name: "preset" }, minZoom: 0.02, maxZoom: 4, boxSelectionEnabled: false, autoungrabify: true,
    style: [
      { selector: "node", style: { shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(text)", "text-wrap": "wrap", "text-valign": "center", "font-size": 12, "font-family": "sans-serif", color: colour("text"), "background-color": colour("back"), "border-width": 1, "border-color": colour("dim"), "min-zoomed-font-size": 5 } },
      { selector: 'node[kind = "product"]', style: { "border-color": colour("c0"), "border-width": 2.5 } },
      { selector: 'node[kind = "norm"]', style: { "border-color": colour("c2"), "border-width": 2.5 } },
      { selector: 'node[kind = "group"]', style: { "border-color": colour("c9"), "border-width": 2.5 } },
      { selector: 'node[kind = "input"], node[kind = "output"]', style: { shape: "ellipse" } },
      { selector: "edge", style: { width: 1.2, "line-color": colour("dim"), "target-arrow-color": colour("dim"), "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier", label: "data(text)", "font-size": 10, "font-family": "sans-serif", color: colour("text"), "text-background-color": colour("panel"), "text-background-opacity": 1, "text-background-padding": 2, "min-zoomed-font-size": 6 } },
      { selector: ".match", style: { "background-color": colour("warn"), color: colour("back") } },
      { selector: ".current", style: { "border-width": 5, "border-color": colour("link") } },
    ],
  });
  // Start at the top in a legible size if the whole graph would be too small to read.
  view.fit(undefined, 20);
  if (view.zoom() < 0.5) {
    view.zoom(0.7);
    const first = view.nodes().min((node) => node.position().y).ele.position();
    view.pan({ x: view.width() / 2 - first.x * 0.7, y: 40 - first.y * 0.7 });
  } else if (view.zoom() > 1.2) {
    view.zoom(1.2);
    view.center();
  }
  const describe = (place) => [columns.title[place], columns.operators[place], columns.detail[place], columns.shape[place] && `output ${columns.shape[place]}`].filter(Boolean).join("; ");
  view.on("tap", "node", (event) => { status.textContent = describe(Number(event.target.id().slice(1))); });
  let matches = [];
  let current = -1;
  const step = (change) => {
    if (!matches.length) return;
    view.nodes().removeClass("current");
    current = (current + change + matches.length) % matches.length;
    const node = view.getElementById(`n${matches[current]}`);
    node.addClass("current");
    view.zoom(Math.max(view.zoom(), 0.8));
    view.center(node);
    status.textContent = `${current + 1} of ${matches.length}: ${describe(matches[current])}`;
  };
  find.addEventListener("input", () => {
    const text = find.value.trim().toLowerCase();
    const isMatch = (place) => text && [columns.title, columns.operators, columns.detail, columns.shape].some((column) => column[place].toLowerCase().includes(text));
    matches = columns.title.map((_, place) => place).filter(isMatch);
    current = -1;
    view.nodes().removeClass("match current");
    for (const place of matches) view.getElementById(`n${place}`).addClass("match");
    status.textContent = text && !matches.length ? "No box matches." : "";
    step(1);
  });
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") step(event.shiftKey ? -1 : 1); });
  status.textContent = `${columns.title.length} boxes, ${columns.num_ops.reduce((sum, count) => sum + count, 0)} operators. Drag to move, scroll to zoom, Enter for the next match.`;
  root.dataset.state = "ready";
  const picture = root.parentElement.querySelector("figure.graph");
  if (picture) picture.hidden = true;
  const text = readHash().get("graph.find");
  if (text) {
    find.value = text;
    find.dispatchEvent(new Event("input"));
  }
}

document.querySelectorAll("table.sortable").forEach(enhance);
const index = document.getElementById("index");
if (index) explorer(document.getElementById("explorer"), JSON.parse(index.textContent));
const graphRoot = document.getElementById("graph-view");
if (graphRoot) showGraph(graphRoot).catch((error) => graphRoot.replaceChildren(element("p", { className: "note", textContent: `${error.message}. The picture below shows the graph.` })));
