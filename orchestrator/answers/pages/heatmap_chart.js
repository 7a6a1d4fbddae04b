// The drawing: one Vega view for the page's life, fed with the cells as they are computed. Vega owns scales, axes, the
// legend's ramp and which cell is under the pointer; expressions go through its interpreter, so that the page needs no
// permission to make code from text.
const MARGIN = 10, SIDE = 78, FOOT = 26;  // sizes of the row and column bests
const MARGINAL = { row: "row best", col: "column best" };
const LINE = 12, GAP = 3, LABEL = 12, FONT = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif";
const LOOKS = {
  oom: ["#fbe9e7", "#7a1f1f", "#e3a49c"], pruned: ["#e6e8eb", "#4d565f", null], failed: ["#fff3dc", "#5b3a00", "#e3b35f"],
  mixed: ["#f1efec", "#3d3d3d", "#d3ccc2"], pending: ["#e8f1fb", "#1d4f80", null], unmeasured: ["#ffffff", "#4d565f", null],
  empty: ["#ffffff", "#8a939c", null],
};
const BEST = "#d1007f", EDGES = { pending: "#5b93c7", unmeasured: "#8a939c" };

// Stripes of a cell that tell states apart without colour: OOM rising, failed falling, mixed level.
const hatch = (state, w, h) => {
  const out = [];
  if (state === "mixed") for (let y = 6; y < h; y += 8) out.push(`M0,${y}h${w}`);
  if (state === "oom" || state === "failed") {
    for (let d = 6; d < w + h; d += 8) {
      const x0 = Math.max(0, d - h), x1 = Math.min(d, w);
      out.push(state === "oom" ? `M${x0},${d - x0}L${x1},${d - x1}` : `M${w - x0},${d - x0}L${w - x1},${d - x1}`);
    }
  }
  return out.join("");
};

const chartSpec = () => ({
  description: document.title,
  padding: 5,
  autosize: { type: "pad", contains: "padding" },
  background: "#ffffff",
  signals: [
    { name: "cellW", value: 90 }, { name: "cellH", value: 50 }, { name: "nRows", value: 1 }, { name: "nCols", value: 1 },
    { name: "width", update: "nCols * cellW" }, { name: "height", update: "nRows * cellH" },
    { name: "rowName", value: "" }, { name: "colName", value: "" }, { name: "valueName", value: "" }, { name: "foot", value: 0 },
  ],
  data: [{ name: "rows" }, { name: "cols" }, { name: "drawn" }, { name: "said" }, { name: "side" }, { name: "foots" }, { name: "heads" }, { name: "ramp" }, { name: "ends" }],
  scales: [
    { name: "x", type: "band", domain: { data: "cols", field: "at" }, range: "width" },
    { name: "y", type: "band", domain: { data: "rows", field: "at" }, range: "height" },
    { name: "colour", type: "linear", domain: [0, 1], range: { scheme: D.palette } },
  ],
  axes: [
    { scale: "x", orient: "top", domain: false, ticks: false, title: { signal: "colName" }, titlePadding: 8, titleFont: FONT, titleFontSize: 13,
      labelFont: FONT, labelFontSize: LABEL, labelPadding: 6, labelOverlap: false, labelLimit: 0,
      encode: { labels: { update: { text: { signal: "data('cols')[datum.value].name" } } } } },
    { scale: "y", orient: "left", zindex: 1, domain: false, ticks: false, title: { signal: "rowName" }, titleAngle: 0, titleAlign: "right", titleAnchor: "start",
      titleY: -18, titleX: -8, titleFont: FONT, titleFontSize: 13, labelFont: FONT, labelFontSize: LABEL, labelPadding: 8,
      labelOverlap: false, labelLimit: 0, encode: { labels: { update: { text: { signal: "data('rows')[datum.value].name" } } } } },
  ],
  marks: [
    { name: "cells", type: "rect", from: { data: "drawn" }, encode: { update: {
      x: { scale: "x", field: "c" }, y: { scale: "y", field: "r" }, width: { signal: `cellW - ${GAP}` }, height: { signal: `cellH - ${GAP}` },
      cornerRadius: { value: 3 }, fill: [{ test: "datum.share >= 0", scale: "colour", field: "share" }, { field: "fill" }],
      stroke: [{ test: "datum.open", value: "#16202a" }, { field: "edge" }], strokeWidth: [{ test: "datum.open || datum.here || datum.mark === 'best'", value: 3 }, { test: "datum.mark === 'tied'", value: 2 }, { value: 1 }],
      strokeDash: [{ test: "datum.state === 'pending'", value: [4, 3] }, { test: "datum.mark === 'tied'", value: [5, 3] }, { value: [] }], cursor: { value: "pointer" }, description: { field: "label" } } } },
    { name: "hatches", type: "path", from: { data: "drawn" }, interactive: false, encode: { update: {
      x: { scale: "x", field: "c" }, y: { scale: "y", field: "r" }, path: { field: "hatch" }, stroke: { field: "stripe" }, strokeWidth: { value: 1.6 },
      aria: { value: false } } } },
    { name: "backs", type: "rect", from: { data: "said" }, interactive: false, encode: { update: {
      xc: { scale: "x", field: "c", offset: { signal: `(cellW - ${GAP}) / 2` } }, yc: { scale: "y", field: "r", offset: { field: "backY" } },
      width: { field: "backW" }, height: { field: "backH" }, cornerRadius: { value: 3 }, fill: { value: "#ffffff" }, fillOpacity: { field: "back" } } } },
    { name: "words", type: "text", from: { data: "said" }, interactive: false, encode: { update: {
      x: { scale: "x", field: "c", offset: { signal: `(cellW - ${GAP}) / 2` } }, y: { scale: "y", field: "r", offset: { field: "dy" } },
      align: { value: "center" }, text: { field: "text" }, font: { value: FONT }, fontSize: { field: "size" }, fontWeight: { field: "weight" },
      fill: { field: "ink" } } } },
    { name: "sideCells", type: "rect", from: { data: "side" }, interactive: false, encode: { update: { x: { signal: `width + ${MARGIN}` }, width: { value: SIDE - GAP },
      y: { scale: "y", field: "at" }, height: { signal: `cellH - ${GAP}` }, cornerRadius: { value: 3 }, fill: { scale: "colour", field: "share" }, aria: { value: false } } } },
    { name: "footCells", type: "rect", from: { data: "foots" }, interactive: false, encode: { update: { x: { scale: "x", field: "at" }, width: { signal: `cellW - ${GAP}` },
      y: { signal: `height + ${MARGIN - GAP}` }, height: { value: FOOT - GAP }, cornerRadius: { value: 3 }, fill: { scale: "colour", field: "share" }, aria: { value: false } } } },
    { type: "text", from: { data: "side" }, interactive: false, encode: { update: { x: { signal: `width + ${MARGIN + (SIDE - GAP) / 2}` },
      y: { scale: "y", field: "at", offset: { signal: `(cellH - ${GAP}) / 2 + 4` } }, text: { field: "text" }, fill: { field: "ink" }, align: { value: "center" },
      font: { value: FONT }, fontSize: { value: LABEL } } } },
    { type: "text", from: { data: "foots" }, interactive: false, encode: { update: { x: { scale: "x", field: "at", offset: { signal: `(cellW - ${GAP}) / 2` } },
      y: { signal: `height + ${MARGIN - GAP + 16}` }, text: { field: "text" }, fill: { field: "ink" }, align: { value: "center" }, font: { value: FONT }, fontSize: { value: LABEL } } } },
    { type: "text", from: { data: "heads" }, interactive: false, encode: { update: { x: { signal: `datum.side ? width + ${MARGIN + (SIDE - GAP) / 2} : -8` },
      y: { signal: `datum.side ? -8 : height + ${MARGIN - GAP + 16}` }, text: { field: "text" }, align: { signal: "datum.side ? 'center' : 'right'" },
      font: { value: FONT }, fontSize: { value: 11 }, fill: { value: "#4d565f" } } } },
    { type: "rect", from: { data: "ramp" }, interactive: false, encode: { update: { x: { field: "x" }, width: { field: "w" }, y: { signal: "height + foot + 16" },
      height: { value: 12 }, fill: { scale: "colour", field: "share" }, aria: { value: false } } } },
    { type: "text", from: { data: "ends" }, interactive: false, encode: { update: { x: { field: "x" }, y: { signal: "height + foot + 43" }, text: { field: "text" },
      align: { field: "align" }, font: { value: FONT }, fontSize: { value: LABEL } } } },
    { type: "text", interactive: false, encode: { update: { y: { signal: "height + foot + 60" }, text: { signal: "valueName" }, font: { value: FONT },
      fontSize: { value: LABEL }, fill: { value: "#4d565f" } } } },
  ],
});

// The legend's ramp: enough stripes to look smooth, each a little wider than its place so that no seam shows.
const RAMP = 260, STRIPES = 65;
const rampStripes = () => Array.from({ length: STRIPES }, (_, i) =>
  ({ x: (RAMP / STRIPES) * i, w: RAMP / STRIPES + (i + 1 < STRIPES ? 0.6 : 0), share: i / (STRIPES - 1) }));

const textWidth = (() => {
  const pen = document.createElement("canvas").getContext("2d");
  return (words, size, weight) => { pen.font = `${weight} ${size}px ${FONT}`; return pen.measureText(words).width; };
})();

// The mark of a cell that is the best, or cannot be told from it.
const markOf = (at) => (view.tied.has(at) ? (view.winner ? "best" : "tied") : "");

// The lines of one cell: [words, size, weight].
const NARROW = 600, MARKS = { best: "★ ", tied: "≈ " };
const cellWords = (cell, mark) => {
  const brief = innerWidth < NARROW;  // on a phone the configuration is in the list of the cell
  if (cell.best >= 0)
    return [[(MARKS[mark] ?? "") + view.V.text[cell.best], 15, 600], ...(brief ? [] : lines(cell.best)).map((l) => [l, 10.5, 400]), [`${cell.count[0]} of ${cell.total} ok`, 9, 400]];
  if (!cell.total) return [[WORDS.empty, 12, 400]];
  return [[WORDS[cell.state], 12, 600], [countText(cell.count).replaceAll(", ", " · ").replace("not run yet", "to run"), 9.5, 400]];
};
const cellLabel = (cell, r, c, mark) => {
  const name = `${view.R.name} ${view.R.values[r]}, ${view.C.name} ${view.C.values[c]}`;
  if (cell.best >= 0)
    return `${name}: ${withUnit(view.V, cell.best)}; ${lines(cell.best).join(" ")}; ${countText(cell.count)}${{ best: "; the best of all", tied: "; ties with the best" }[mark] ?? ""}`;
  return `${name}: ${WORDS[cell.state]}; ${cell.total ? countText(cell.count) : "no such configuration"}`;
};

// How large cells are: what their text needs, and as much more as the page has room for; the text grows a little with them.
// On a narrow page the text shrinks as far as it can be read, before the picture has to scroll.
const WIDEST = 420, TALLEST = 120, LARGEST = 1.35, SMALLEST = 0.75;
const cellSize = (all, cols, rows, labels) => {
  const widest = all.reduce((most, a) => a.words.reduce((m, [words, size, weight]) => Math.max(m, textWidth(words, size, weight)), most), 44);
  const tallest = all.reduce((most, a) => Math.max(most, a.words.length), 2);
  const needW = Math.ceil(Math.max(widest, labels.cols)) + 16, needH = 22 + LINE * (tallest - 1) + 8;
  const left = Math.max(labels.rows, rows > 1 ? textWidth(MARGINAL.col, 11, 400) : 0);
  const room = el("chart").parentElement.clientWidth - left - 24 - (cols > 1 ? MARGIN + SIDE : 0);
  const least = Math.max(Math.ceil(needW * SMALLEST), labels.cols + 8);
  const w = Math.max(least, Math.min(Math.floor(room / Math.max(cols, 1)), Math.max(needW, WIDEST)));
  const h = Math.max(needH, Math.min(Math.floor((innerHeight * 0.7) / Math.max(rows, 1)), TALLEST, w * 0.6));
  return { w, h, grown: Math.max(SMALLEST, Math.min(LARGEST, w / needW, h / needH)) };
};

const drawnCells = (rows, cols, here, labels) => {
  const all = rows.flatMap((r, y) => cols.map((c, x) => ({ at: r * view.width + c, r, c, x, y })));
  for (const a of all) a.words = cellWords(view.cells[a.at], markOf(a.at));
  const { w, h, grown } = cellSize(all, cols.length, rows.length, labels), line = LINE * grown, cells = [], words = [];
  for (const { at, r, c, x, y, words: own } of all) {
    const cell = view.cells[at], mark = markOf(at);
    const share = cell.best >= 0 ? view.colours.share(view.V.of[cell.best]) : -1;
    const [fill, ink, stripe] = share >= 0 ? ["", inkOn(share), null] : LOOKS[cell.state];
    const open = S.open === cellKey(r, c), isHere = here === cellKey(r, c);
    cells.push({ r: y, c: x, row: r, col: c, share, fill, open, here: isHere, mark, edge: isHere ? "#16202a" : mark ? BEST : EDGES[cell.state] ?? null,
      hatch: hatch(cell.state, w - GAP, h - GAP), stripe, label: cellLabel(cell, r, c, mark), state: cell.state });
    let dy = (h - GAP - (own.length * line + 3)) / 2 + 12 * grown;
    own.forEach(([words_, base, weight], i) => {
      const size = base * grown, wide = stripe ? textWidth(words_, size, weight) : 0;
      words.push({ r: y, c: x, dy, text: words_, size, weight, ink, back: stripe ? 0.85 : 0, backY: dy - 4 * grown, backW: wide + 8, backH: stripe ? size + 3 : 0 });
      dy += line + (i === 0 ? 1 : 0);
    });
  }
  return { cells, words, w, h };
};

// The best of each row and column; none where there is but one to choose from.
const marginals = (keys, bests, others) => (others.length < 2 || !view.measured ? [] : keys.flatMap((key, at) => {
  const cell = view.cells[bests.get(key) ?? -1];
  if (!cell) return [];
  const share = view.colours.share(view.V.of[cell.best]);
  return [{ at, share, ink: inkOn(share), text: view.V.text[cell.best] }];
}));

const MANY_CELLS = 1500;  // beyond: a canvas, whose redrawing does not grow with the number of nodes
let chart = null, chartKind = "";
const makeChart = (kind) => {
  chart?.finalize();
  chartKind = kind;
  const [parser, views, interpreter, dataflow] = ["vega-parser", "vega-view", "vega-interpreter", "vega-dataflow"].map(vegaRequire);
  for (const part of ["vega-transforms", "vega-view-transforms", "vega-encode"]) Object.assign(dataflow.transforms, vegaRequire(part));
  chart = new views.View(parser.parse(chartSpec(), null, { ast: true }),
    { expr: interpreter.expressionInterpreter, renderer: kind, container: "#chart", hover: false, logLevel: 0 });
  const at = (item) => (item?.mark?.name === "cells" ? item.datum : null);
  chart.addEventListener("mousemove", (e, item) => { const d = at(item); d ? showTip(d.row, d.col, e.clientX, e.clientY) : hideTip(); });
  chart.addEventListener("mouseout", hideTip);
  chart.addEventListener("click", (e, item) => { const d = at(item); if (d) openCell(d.row, d.col); });
};

// The legend's ends, low colours first, between them the value nearest to the middle if it has room, and what it says.
const legend = () => {
  if (!view.measured) return { ends: [], words: "" };
  const { low, high, log, rank, below, above, lower, share } = view.colours, { V, bests } = view;
  const text = (v) => V.text[bests.find((i) => V.of[i] === v)];
  const lowest = (below ? "≤ " : "") + text(low), highest = (above ? "≥ " : "") + text(high);
  const offMiddle = (i) => Math.abs(share(V.of[i]) - 0.5), middle = bests.reduce((m, i) => (offMiddle(i) < offMiddle(m) ? i : m));
  const how = log ? "; logarithmic" : rank ? "; colours by rank" : below || above ? "; outliers share an end" : "";
  const ends = [{ x: 0, text: lower ? highest : lowest, align: "left" }, { x: RAMP, text: lower ? lowest : highest, align: "right" }];
  if (offMiddle(middle) < 0.2) ends.push({ x: RAMP * share(V.of[middle]), text: V.text[middle], align: "center" });
  return { ends, words: `${V.title}; brighter is ${V.ranks ? "better" : "more"}${how}` };
};

// here: the key of the cell that the keyboard is on, or none. Answers when the picture stands.
const drawChart = (here) => {
  const rows = view.many ? [] : view.rows, cols = view.many ? [] : view.cols;
  const rowNames = rows.map((r) => (view.R.row_labels ?? view.R.values)[r]), colNames = cols.map((c) => (view.C.col_labels ?? view.C.values)[c]);
  const widest = (names, first) => names.reduce((m, s) => Math.max(m, textWidth(s, LABEL, 400)), first);
  const { cells, words, w, h } = drawnCells(rows, cols, here, { rows: widest(rowNames, textWidth(view.R.name, 13, 600)), cols: widest(colNames, 0) });
  const kind = cells.length > MANY_CELLS ? "canvas" : "svg";
  if (kind !== chartKind) makeChart(kind);
  const { changeset } = vegaRequire("vega-dataflow");
  const replace = (name, values) => chart.change(name, changeset().remove(() => true).insert(values));
  const side = marginals(rows, view.rowBest, cols), foots = marginals(cols, view.colBest, rows), { ends, words: said } = legend();
  replace("rows", rowNames.map((name, at) => ({ at, name })));
  replace("cols", colNames.map((name, at) => ({ at, name })));
  replace("drawn", cells);
  replace("said", words);
  replace("side", side);
  replace("foots", foots);
  replace("heads", [...(side.length ? [{ side: true, text: MARGINAL.row }] : []), ...(foots.length ? [{ side: false, text: MARGINAL.col }] : [])]);
  chart.signal("cellW", w).signal("cellH", h).signal("nRows", Math.max(rows.length, 1)).signal("nCols", Math.max(cols.length, 1));
  chart.signal("foot", foots.length ? MARGIN + FOOT - GAP : 0);
  replace("ramp", view.measured ? rampStripes() : []);
  replace("ends", ends);
  chart.signal("rowName", view.R.name).signal("colName", view.C.title).signal("valueName", said);
  return chart.runAsync().then((drawn) => { keepLabels(); fade(); return drawn; });
};
// The labels of rows stay at the left edge while the cells scroll.
const keepLabels = () => {
  for (const axis of document.querySelectorAll("#chart .role-axis"))
    if (axis.getAttribute("aria-label")?.startsWith("Y-axis")) axis.style.transform = `translateX(${el("chart").scrollLeft}px)`;
};
