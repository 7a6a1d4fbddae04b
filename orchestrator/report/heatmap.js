"use strict";
// Computes the cells from the compact columns in #data and draws them; everything a result says enters the page as text.
(() => {
  const D = JSON.parse(document.getElementById("data").textContent);
  const byKey = (list) => Object.fromEntries(list.map((x) => [x.key, x]));
  const axes = byKey(D.axes), metrics = byKey(D.metrics);
  for (const m of D.metrics) m.of = Float64Array.from(m.of.split(","), (s) => (s === "" ? NaN : Number(s)));
  const fate = Uint8Array.from(D.fate, Number);
  const FATES = ["ok", "OOM", "pruned", "failed", "not run yet"];
  const STATES = ["", "oom", "pruned", "failed", "pending"];
  const el = (id) => document.getElementById(id);
  const make = (tag, text, cls) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (cls) node.className = cls;
    return node;
  };

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
    return { fill: `rgb(${mix})`, ink: 1.05 / (l + 0.05) > (l + 0.05) / 0.06 ? "#fff" : "#10161c" };
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
      if (keep !== null) S.off[a.key] = new Set(a.values.map((_, i) => i).filter((i) => !keep.split("~").includes(a.values[i])));
    }
  };
  const toAddress = () => {
    const p = new URLSearchParams();
    for (const [k, v, d] of [["rows", S.rows, D.rows], ["cols", S.cols, D.cols], ["value", S.value, D.value], ["best", S.best, D.objective]]) if (v !== d) p.set(k, v);
    if (S.open) p.set("cell", S.open);
    for (const a of D.axes) if (S.off[a.key]?.size) p.set("f." + a.key, a.values.filter((_, i) => !S.off[a.key].has(i)).join("~"));
    try { history.replaceState(null, "", "#" + p); } catch (e) { /* some viewers forbid it; the view still works */ }
  };

  const passing = () => {
    const pass = new Uint8Array(D.n).fill(1);
    for (const a of D.axes) {
      const off = S.off[a.key];
      if (off?.size) for (let i = 0; i < D.n; ++i) if (off.has(a.of[i])) pass[i] = 0;
    }
    return pass;
  };
  const better = (a, i, b, j, lower) => (a !== b ? (lower ? a < b : a > b) : D.ids[i] < D.ids[j]);

  let view = null;
  const compute = () => {
    const R = axes[S.rows], C = axes[S.cols], V = metrics[S.value], G = metrics[S.best], width = C.values.length;
    const pass = passing(), cells = Array.from({ length: R.values.length * width }, () => ({ best: -1, count: [0, 0, 0, 0, 0], total: 0 }));
    const sums = [0, 0, 0, 0, 0];
    for (let i = 0; i < D.n; ++i) {
      if (!pass[i]) continue;
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
    view = { R, C, V, G, pass, cells, sums, low, high, width, scale: scaleFor(V.unit, Math.max(Math.abs(low), Math.abs(high))) };
  };

  const lines = (i) => D.layout.map((group) => group.filter((k) => k !== S.rows && k !== S.cols)
    .map((k) => axes[k].short + axes[k].values[axes[k].of[i]]).join(" ")).filter((s) => s);
  const unitOf = (s) => (s.unit ? " " + s.unit : "");
  const countText = (count) => count.map((n, f) => (n ? `${n} ${FATES[f]}` : "")).filter((s) => s).join(", ");
  const WORDS = { oom: "OOM", pruned: "pruned", failed: "failed", pending: "not run yet", mixed: "none ok", unmeasured: "not measured", empty: "–" };

  const cellNode = (r, c) => {
    const cell = view.cells[r * view.width + c], td = make("td");
    td.dataset.r = r; td.dataset.c = c; td.dataset.state = cell.state;
    if (cell.state !== "empty") { td.tabIndex = 0; td.setAttribute("role", "button"); }
    const name = `${S.rows} ${view.R.values[r]}, ${S.cols} ${view.C.values[c]}`;
    if (cell.best >= 0) {
      const v = view.V.of[cell.best], p = paint(shareOf(v, view.low, view.high, view.V.lower));
      td.style.background = p.fill; td.style.color = p.ink;
      td.append(make("span", view.scale.show(v), "v"));
      for (const l of lines(cell.best)) td.append(make("span", l, "l"));
      td.append(make("span", `${cell.count[0]} of ${cell.total}`, "n"));
      td.setAttribute("aria-label", `${name}: ${view.scale.show(v)}${unitOf(view.scale)}; ${countText(cell.count)}`);
    } else {
      td.className = cell.state;
      td.append(make("span", WORDS[cell.state], cell.state === "empty" ? "" : "word"));
      if (cell.total) td.append(make("span", cell.state === "mixed" ? countText(cell.count).replaceAll(", ", " · ") : String(cell.total), "n"));
      td.setAttribute("aria-label", `${name}: ${cell.total ? countText(cell.count) : "no such configuration"}`);
    }
    if (S.open === `${view.R.values[r]}~${view.C.values[c]}`) td.classList.add("open");
    return td;
  };

  const shownKeys = (axis) => axis.values.map((_, i) => i).filter((i) => !S.off[axis.key]?.has(i));
  const drawMap = () => {
    const map = el("map"), cols = shownKeys(view.C), rows = shownKeys(view.R);
    map.replaceChildren();
    const top = map.insertRow();
    top.append(make("th"));
    const over = make("th", S.cols, "axis"); over.colSpan = Math.max(cols.length, 1); over.scope = "colgroup";
    top.append(over);
    const head = map.insertRow(), corner = make("th", S.rows, "axis row");
    head.append(corner);
    for (const c of cols) { const th = make("th", view.C.values[c]); th.scope = "col"; head.append(th); }
    for (const r of rows) {
      const tr = map.insertRow(), th = make("th", view.R.values[r], "row");
      th.scope = "row"; th.title = view.R.values[r];
      tr.append(th, ...cols.map((c) => cellNode(r, c)));
    }
    const seen = view.sums.reduce((a, b) => a + b, 0);
    el("summary").textContent = `${S.value}${view.scale.unit ? " in " + view.scale.unit : ""} of the configuration with the ${view.G.lower ? "lowest" : "highest"} ${S.best} in each cell. `
      + `${seen} of ${D.n} configurations: ${countText(view.sums) || "none"}.`;
  };
  const drawLegend = () => {
    const box = el("legend");
    box.replaceChildren();
    if (view.low <= view.high) {
      const ramp = make("div"), bar = make("div", undefined, "bar"), ends = make("div", undefined, "ends"), log = isLog(view.low, view.high);
      bar.style.background = `linear-gradient(to right, ${D.palette})`;
      const mid = log ? Math.sqrt(view.low * view.high) : (view.low + view.high) / 2;
      for (const v of view.V.lower ? [view.high, mid, view.low] : [view.low, mid, view.high]) ends.append(make("span", view.scale.show(v)));
      ramp.append(bar, ends, make("div", `${S.value}${view.scale.unit ? ", " + view.scale.unit : ""}; brighter is better${log ? "; logarithmic" : ""}`, "what"));
      box.append(ramp);
    }
    const keys = make("div");
    keys.id = "keys";
    const words = { ...WORDS, mixed: "none ok, for several reasons", empty: "no such configuration" };
    for (const state of Object.keys(words)) {
      if (!view.cells.some((c) => c.state === state)) continue;
      const key = make("div", undefined, "key");
      key.append(make("span", undefined, "swatch " + state), make("span", words[state]));
      keys.append(key);
    }
    box.append(keys);
  };

  const members = (r, c) => {
    const out = [];
    for (let i = 0; i < D.n; ++i) if (view.pass[i] && view.R.of[i] === r && view.C.of[i] === c) out.push(i);
    const rank = (i) => (fate[i] === 0 && !Number.isNaN(view.G.of[i]) ? 0 : 1 + fate[i]);
    return out.sort((i, j) => rank(i) - rank(j) || (rank(i) === 0 ? (better(view.G.of[i], i, view.G.of[j], j, view.G.lower) ? -1 : 1) : i - j));
  };
  const showTip = (td, x, y) => {
    const r = +td.dataset.r, c = +td.dataset.c, cell = view.cells[r * view.width + c], tip = el("tip");
    if (!cell.total) return hideTip();
    tip.replaceChildren(make("div", `${S.rows} ${view.R.values[r]} · ${S.cols} ${view.C.values[c]}`, "at"));
    const all = members(r, c);
    if (cell.best >= 0) {
      tip.append(make("div", `${view.scale.show(view.V.of[cell.best])}${unitOf(view.scale)}`, "big"));
      const body = make("table");
      for (const a of D.axes) {
        if (a.key === S.rows || a.key === S.cols) continue;
        const tr = body.insertRow();
        tr.append(make("td", a.key, "soft"), make("td", a.values[a.of[cell.best]]));
      }
      for (const m of D.metrics) {
        if (m.key === S.value || Number.isNaN(m.of[cell.best])) continue;
        const s = scaleFor(m.unit, largestOf(m)), tr = body.insertRow();
        tr.append(make("td", m.key, "soft"), make("td", s.show(m.of[cell.best]) + unitOf(s)));
      }
      const tr = body.insertRow();
      tr.append(make("td", "trial", "soft"), make("td", D.ids[cell.best], "mono"));
      tip.append(body);
      const next = all.slice(1, 4).filter((i) => fate[i] === 0 && !Number.isNaN(view.V.of[i]));
      if (next.length) {
        tip.append(make("div", "runners-up", "soft"));
        const list = make("table");
        for (const i of next) { const row = list.insertRow(); row.append(make("td", view.scale.show(view.V.of[i])), make("td", lines(i).join(" "))); }
        tip.append(list);
      }
    } else if (D.reasons[D.reason[all[0]]]) {
      tip.append(make("div", D.reasons[D.reason[all[0]]]));
    }
    tip.append(make("div", `${countText(cell.count)}. Click to list them.`, "soft"));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(4, y + 14 + box.height > innerHeight ? y - box.height - 10 : y + 14) + "px";
  };
  const hideTip = () => { el("tip").hidden = true; };

  const MOST = 300;
  const drawList = () => {
    const box = el("list"), [rk, ck] = S.open.split("~"), r = view.R.values.indexOf(rk), c = view.C.values.indexOf(ck);
    box.hidden = r < 0 || c < 0;
    if (box.hidden) return;
    const all = members(r, c), shown = all.slice(0, MOST), table = make("table"), head = table.createTHead().insertRow();
    const cols = D.axes.filter((a) => a.key !== S.rows && a.key !== S.cols);
    const nums = D.metrics.filter((m) => shown.some((i) => !Number.isNaN(m.of[i]))).map((m) => [m, scaleFor(m.unit, largestOf(m))]);
    for (const a of cols) head.append(make("th", a.key, a.number ? "" : "t"));
    head.append(make("th", "outcome", "t"));
    for (const [m, s] of nums) head.append(make("th", m.key.replace(/_bytes$|_ms$/, "") + (s.unit ? ` [${s.unit}]` : "")));
    const reasons = shown.some((i) => D.reason[i]);
    head.append(make("th", "trial", "t"));
    if (reasons) head.append(make("th", "reason", "t"));
    const body = table.createTBody();
    for (const i of shown) {
      const tr = body.insertRow();
      if (i === view.cells[r * view.width + c].best) tr.className = "best";
      for (const a of cols) tr.append(make("td", a.values[a.of[i]], a.number ? "" : "t"));
      tr.append(make("td", D.outcomes[D.outcome[i]], "t"));
      for (const [m, s] of nums) tr.append(make("td", Number.isNaN(m.of[i]) ? "-" : s.show(m.of[i])));
      tr.append(make("td", D.ids[i], "t mono"));
      if (reasons) tr.append(make("td", D.reasons[D.reason[i]], "t reason"));
    }
    const wide = make("div", undefined, "wide");
    wide.append(table);
    box.replaceChildren(make("h2", `${S.rows} ${rk}, ${S.cols} ${ck}: ${all.length} configurations${all.length > MOST ? `, the first ${MOST}` : ""}, best ${S.best} first`), wide);
  };

  const drawControls = () => {
    const box = el("controls"), focused = document.activeElement?.name;
    const pick = (label, key, list) => {
      const wrap = make("label", label), select = make("select");
      select.name = key;
      for (const x of list) { const o = make("option", x.key); o.selected = x.key === S[key]; select.append(o); }
      select.addEventListener("change", () => {
        const other = { rows: "cols", cols: "rows" }[key];
        if (other && select.value === S[other]) S[other] = S[key];
        if (key === "value" && S.best === S.value) S.best = select.value;
        S[key] = select.value; S.open = other ? "" : S.open;
        redraw();
      });
      wrap.append(select);
      return wrap;
    };
    const reset = make("button", "Reset");
    reset.type = "button";
    reset.addEventListener("click", () => { Object.assign(S, { rows: D.rows, cols: D.cols, value: D.value, best: D.objective, open: "", off: {} }); redraw(); });
    box.replaceChildren(pick("rows", "rows", D.axes), pick("columns", "cols", D.axes), pick("value", "value", D.metrics), pick("best by", "best", D.metrics), reset);
    const filters = el("filters"), off = D.axes.filter((a) => S.off[a.key]?.size);
    filters.replaceChildren(make("summary", off.length ? `Filters: ${off.map((a) => `${a.key} = ${shownKeys(a).map((i) => a.values[i]).join(", ")}`).join("; ")}` : "Filters: none. Click a value to leave it out, Shift-click to keep only it."));
    for (const a of D.axes) {
      const row = make("div", undefined, "filter");
      row.append(make("b", a.key));
      a.values.forEach((v, i) => {
        const chip = make("button", v, "chip");
        chip.type = "button";
        chip.name = `${a.key}~${i}`;
        chip.setAttribute("aria-pressed", String(!S.off[a.key]?.has(i)));
        chip.addEventListener("click", (e) => {
          const set = (S.off[a.key] ??= new Set());
          if (e.shiftKey) a.values.forEach((_, k) => (k === i ? set.delete(k) : set.add(k)));
          else if (!set.delete(i)) set.add(i);
          redraw();
        });
        row.append(chip);
      });
      filters.append(row);
    }
    if (focused) document.getElementsByName(focused)[0]?.focus();
  };

  const redraw = () => { hideTip(); compute(); drawControls(); drawMap(); drawLegend(); drawList(); toAddress(); };
  const cellOf = (e) => e.target.closest?.("#map td");
  const open = (td) => {
    if (!td || td.dataset.state === "empty") return;
    const key = `${view.R.values[td.dataset.r]}~${view.C.values[td.dataset.c]}`;
    S.open = S.open === key ? "" : key;
    drawMap(); drawList(); toAddress();
    if (S.open) el("list").scrollIntoView({ block: "nearest" });
  };
  el("map").addEventListener("mousemove", (e) => { const td = cellOf(e); td ? showTip(td, e.clientX, e.clientY) : hideTip(); });
  el("map").addEventListener("mouseleave", hideTip);
  el("map").addEventListener("focusin", (e) => { const td = cellOf(e), b = td?.getBoundingClientRect(); if (td?.matches(":focus-visible")) showTip(td, b.left, b.bottom); });
  el("map").addEventListener("focusout", hideTip);
  el("map").addEventListener("click", (e) => open(cellOf(e)));
  el("map").addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(cellOf(e)); } });
  addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(); });
  fromAddress();
  redraw();
})();
