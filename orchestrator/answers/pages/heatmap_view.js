// The user's choices, and the cells under them.
// `keep`: for an axis that cells must not mix, the index of the one value shown, or -1 for all. `off`: values
// left out.
const S = { rows: D.rows, cols: D.cols, value: D.value, best: D.objective, colours: "auto", open: "", keep: {}, off: {} };
let held = [];  // the axes of D.apart that cells would mix under these rows and columns
const apart = () => held;
const wouldMix = () => {
  const R = axes[S.rows], C = axes[S.cols];
  return D.apart.map((key) => axes[key]).filter((a) => {
    if (!a || a === R || a === C) return false;
    const first = new Map();
    for (let i = 0; i < D.n; ++i) {
      const at = R.of[i] * C.values.length + C.of[i], seen = first.get(at);
      if (seen === undefined) first.set(at, a.of[i]);
      else if (seen !== a.of[i]) return true;
    }
    return false;
  });
};
// The value with most results, unless the page was made with one.
const usualKeep = (a) => {
  const given = D.kept.find(([key]) => key === a.key);
  if (given) return given[1];
  const ok = a.values.map(() => 0);
  for (let i = 0; i < D.n; ++i) ok[a.of[i]] += cellOutcome[i] === 0;
  return ok.indexOf(Math.max(...ok));
};
const keptOf = (a) => S.keep[a.key] ?? usualKeep(a);
const startView = () => Object.assign(S, { rows: D.rows, cols: D.cols, value: D.value, best: D.objective, colours: "auto", open: "", keep: {}, off: {} });

// The part of the address after # is the view, so that it can be linked.
const fromAddress = () => {
  const p = new URLSearchParams(location.hash.slice(1));
  if (axes[p.get("rows")]) S.rows = p.get("rows");
  if (axes[p.get("cols")]) S.cols = p.get("cols");
  if (metrics[p.get("value")]) S.value = p.get("value");
  if (metrics[p.get("best")]?.ranks) S.best = p.get("best");
  if (COLOURS[p.get("colours")]) S.colours = p.get("colours");
  S.open = p.get("cell") || "";
  for (const a of D.axes) {
    const only = p.get("only." + a.key), keep = p.get("f." + a.key);
    if (only !== null && D.apart.includes(a.key)) S.keep[a.key] = only === "*" ? -1 : Math.max(a.values.indexOf(only), 0);
    if (keep !== null) S.off[a.key] = new Set(a.values.map((_, i) => i).filter((i) => !keep.split(SEP).includes(a.values[i])));
  }
};
const toAddress = () => {
  const p = new URLSearchParams();
  for (const [k, v, d] of [["rows", S.rows, D.rows], ["cols", S.cols, D.cols], ["value", S.value, D.value], ["best", S.best, D.objective], ["colours", S.colours, "auto"]]) if (v !== d) p.set(k, v);
  if (S.open) p.set("cell", S.open);
  for (const a of apart()) if (keptOf(a) !== usualKeep(a)) p.set("only." + a.key, keptOf(a) < 0 ? "*" : a.values[keptOf(a)]);
  for (const a of D.axes) if (S.off[a.key]?.size) p.set("f." + a.key, a.values.filter((_, i) => !S.off[a.key].has(i)).join(SEP));
  try { history.replaceState(null, "", "#" + p); } catch (e) { /* some viewers forbid it; the view still works */ }
};

// One byte a row: 1 passes every filter.
const passing = () => {
  held = wouldMix();
  const pass = new Uint8Array(D.n).fill(1), kept = new Map(held.map((a) => [a.key, keptOf(a)]));
  for (const a of D.axes) {
    const off = S.off[a.key], only = kept.get(a.key) ?? -1;
    if (!off?.size && only < 0) continue;
    const keep = Uint8Array.from(a.values, (_, i) => (only >= 0 ? i === only : !off.has(i)) ? 1 : 0), of = a.of;
    for (let i = 0; i < D.n; ++i) pass[i] &= keep[of[i]];
  }
  return pass;
};
// Whether the intervals of two configurations overlap, or their values are equal (are_tied of statistics.h).
const tie = (m, i, j) => {
  const s = D.spreads[m.spread], a = m.of[i], b = m.of[j];
  return a === b || (s !== undefined && a * s.low[i] <= b * s.high[j] && b * s.low[j] <= a * s.high[i]);
};

let view = null;
// The values of an axis that some passing configuration has.
const present = (axis, pass) => {
  const seen = new Uint8Array(axis.values.length);
  for (let i = 0; i < D.n; ++i) if (pass[i]) seen[axis.of[i]] = 1;
  return axis.values.map((_, i) => i).filter((i) => seen[i]);
};
// The axes that differ within a cell: [axis, number of values].
const hiddenAxes = (pass, cellOf, cells) => {
  const out = [];
  for (const a of D.axes) {
    if (a.key === S.rows || a.key === S.cols) continue;
    const first = new Int32Array(cells).fill(-1), seen = new Uint8Array(a.values.length);
    let differs = false;
    for (let i = 0; i < D.n; ++i) {
      if (!pass[i] || a.values[a.of[i]] === D.unresolved) continue;
      const at = cellOf(i);
      if (first[at] < 0) first[at] = a.of[i];
      differs ||= first[at] !== a.of[i];
      seen[a.of[i]] = 1;
    }
    if (differs) out.push([a, seen.reduce((n, x) => n + x, 0)]);
  }
  return out;
};
const stateOf = (c) => {
  const kinds = c.count.map((n, f) => (n ? f : -1)).filter((f) => f >= 0);
  if (c.best >= 0) return "measured";
  if (c.count[0]) return "unmeasured";
  if (!c.total) return "empty";
  return c.count[4] ? "pending" : kinds.length === 1 ? D.outcome_states[kinds[0]] : "mixed";
};
const countCells = () => {
  const { R, C, V, G, pass, cells, width, sums } = view;
  for (let i = 0; i < D.n; ++i) {
    if (!pass[i]) continue;
    ++sums[cellOutcome[i]];
    if (view.many) continue;
    const c = cells[R.of[i] * width + C.of[i]];
    ++c.count[cellOutcome[i]]; ++c.total;
    if (cellOutcome[i] !== 0 || Number.isNaN(V.of[i]) || Number.isNaN(G.of[i])) continue;
    if (c.best < 0 || G.rank[i] < G.rank[c.best]) c.best = i;
  }
};
const compute = () => {
  const R = axes[S.rows], C = axes[S.cols], V = metrics[S.value], G = metrics[S.best], width = C.values.length, pass = passing();
  const rows = present(R, pass), cols = present(C, pass), many = rows.length * cols.length > D.most_cells || R.values.length * width > 100 * D.most_cells;
  const cells = Array.from({ length: many ? 0 : R.values.length * width }, () => ({ best: -1, count: [0, 0, 0, 0, 0], total: 0 }));
  view = { R, C, V, G, pass, rows, cols, cells, many, width, sums: [0, 0, 0, 0, 0], best: -1, rowBest: new Map(), colBest: new Map() };
  countCells();
  const first = (at, before) => before === undefined || before < 0 || G.rank[cells[at].best] < G.rank[cells[before].best];
  const bests = [];
  cells.forEach((c, at) => {
    c.state = stateOf(c);
    if (c.best < 0) return;
    bests.push(c.best);
    if (stopped.has(c.best)) return;
    const r = Math.floor(at / width), k = at % width;
    if (first(at, view.best)) view.best = at;
    if (first(at, view.rowBest.get(r))) view.rowBest.set(r, at);
    if (first(at, view.colBest.get(k))) view.colBest.set(k, at);
  });
  view.tied = new Set();
  if (view.best >= 0) cells.forEach((c, at) => { if (c.best >= 0 && !stopped.has(c.best) && tie(G, cells[view.best].best, c.best)) view.tied.add(at); });
  view.winner = view.tied.size === 1;
  view.measured = bests.length > 0;
  view.bests = bests.sort((i, j) => V.of[i] - V.of[j]);
  view.colours = coloursFor(bests.map((i) => V.of[i]), V.lower, S.colours);
  view.hidden = many ? [] : hiddenAxes(pass, (i) => R.of[i] * width + C.of[i], cells.length);
  view.lines = many ? [] : cellLines();
};

// The axes of a cell's lines (heatmap_words.cpp): the first and the last line only what differs between the cells' bests.
const cellLines = () => {
  const bests = view.cells.filter((c) => c.best >= 0).map((c) => c.best);
  const differs = (a) => bests.some((i) => a.of[i] !== a.of[bests[0]]);
  return D.layout.map((line, at) => {
    const shown = line.filter((k) => k !== S.rows && k !== S.cols).map((k) => axes[k]);
    if (at === 0) return shown.filter(differs);
    return at + 1 === D.layout.length ? shown.filter(differs).slice(0, D.most_others) : shown;
  });
};
const lines = (i) => view.lines.map((line) => line.map((a) => a.settings[a.of[i]]).filter((s) => s).join(" "))
  .filter((s) => s).concat(stopped.has(i) ? ["stopped early"] : []);
const withUnit = (m, i) => m.text[i] + (m.unit ? " " + m.unit : "");
const countText = (count) => count.map((n, f) => (n ? `${n} ${D.outcome_words[f]}` : "")).filter((s) => s).join(", ");
const shownKeys = (axis) => (axis === view.R ? view.rows : axis === view.C ? view.cols : axis.values.map((_, i) => i).filter((i) => !S.off[axis.key]?.has(i)));
const cellKey = (r, c) => view.R.values[r] + SEP + view.C.values[c];

// The configurations of a cell, best first, those without a value behind them by how they ended.
const members = (r, c) => {
  const out = [];
  for (let i = 0; i < D.n; ++i) if (view.pass[i] && view.R.of[i] === r && view.C.of[i] === c) out.push(i);
  const rank = (i) => (cellOutcome[i] === 0 && !Number.isNaN(view.G.of[i]) ? 0 : 1 + cellOutcome[i]);
  return out.sort((i, j) => rank(i) - rank(j) || (rank(i) === 0 ? view.G.rank[i] - view.G.rank[j] : i - j));
};
