// The page's interaction: controls, filters, the box under the pointer, the list of a cell, the keyboard,
// saving. Every text of a result enters the page as text, never as HTML.
const el = (id) => document.getElementById(id);
const make = (tag, words, cls) => {
  const node = document.createElement(tag);
  if (words !== undefined) node.textContent = words;
  if (cls) node.className = cls;
  return node;
};
// The id of a trial; on a live page (heatmap_live.js) a link to the page of that trial.
let trialAddress = () => "";
const trialName = (i) => {
  const node = make(trialAddress(D.ids[i]) ? "a" : "span", D.ids[i]);
  if (node.tagName === "A") node.href = trialAddress(D.ids[i]);
  return node;
};
const titled = (node, words) => { node.title = words; return node; };
const button = (words, cls, press) => {
  const node = make("button", words, cls);
  node.type = "button";
  node.addEventListener("click", press);
  return node;
};

const plural = (a) => (a.key === "hardware" ? "kinds of hardware" : a.name + "s");
const bestWords = () => (!view.tied.size ? "" : view.winner ? " ★ the best of all."
  : ` ≈ the ${view.tied.size} best: they cannot be distinguished (equal values, or 95 % intervals that overlap).`);
const drawSummary = () => {
  const seen = view.sums.reduce((a, b) => a + b, 0), out = [];
  if (view.many) out.push(make("p", `${view.rows.length} x ${view.cols.length} values of ${view.R.name} and ${view.C.name} are more than ${D.most_cells} cells; choose axes with fewer values.`));
  else out.push(make("p", `${view.V.title}, best configuration in each cell${S.best !== S.value ? " by " + view.G.name : ""}.`));
  if (view.hidden.length) out.push(make("p", `Each cell is the best over ${view.hidden.map(([a, n]) => `${a.name} (${n} values)`).join(", ")}.`));
  const mixed = view.hidden.filter(([a]) => D.not_mixed.includes(a.key));
  if (mixed.length) out.push(make("p", `⚠ Cells mix ${mixed.map(([a, n]) => `${n} ${plural(a)}`).join(", ")}: their values are not of equal work.`, "warn"));
  if (view.V.unit === "USD" || view.G.unit === "USD") for (const price of D.prices) out.push(make("p", `Price of ${price}.`, price.includes("WARNING") ? "warn" : ""));
  out.push(make("p", `${seen} of ${D.n} configurations: ${countText(view.sums) || "none"}.`
    + (view.measured ? " In a cell: the value, its configuration, and how many of the cell's configurations ended ok." + bestWords() : "")));
  el("summary").replaceChildren(...out);
};
const drawKeys = () => {
  const keys = el("keys");
  keys.replaceChildren();
  const shown = view.many ? [] : view.rows.flatMap((r) => view.cols.map((c) => view.cells[r * view.width + c].state));
  for (const [state, , words] of D.states) {
    if (!shown.includes(state)) continue;
    const key = make("div", undefined, "key");
    key.append(make("span", state === "empty" ? "–" : "", "swatch " + state), make("span", words));
    keys.append(key);
  }
};

const RUNNERS_UP = 3;
const tipOfBest = (cell, all) => {
  const body = make("table"), out = [make("div", withUnit(view.V, cell.best), "big"), body];
  const row = (key, value, cls) => { const tr = body.insertRow(); tr.append(make("td", key, "soft"), make("td", value, cls)); };
  for (const a of D.axes) if (a.key !== S.rows && a.key !== S.cols) row(a.name, a.values[a.of[cell.best]] + (a.unit ? " " + a.unit : ""));
  for (const m of D.metrics) {
    if (m.key === S.value || Number.isNaN(m.of[cell.best])) continue;
    row(m.name, withUnit(m, cell.best));
  }
  row("trial", D.ids[cell.best], "mono");
  const next = all.slice(1, 1 + RUNNERS_UP).filter((i) => cellOutcome[i] === 0 && !Number.isNaN(view.V.of[i]));
  if (next.length) {
    const list = make("table", undefined, "next");
    out.push(make("div", "runners-up", "soft"), list);
    for (const i of next) { const tr = list.insertRow(); tr.append(make("td", view.V.text[i]), make("td", lines(i).join(" "))); }
  }
  return out;
};
let tipAt = "";
const fillTip = (r, c) => {
  const cell = view.cells[r * view.width + c], all = members(r, c), tip = el("tip");
  tip.replaceChildren(make("div", `${view.R.name} ${view.R.values[r]} · ${view.C.name} ${view.C.values[c]}`, "at"));
  if (cell.best >= 0) tip.append(...tipOfBest(cell, all));
  else if (D.reasons[D.reason[all[0]]]) tip.append(make("div", D.reasons[D.reason[all[0]]]));
  tip.append(make("div", `${countText(cell.count)}. Click to list them.`, "soft"));
};
const showTip = (r, c, x, y) => {
  if (!view.cells[r * view.width + c].total) return hideTip();
  if (tipAt !== cellKey(r, c)) { fillTip(r, c); tipAt = cellKey(r, c); }
  const tip = el("tip");
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, y + 14 + box.height > innerHeight ? y - box.height - 10 : y + 14) + "px";
};
const hideTip = () => { el("tip").hidden = true; tipAt = ""; };

const MOST = 300;
const drawList = () => {
  const box = el("list"), [rk, ck] = S.open.split(SEP), r = view.R.values.indexOf(rk), c = view.C.values.indexOf(ck);
  box.hidden = r < 0 || c < 0;
  if (box.hidden) return;
  const all = members(r, c), shown = all.slice(0, MOST), table = make("table"), head = table.createTHead().insertRow();
  const cols = D.axes.filter((a) => a.key !== S.rows && a.key !== S.cols && all.some((i) => a.of[i] !== a.of[all[0]]));
  const nums = D.metrics.filter((m) => shown.some((i) => !Number.isNaN(m.of[i])));
  for (const a of cols) head.append(titled(make("th", a.name, a.number ? "" : "t"), a.key));
  head.append(make("th", "outcome", "t"));
  for (const m of nums) head.append(titled(make("th", m.title), m.key));
  const reasons = shown.some((i) => D.reason[i]);
  head.append(make("th", "trial", "t"));
  if (reasons) head.append(make("th", "reason", "t"));
  const body = table.createTBody();
  for (const i of shown) {
    const tr = body.insertRow();
    if (i === view.cells[r * view.width + c].best) tr.className = "best";
    for (const a of cols) tr.append(make("td", a.values[a.of[i]], a.number ? "" : "t"));
    tr.append(make("td", D.outcomes[D.outcome[i]], "t"));
    for (const m of nums) tr.append(make("td", m.text[i] || "-"));
    tr.insertCell().append(trialName(i));
    tr.lastChild.className = "t mono";
    if (reasons) tr.append(make("td", D.reasons[D.reason[i]], "t reason"));
  }
  const wide = make("div", undefined, "wide");
  wide.append(table);
  box.replaceChildren(make("h2", `${view.R.name} ${rk}, ${view.C.name} ${ck}: ${all.length} configuration${all.length === 1 ? "" : "s"}${all.length > MOST ? `, the first ${MOST}` : ""}, best ${view.G.name} first`), wide);
};

const MOST_CHIPS = 40;
const chips = (a) => a.values.map((v, i) => {
  const chip = button(v, "chip", (e) => {
    const set = (S.off[a.key] ??= new Set());
    if (e.shiftKey) a.values.forEach((_, k) => (k === i ? set.delete(k) : set.add(k)));
    else if (!set.delete(i)) set.add(i);
    redraw();
  });
  chip.name = `${a.key}~${i}`;
  chip.setAttribute("aria-pressed", String(!S.off[a.key]?.has(i)));
  return chip;
});
// An axis of many values: the ones to keep are typed, numbers as ranges if need be.
const typed = (a) => {
  const input = make("input");
  input.name = `${a.key}~`;
  input.placeholder = a.number ? `of ${a.values.length} values: 1, 8 or 2..64` : `of ${a.values.length} values`;
  input.defaultValue = S.off[a.key]?.size ? shownKeys(a).slice(0, 20).map((i) => a.values[i]).join(", ") : "";
  input.addEventListener("change", () => {
    const wanted = input.value.split(",").map((s) => s.trim()).filter((s) => s);
    const inside = (v) => wanted.some((s) => {
      const range = /^(.*)\.\.(.*)$/.exec(s);
      return range ? +v >= (range[1] === "" ? -Infinity : +range[1]) && +v <= (range[2] === "" ? Infinity : +range[2]) : s === v || (a.number && +s === +v);
    });
    S.off[a.key] = new Set(wanted.length ? a.values.map((_, i) => i).filter((i) => !inside(a.values[i])) : []);
    redraw();
  });
  return [input];
};
const drawFilters = () => {
  const single = apart().filter((a) => keptOf(a) >= 0), filters = el("filters"), off = D.axes.filter((a) => S.off[a.key]?.size);
  const kept = (a) => { const keys = shownKeys(a); return keys.length > 8 ? `${keys.length} values` : keys.map((i) => a.values[i]).join(", ") || "none"; };
  filters.replaceChildren(make("summary", off.length ? `Filters: ${off.map((a) => `${a.name} = ${kept(a)}`).join("; ")}` : "Filters: none. Click a value to leave it out, Shift-click to keep only it."));
  for (const a of D.axes) {
    if (single.includes(a)) continue;  // one value of it is chosen above
    const row = make("div", undefined, "filter");
    row.append(titled(make("b", a.name), a.key), ...(a.values.length > MOST_CHIPS ? typed(a) : chips(a)));
    filters.append(row);
  }
};

const save = async (kind) => {
  const url = kind === "svg" ? URL.createObjectURL(new Blob([await chart.toSVG()], { type: "image/svg+xml" })) : (await chart.toCanvas(2)).toDataURL("image/png");
  const link = make("a");
  link.href = url;
  link.download = `heatmap.${kind}`;
  link.click();
};
const choice = (label, name, entries, chosen, change) => {
  const wrap = make("label", label), select = make("select");
  select.name = name;
  for (const [value, words, note] of entries) {
    const o = make("option", words);
    o.value = value;
    o.selected = String(value) === String(chosen);
    if (note) o.title = note;
    select.append(o);
  }
  select.addEventListener("change", () => { change(select.value); redraw(); });
  wrap.append(select);
  return wrap;
};
const drawControls = () => {
  const pick = (label, key, list) => choice(label, key, list.map((x) => [x.key, x.name, x.key]), S[key], (chosen) => {
    const other = { rows: "cols", cols: "rows" }[key];
    if (other && chosen === S[other]) S[other] = S[key];
    if (key === "value" && S.best === S.value && metrics[chosen].ranks) S.best = chosen;
    S[key] = chosen; S.open = other ? "" : S.open;
  });
  const only = apart().map((a) => choice(a.name, "only." + a.key,
    [...a.values.map((v, i) => [i, v]), [-1, "all, mixed"]], keptOf(a), (chosen) => { S.keep[a.key] = Number(chosen); S.open = ""; }));
  const colours = choice("colours", "colours", Object.entries(COLOURS), S.colours, (chosen) => { S.colours = chosen; });
  const buttons = make("div", undefined, "buttons");
  buttons.append(button("Reset", "", () => { startView(); redraw(); }), button("Save SVG", "", () => save("svg")), button("Save PNG", "", () => save("png")));
  el("controls").replaceChildren(...only, pick("rows", "rows", D.axes), pick("columns", "cols", D.axes), pick("value", "value", D.metrics), pick("best by", "best", D.metrics.filter((m) => m.ranks)), colours,
    buttons);
};

let here = "";  // the cell the keyboard is on
const redraw = () => {
  hideTip();
  compute();
  const focused = document.activeElement?.name;
  drawControls();
  drawFilters();
  if (focused) document.getElementsByName(focused)[0]?.focus();
  drawSummary();
  drawKeys();
  drawList();
  fillTable();
  drawParallel();
  toAddress();
  return drawChart(here);
};
const openCell = (r, c) => {
  if (!view.cells[r * view.width + c].total) return;
  S.open = S.open === cellKey(r, c) ? "" : cellKey(r, c);
  drawList();
  toAddress();
  drawChart(here);
  if (S.open) el("list").scrollIntoView({ block: "nearest" });
};

// Arrow keys walk over the cells, Enter lists one.
el("chart").addEventListener("keydown", (e) => {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
  const rows = shownKeys(view.R), cols = shownKeys(view.C);
  const [rk, ck] = here.split(SEP);
  let y = rows.findIndex((r) => view.R.values[r] === rk), x = cols.findIndex((c) => view.C.values[c] === ck);
  if (e.key === "Escape") { here = ""; hideTip(); drawChart(here); return; }
  if (view.many || !rows.length || !cols.length || (!step && e.key !== "Enter" && e.key !== " ")) return;
  e.preventDefault();
  if (!step) { if (x >= 0 && y >= 0) { hideTip(); openCell(rows[y], cols[x]); } return; }
  y = Math.min(Math.max(y + (x < 0 ? 1 : step[0]), 0), rows.length - 1);
  x = Math.min(Math.max(x < 0 ? 0 : x + step[1], 0), cols.length - 1);
  here = cellKey(rows[y], cols[x]);
  const box = el("chart").getBoundingClientRect();
  drawChart(here).then(() => showTip(rows[y], cols[x], box.left + 40, box.bottom));
});
el("chart").addEventListener("mouseleave", hideTip);
addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(); });
// Cells grow with the page.
let asked = 0;
addEventListener("resize", () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(() => { drawChart(here); drawParallel(); }); });
const fade = () => { const box = el("chart"); box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1); };
el("chart").addEventListener("scroll", () => { keepLabels(); fade(); }, { passive: true });
makeTable();
makeParallel();
fromAddress();
redraw();
