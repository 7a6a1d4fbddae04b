// Parallel coordinates: a line for each configuration that ended ok and passes the filters, across the axes that matter most (D.important)
// to the value shown. Vega draws it when it is opened; of many lines the best and an even part of the others.
const MOST_LINES = 600, BEST_LINES = 200, MOST_DIMS = 10, PLOT_H = 300;
const parallelSpec = () => ({
  description: "configurations across axes", padding: 5, autosize: { type: "pad", contains: "padding" }, background: "#ffffff",
  signals: [{ name: "width", value: 600 }, { name: "height", value: PLOT_H }],
  data: [{ name: "lines" }, { name: "dims" }, { name: "ticks" }],
  scales: [{ name: "colour", type: "linear", domain: [0, 1], range: { scheme: D.palette } }],
  marks: [
    { name: "paths", type: "path", from: { data: "lines" }, encode: { update: { path: { field: "path" }, stroke: [{ test: "datum.best", value: BEST }, { scale: "colour", field: "share" }],
      strokeWidth: { field: "wide" }, strokeOpacity: { field: "opacity" }, tooltip: { field: "label" }, description: { field: "label" } } } },
    { type: "rule", from: { data: "dims" }, interactive: false, encode: { update: { x: { field: "x" }, x2: { field: "x" }, y: { value: 0 }, y2: { value: PLOT_H }, stroke: { value: "#4d565f" }, aria: { value: false } } } },
    { name: "titles", type: "text", from: { data: "dims" }, interactive: false, encode: { update: { x: { field: "x" }, y: { field: "y" }, text: { field: "name" }, align: { field: "align" },
      font: { value: FONT }, fontSize: { value: 11 }, fontWeight: { value: 600 }, fill: { value: "#16202a" } } } },
    { type: "rect", from: { data: "ticks" }, interactive: false, encode: { update: { x: { field: "x", offset: 3 }, width: { field: "w" }, yc: { field: "y" }, height: { value: 13 },
      fill: { value: "#ffffff" }, fillOpacity: { value: 0.85 }, aria: { value: false } } } },
    { name: "values", type: "text", from: { data: "ticks" }, encode: { update: { x: { field: "x", offset: 5 }, y: { field: "y", offset: 4 }, text: { field: "text" }, font: { value: FONT }, fontSize: { value: 11 },
      fill: { value: "#16202a" }, cursor: { value: "pointer" } } } },
  ],
});
const linesShown = () => {
  const { G, V } = view, all = passingRows().filter((i) => cellOutcome[i] === 0 && !Number.isNaN(V.of[i]) && !Number.isNaN(G.of[i])).sort((i, j) => G.rank[i] - G.rank[j]);
  if (all.length <= MOST_LINES) return { all, shown: all };
  const rest = all.length - BEST_LINES, each = rest / (MOST_LINES - BEST_LINES);
  return { all, shown: [...all.slice(0, BEST_LINES), ...Array.from({ length: MOST_LINES - BEST_LINES }, (_, k) => all[BEST_LINES + Math.floor(k * each)])] };
};
const dimsOf = (rows) => {
  const differ = D.axes.filter((a) => rows.some((i) => a.of[i] !== a.of[rows[0]])), place = (a) => { const at = D.important.indexOf(a.key); return at < 0 ? Infinity : at; };
  const chosen = new Set([...differ].sort((a, b) => place(a) - place(b)).slice(0, MOST_DIMS));
  return differ.filter((a) => chosen.has(a)).sort((a, b) => place(b) - place(a)).map((a) => {
    const keys = [...new Set(rows.map((i) => a.of[i]))].sort((x, y) => x - y), at = new Map(keys.map((k, n) => [k, n]));
    const y = (place_) => (keys.length < 2 ? 0.5 : 1 - place_ / (keys.length - 1)) * PLOT_H;
    const step = Math.ceil(keys.length / 20);
    return { name: a.name, axis: a, y: (i) => y(at.get(a.of[i])), ticks: keys.filter((_, n) => n % step === 0 || n + 1 === keys.length).map((k) => ({ y: y(at.get(k)), text: a.values[k], axis: a.key, key: k })) };
  });
};
const valueDim = (rows) => {
  const { V } = view, byValue = [...rows].sort((i, j) => V.of[i] - V.of[j]), low = byValue[0], high = byValue[byValue.length - 1], span = V.of[high] - V.of[low];
  const share = (i) => (span > 0 ? (V.of[i] - V.of[low]) / span : 1);
  const ends = span > 0 ? [low, byValue.find((i) => share(i) >= 0.5), high] : [high];
  return { name: V.title, y: (i) => (1 - share(i)) * PLOT_H, share: (i) => (V.lower ? 1 - share(i) : share(i)), ticks: ends.map((i) => ({ y: (1 - share(i)) * PLOT_H, text: V.text[i], axis: "" })) };
};
let parallel = null;
const makeParallelView = () => {
  const [parser, views, interpreter] = ["vega-parser", "vega-view", "vega-interpreter"].map(vegaRequire);
  parallel = new views.View(parser.parse(parallelSpec(), null, { ast: true }), { expr: interpreter.expressionInterpreter, renderer: "svg", container: "#lines", hover: false, logLevel: 0 });
  // A click on a value keeps only it; on the value that is left alone, brings the others back.
  parallel.addEventListener("click", (e, item) => {
    const tick = item?.mark?.name === "values" && item.datum.axis ? item.datum : null;
    if (!tick) return;
    const values = axes[tick.axis].values, off = S.off[tick.axis];
    S.off[tick.axis] = off?.size === values.length - 1 && !off.has(tick.key) ? new Set() : new Set(values.map((_, i) => i).filter((i) => i !== tick.key));
    redraw();
  });
};
const drawParallel = () => {
  if (!el("parallel").open) return null;
  const { all, shown } = linesShown();
  el("linesSaid").textContent = shown.length < 2 ? "Fewer than two configurations ended ok and pass the filters."
    : `${shown.length === all.length ? `${all.length}` : `The ${BEST_LINES} best and ${shown.length - BEST_LINES} others of ${all.length}`} configurations that ended ok; brighter is better, the best is pink and thick. A click on a value keeps only it.`;
  el("lines").hidden = shown.length < 2;
  if (shown.length < 2) return null;
  if (!parallel) makeParallelView();
  const value = valueDim(shown), dims = [...dimsOf(shown), value];
  const room = Math.max(el("parallel").clientWidth - 110, 72 * (dims.length - 1)), x = (d) => (dims.length > 1 ? (d / (dims.length - 1)) * room : 0);
  const { changeset } = vegaRequire("vega-dataflow"), replace = (name, values) => parallel.change(name, changeset().remove(() => true).insert(values));
  const label = (i) => `${withUnit(view.V, i)}: ${D.axes.map((a) => a.settings[a.of[i]]).filter((s) => s).join(" ")}`;
  replace("lines", [...shown].reverse().map((i, n) => ({ path: dims.map((dim, d) => `${d ? "L" : "M"}${x(d).toFixed(1)},${dim.y(i).toFixed(1)}`).join(""), share: value.share(i), label: label(i),
    best: n + 1 === shown.length, wide: n + 1 === shown.length ? 3 : 1.2, opacity: n + 1 === shown.length ? 1 : shown.length > 100 ? 0.45 : 0.75 })));
  replace("dims", dims.map((dim, d) => ({ x: x(d), y: d % 2 ? -10 : -24, name: dim.name, align: d + 1 === dims.length ? "right" : d ? "center" : "left" })));
  replace("ticks", dims.flatMap((dim, d) => dim.ticks.map((t) => ({ ...t, x: x(d), w: textWidth(t.text, 11, 400) + 4 }))));
  parallel.signal("width", room);
  return parallel.runAsync();
};
const makeParallel = () => {
  const said = make("p", "", "meta"), lines = make("div", undefined, "drawing");
  said.id = "linesSaid";
  lines.id = "lines";
  el("parallel").append(make("summary", "Parallel coordinates"), said, lines);
  el("parallel").addEventListener("toggle", drawParallel);
};
