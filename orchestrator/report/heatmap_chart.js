// The drawing: one Vega view for the page's life, fed with the cells as they are computed. Vega owns scales, axes, the
// legend's ramp and which cell is under the pointer; expressions go through its interpreter, so that the page needs no
// permission to make code from text.
const LINE = 12, GAP = 3, LABEL = 12, FONT = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif";
const LOOKS = {
  oom: ["#fbe9e7", "#7a1f1f", "#e3a49c"], pruned: ["#e6e8eb", "#4d565f", null], failed: ["#fff3dc", "#5b3a00", "#e3b35f"],
  mixed: ["#f1efec", "#3d3d3d", "#d3ccc2"], pending: ["#ffffff", "#4d565f", null], unmeasured: ["#ffffff", "#4d565f", null],
  empty: ["#ffffff", "#8a939c", null],
};

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
    { name: "rowName", value: "" }, { name: "colName", value: "" }, { name: "valueName", value: "" },
  ],
  data: [{ name: "rows" }, { name: "cols" }, { name: "drawn" }, { name: "said" }, { name: "ramp" }, { name: "ends" }],
  scales: [
    { name: "x", type: "band", domain: { data: "cols", field: "at" }, range: "width" },
    { name: "y", type: "band", domain: { data: "rows", field: "at" }, range: "height" },
    { name: "colour", type: "linear", domain: [0, 1], range: { scheme: D.palette } },
  ],
  axes: [
    { scale: "x", orient: "top", domain: false, ticks: false, title: { signal: "colName" }, titlePadding: 8, titleFont: FONT, titleFontSize: 13,
      labelFont: FONT, labelFontSize: LABEL, labelPadding: 6, labelOverlap: false, labelLimit: 160,
      encode: { labels: { update: { text: { signal: "data('cols')[datum.value].name" } } } } },
    { scale: "y", orient: "left", domain: false, ticks: false, title: { signal: "rowName" }, titleAngle: 0, titleAlign: "right", titleAnchor: "start",
      titleY: -18, titleX: -8, titleFont: FONT, titleFontSize: 13, labelFont: FONT, labelFontSize: LABEL, labelPadding: 8,
      labelOverlap: false, labelLimit: 240, encode: { labels: { update: { text: { signal: "data('rows')[datum.value].name" } } } } },
  ],
  marks: [
    { name: "cells", type: "rect", from: { data: "drawn" }, encode: { update: {
      x: { scale: "x", field: "c" }, y: { scale: "y", field: "r" }, width: { signal: `cellW - ${GAP}` }, height: { signal: `cellH - ${GAP}` },
      cornerRadius: { value: 3 }, fill: [{ test: "datum.share >= 0", scale: "colour", field: "share" }, { field: "fill" }],
      stroke: [{ test: "datum.open", value: "#16202a" }, { field: "edge" }], strokeWidth: [{ test: "datum.open || datum.here", value: 2.5 }, { value: 1 }],
      strokeDash: [{ test: "datum.dashed", value: [3, 3] }, { value: [] }], cursor: { value: "pointer" }, description: { field: "label" } } } },
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
    { type: "rect", from: { data: "ramp" }, interactive: false, encode: { update: { x: { field: "x" }, width: { field: "w" }, y: { signal: "height + 16" },
      height: { value: 12 }, fill: { scale: "colour", field: "share" }, aria: { value: false } } } },
    { type: "text", from: { data: "ends" }, interactive: false, encode: { update: { x: { field: "x" }, y: { signal: "height + 43" }, text: { field: "text" },
      align: { field: "align" }, font: { value: FONT }, fontSize: { value: LABEL } } } },
    { type: "text", interactive: false, encode: { update: { y: { signal: "height + 60" }, text: { signal: "valueName" }, font: { value: FONT },
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

// The lines of one cell: [words, size, weight].
const cellWords = (cell) => {
  if (cell.best >= 0)
    return [[view.scale.show(view.V.of[cell.best]), 15, 600], ...lines(cell.best).map((l) => [l, 10.5, 400]), [`${cell.count[0]} of ${cell.total}`, 9, 400]];
  if (!cell.total) return [[WORDS.empty, 12, 400]];
  const parts = cell.state === "mixed" ? countText(cell.count).replaceAll(", ", " · ") : String(cell.total);
  return [[WORDS[cell.state], 12, 600], [parts, 9.5, 400]];
};
const cellLabel = (cell, r, c) => {
  const name = `${S.rows} ${view.R.values[r]}, ${S.cols} ${view.C.values[c]}`;
  if (cell.best >= 0)
    return `${name}: ${view.scale.show(view.V.of[cell.best])}${unitOf(view.scale)}; ${lines(cell.best).join(" ")}; ${countText(cell.count)}`;
  return `${name}: ${WORDS[cell.state]}; ${cell.total ? countText(cell.count) : "no such configuration"}`;
};

const drawnCells = (rows, cols, here) => {
  const all = rows.flatMap((r, y) => cols.map((c, x) => ({ cell: view.cells[r * view.width + c], r, c, x, y })));
  for (const a of all) a.words = cellWords(a.cell);
  const widest = all.reduce((most, a) => a.words.reduce((m, [words, size, weight]) => Math.max(m, textWidth(words, size, weight)), most), 60);
  const tallest = all.reduce((most, a) => Math.max(most, a.words.length), 2);
  const w = Math.min(Math.ceil(widest) + 20, 320), h = 22 + LINE * (tallest - 1) + 8, cells = [], words = [];
  for (const { cell, r, c, x, y, words: own } of all) {
    const share = cell.best >= 0 ? shareOf(view.V.of[cell.best], view.low, view.high, view.V.lower) : -1;
    const [fill, ink, stripe] = share >= 0 ? ["", paint(share).ink, null] : LOOKS[cell.state];
    const dashed = ["empty", "pending", "unmeasured"].includes(cell.state);
    const open = S.open === cellKey(r, c), isHere = here === cellKey(r, c);
    cells.push({ r: y, c: x, row: r, col: c, share, fill, dashed, open, here: isHere, edge: isHere ? "#16202a" : dashed ? "#c3cad1" : null,
      hatch: hatch(cell.state, w - GAP, h - GAP), stripe, label: cellLabel(cell, r, c), state: cell.state });
    let dy = (h - GAP - (own.length * LINE + 3)) / 2 + 12;
    own.forEach(([words_, size, weight], i) => {
      words.push({ r: y, c: x, dy, text: words_, size, weight, ink, back: stripe && i === 0 ? 0.8 : 0, backY: dy - 4,
        backW: stripe ? textWidth(words_, size, weight) + 8 : 0, backH: stripe ? 15 : 0 });
      dy += LINE + (i === 0 ? 1 : 0);
    });
  }
  return { cells, words, w, h };
};

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

// here: the key of the cell that the keyboard is on, or none. Answers when the picture stands.
const drawChart = (here) => {
  const rows = view.many ? [] : shownKeys(view.R), cols = view.many ? [] : shownKeys(view.C), { cells, words, w, h } = drawnCells(rows, cols, here);
  const kind = cells.length > MANY_CELLS ? "canvas" : "svg";
  if (kind !== chartKind) makeChart(kind);
  const log = isLog(view.low, view.high), measured = view.low <= view.high;
  const mid = log ? Math.sqrt(view.low * view.high) : (view.low + view.high) / 2;
  const ends = view.V.lower ? [view.high, mid, view.low] : [view.low, mid, view.high];
  const { changeset } = vegaRequire("vega-dataflow");
  const replace = (name, values) => chart.change(name, changeset().remove(() => true).insert(values));
  replace("rows", rows.map((r, at) => ({ at, name: view.R.values[r] })));
  replace("cols", cols.map((c, at) => ({ at, name: view.C.values[c] })));
  replace("drawn", cells);
  replace("said", words);
  chart.signal("cellW", w).signal("cellH", h).signal("nRows", Math.max(rows.length, 1)).signal("nCols", Math.max(cols.length, 1));
  replace("ramp", measured ? rampStripes() : []);
  replace("ends", measured ? ends.map((v, i) => ({ x: (RAMP / 2) * i, text: view.scale.show(v), align: ["left", "center", "right"][i] })) : []);
  chart.signal("rowName", S.rows).signal("colName", S.cols);
  chart.signal("valueName", measured ? `${S.value}${view.scale.unit ? ", " + view.scale.unit : ""}; brighter is better${log ? "; logarithmic" : ""}` : "");
  return chart.runAsync();
};
