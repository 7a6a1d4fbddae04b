// All configurations that pass the filters, as a table to sort, search and save. It is made when it is opened, and shows a part of
// many rows: a hundred thousand would keep a browser busy.
const FIRST_ROWS = 200, MORE_ROWS = 1000;
const T = { by: "", down: false, find: "", shown: FIRST_ROWS };
const tableColumns = (rows) => {
  const differ = D.axes.filter((a) => rows.some((i) => a.of[i] !== a.of[rows[0]]));
  const measured = D.metrics.filter((m) => rows.some((i) => !Number.isNaN(m.of[i])));
  const out = [...differ.map((a) => ({ key: a.key, name: a.title ?? a.name, right: a.number, text: (i) => a.values[a.of[i]], stored: (i) => a.values[a.of[i]], order: (i) => a.of[i] })),
    { key: "outcome", name: "outcome", text: (i) => D.outcomes[D.outcome[i]], order: (i) => D.outcome[i] },
    ...measured.map((m) => ({ key: m.key, name: m.title, right: true, text: (i) => m.text[i] || "-", stored: (i) => (Number.isNaN(m.of[i]) ? "" : String(m.of[i])), order: (i) => m.of[i] })),
    { key: "trial", name: "trial", cls: "mono", text: (i) => D.ids[i], node: trialName, order: (i) => i }];
  if (rows.some((i) => D.reason[i])) out.push({ key: "reason", name: "reason", cls: "reason", text: (i) => D.reasons[D.reason[i]], order: (i) => D.reason[i] });
  return out;
};
const passingRows = () => { const out = []; for (let i = 0; i < D.n; ++i) if (view.pass[i]) out.push(i); return out; };
// Best first until a column is chosen; what has no value stands last either way.
const sorted = (rows, columns) => {
  const column = columns.find((c) => c.key === T.by), order = column ? column.order : (i) => (cellOutcome[i] === 0 ? view.G.rank[i] : NaN);
  const sign = column && T.down ? -1 : 1;
  return rows.sort((i, j) => {
    const x = order(i), y = order(j);
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || i - j;
    return sign * (x - y) || i - j;
  });
};
const tableRows = () => {
  const all = passingRows(), columns = tableColumns(all), words = T.find.toLowerCase().split(/\s+/).filter((s) => s);
  const found = words.length ? all.filter((i) => { const line = columns.map((c) => c.text(i)).join(" ").toLowerCase(); return words.every((w) => line.includes(w)); }) : all;
  return { columns, rows: sorted(found, columns), all: all.length };
};
// A text that a spreadsheet would take for a formula gets an apostrophe in front.
const csvCell = (text) => {
  const safe = /^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
  return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
};
const saveTable = () => {
  const { columns, rows } = tableRows();
  const lines = [columns.map((c) => c.key), ...rows.map((i) => columns.map((c) => (c.stored ?? c.text)(i)))];
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([lines.map((line) => line.map(csvCell).join(",") + "\n").join("")], { type: "text/csv" }));
  link.download = "configurations.csv";
  link.click();
};
const headCell = (c) => {
  const cell = make("th", undefined, c.right ? "" : "t"), mark = T.by === c.key ? (T.down ? " ▼" : " ▲") : "";
  cell.setAttribute("aria-sort", T.by !== c.key ? "none" : T.down ? "descending" : "ascending");
  const press = button(c.name + mark, "sort", () => {
    if (T.by !== c.key) Object.assign(T, { by: c.key, down: !!c.right && c.key in metrics && !metrics[c.key].lower });
    else T.down = !T.down;
    fillTable();
    document.getElementsByName("sort~" + c.key)[0]?.focus();
  });
  press.name = "sort~" + c.key;
  press.title = c.key;
  cell.append(press);
  return cell;
};
const fillTable = () => {
  if (!el("all").open) return;
  const { columns, rows, all } = tableRows(), table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  for (const c of columns) head.append(headCell(c));
  for (const i of rows.slice(0, T.shown)) {
    const tr = body.insertRow();
    for (const c of columns) {
      const cell = make("td", c.node ? undefined : c.text(i), c.right ? "" : "t " + (c.cls ?? ""));
      if (c.node) cell.append(c.node(i));
      tr.append(cell);
    }
  }
  el("allRows").replaceChildren(table);
  const rest = rows.length - Math.min(rows.length, T.shown);
  el("allSaid").textContent = `${rows.length} of ${all} configurations${rest ? `, ${T.shown} of them shown` : ""}; the filters above hold here too.`;
  el("allMore").hidden = !rest;
};
const makeTable = () => {
  const box = el("all"), find = make("input"), bar = make("div", undefined, "bar");
  find.type = "search";
  find.name = "find";
  find.placeholder = "words of a row";
  find.addEventListener("input", () => { T.find = find.value; T.shown = FIRST_ROWS; fillTable(); });
  const more = button("Show more", "", () => { T.shown += MORE_ROWS; fillTable(); });
  more.id = "allMore";
  const said = make("span", "", "meta"), wide = make("div", undefined, "wide listing");
  said.id = "allSaid";
  wide.id = "allRows";
  bar.append(find, button("Save CSV", "", saveTable), said);
  box.append(make("summary", "All configurations as a table"), bar, wide, more);
  box.addEventListener("toggle", fillTable);
};
