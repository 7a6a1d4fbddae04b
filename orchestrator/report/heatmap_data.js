// The data of the page and everything computed from it: the compact columns in #data, numbers and colours as C++ shows
// them, what is chosen, and the cells under the filters. Part of one program with heatmap_chart.js and heatmap.js.
const SEP = "\n";  // between names in the address: no name holds a line end
const byKey = (list) => Object.fromEntries(list.map((x) => [x.key, x]));
let D, axes, metrics, fate;
const take = (text) => {
  D = JSON.parse(text);
  axes = byKey(D.axes);
  metrics = byKey(D.metrics);
  for (const m of D.metrics) m.of = Float64Array.from(m.of.split(","), (s) => (s === "" ? NaN : Number(s)));
  for (const a of D.axes) a.of = Uint32Array.from(a.of);
  fate = Uint8Array.from(D.fate, Number);
};
take(document.getElementById("data").textContent);
const FATES = ["ok", "OOM", "pruned", "failed", "not run yet"];
const STATES = ["", "oom", "pruned", "failed", "pending"];
const WORDS = { oom: "OOM", pruned: "pruned", failed: "failed", pending: "not run yet", mixed: "none ok", unmeasured: "not measured", empty: "–" };

// Numbers: the same digits as in the terminal (format.cpp).
const significant = (v) => {
  if (!Number.isFinite(v)) return "-";
  const a = Math.abs(v);
  if (a === 0) return "0";
  const sign = v < 0 ? "-" : "";
  if (a >= 1e15 || a < 1e-3) return sign + a.toExponential(2);
  return sign + a.toFixed(a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : a >= 0.1 ? 3 : a >= 0.01 ? 4 : 5);
};
const si = (v) => {
  const suffix = ["", "k", "M", "G", "T", "P"];
  let i = 0;
  while (Math.abs(v) >= 1000 && i + 1 < suffix.length) { v /= 1000; ++i; }
  return significant(v) + suffix[i];
};
const scaleFor = (unit, largest) => {
  if (unit === "bytes") {
    const [f, u] = largest >= 2 ** 30 ? [2 ** 30, "GiB"] : largest >= 2 ** 20 ? [2 ** 20, "MiB"] : largest >= 1024 ? [1024, "KiB"] : [1, "B"];
    return { unit: u, show: (v) => significant(v * (1 / f)) };
  }
  if (unit === "fraction") return { unit: "%", show: (v) => significant(v * 100) };
  if (unit === "tokens/s" || unit === "FLOP/s") return { unit, show: si };
  return { unit, show: significant };
};
const largestOf = (m) => m.largest ??= m.of.reduce((a, v) => (Math.abs(v) > a ? Math.abs(v) : a), 0);

// Colours: palette.cpp.
const stops = D.palette.map((h) => [1, 3, 5].map((i) => parseInt(h.slice(i, i + 2), 16)));
const paint = (share) => {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  const mix = stops[i].map((a, k) => Math.floor(a + (at - i) * (stops[i + 1][k] - a) + 0.5));
  const lum = mix.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  const l = 0.2126 * lum[0] + 0.7152 * lum[1] + 0.0722 * lum[2];
  return { fill: `rgb(${mix})`, ink: 1.05 / (l + 0.05) > (l + 0.05) / 0.06 ? "#ffffff" : "#10161c" };
};
const isLog = (low, high) => low > 0 && high / low >= D.log_ratio;
const shareOf = (v, low, high, lower) => {
  if (!(high > low)) return 1;
  const s = isLog(low, high) ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low);
  return lower ? 1 - s : s;
};

// What is shown: defaults, then the part of the address after #, so that a view can be linked.
const S = { rows: D.rows, cols: D.cols, value: D.value, best: D.objective, open: "", off: {} };
const fromAddress = () => {
  const p = new URLSearchParams(location.hash.slice(1));
  if (axes[p.get("rows")]) S.rows = p.get("rows");
  if (axes[p.get("cols")]) S.cols = p.get("cols");
  if (metrics[p.get("value")]) S.value = p.get("value");
  if (metrics[p.get("best")]) S.best = p.get("best");
  S.open = p.get("cell") || "";
  for (const a of D.axes) {
    const keep = p.get("f." + a.key);
    if (keep !== null) S.off[a.key] = new Set(a.values.map((_, i) => i).filter((i) => !keep.split(SEP).includes(a.values[i])));
  }
};
const toAddress = () => {
  const p = new URLSearchParams();
  for (const [k, v, d] of [["rows", S.rows, D.rows], ["cols", S.cols, D.cols], ["value", S.value, D.value], ["best", S.best, D.objective]]) if (v !== d) p.set(k, v);
  if (S.open) p.set("cell", S.open);
  for (const a of D.axes) if (S.off[a.key]?.size) p.set("f." + a.key, a.values.filter((_, i) => !S.off[a.key].has(i)).join(SEP));
  try { history.replaceState(null, "", "#" + p); } catch (e) { /* some viewers forbid it; the view still works */ }
};

// One byte a row: 1 passes every filter.
const passing = () => {
  const pass = new Uint8Array(D.n).fill(1);
  for (const a of D.axes) {
    const off = S.off[a.key];
    if (!off?.size) continue;
    const keep = Uint8Array.from(a.values, (_, i) => (off.has(i) ? 0 : 1)), of = a.of;
    for (let i = 0; i < D.n; ++i) pass[i] &= keep[of[i]];
  }
  return pass;
};
const better = (a, i, b, j, lower) => (a !== b ? (lower ? a < b : a > b) : D.ids[i] < D.ids[j]);

const MOST_CELLS = 10000;  // as heatmap.cpp
let view = null;
const compute = () => {
  const R = axes[S.rows], C = axes[S.cols], V = metrics[S.value], G = metrics[S.best], width = C.values.length;
  const many = R.values.length * width > MOST_CELLS;
  const pass = passing(), cells = Array.from({ length: many ? 0 : R.values.length * width }, () => ({ best: -1, count: [0, 0, 0, 0, 0], total: 0 }));
  const sums = [0, 0, 0, 0, 0];
  for (let i = 0; i < D.n; ++i) {
    if (!pass[i]) continue;
    if (many) { ++sums[fate[i]]; continue; }
    const c = cells[R.of[i] * width + C.of[i]];
    ++c.count[fate[i]]; ++c.total; ++sums[fate[i]];
    if (fate[i] !== 0 || Number.isNaN(V.of[i]) || Number.isNaN(G.of[i])) continue;
    if (c.best < 0 || better(G.of[i], i, G.of[c.best], c.best, G.lower)) c.best = i;
  }
  let low = Infinity, high = -Infinity;
  for (const c of cells) {
    const kinds = c.count.map((n, f) => (n ? f : -1)).filter((f) => f >= 0);
    c.state = c.best >= 0 ? "measured" : c.count[0] ? "unmeasured" : !c.total ? "empty" : kinds.length === 1 ? STATES[kinds[0]] : "mixed";
    if (c.best >= 0) { low = Math.min(low, V.of[c.best]); high = Math.max(high, V.of[c.best]); }
  }
  view = { R, C, V, G, pass, cells, many, sums, low, high, width, scale: scaleFor(V.unit, Math.max(Math.abs(low), Math.abs(high))) };
};

const lines = (i) => D.layout.map((group) => group.filter((k) => k !== S.rows && k !== S.cols)
  .map((k) => axes[k].short + axes[k].values[axes[k].of[i]]).join(" ")).filter((s) => s);
const unitOf = (s) => (s.unit ? " " + s.unit : "");
const countText = (count) => count.map((n, f) => (n ? `${n} ${FATES[f]}` : "")).filter((s) => s).join(", ");
const shownKeys = (axis) => axis.values.map((_, i) => i).filter((i) => !S.off[axis.key]?.has(i));
const cellKey = (r, c) => view.R.values[r] + SEP + view.C.values[c];

// The configurations of a cell, best first, those without a value behind them by what became of them.
const members = (r, c) => {
  const out = [];
  for (let i = 0; i < D.n; ++i) if (view.pass[i] && view.R.of[i] === r && view.C.of[i] === c) out.push(i);
  const rank = (i) => (fate[i] === 0 && !Number.isNaN(view.G.of[i]) ? 0 : 1 + fate[i]);
  return out.sort((i, j) => rank(i) - rank(j) || (rank(i) === 0 ? (better(view.G.of[i], i, view.G.of[j], j, view.G.lower) ? -1 : 1) : i - j));
};
