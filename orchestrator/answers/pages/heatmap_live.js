// The page of `sweep serve`: asks for newer data, and draws it anew where something changed. What was chosen stays.
const EVERY_MS = 1000;
const live = make("p", "live", "meta");
live.id = "live";
el("summary").after(live);
let known = "";
const renew = (text) => {
  const off = new Map(D.axes.map((a) => [a.key, new Set([...(S.off[a.key] ?? [])].map((i) => a.values[i]))]));
  const keep = apart().filter((a) => a.key in S.keep).map((a) => [a.key, S.keep[a.key] < 0 ? null : a.values[S.keep[a.key]]]);
  take(text);
  S.keep = Object.fromEntries(keep.filter(([key]) => axes[key]).map(([key, value]) => [key, value === null ? -1 : axes[key].values.indexOf(value)]));
  S.off = {};
  for (const a of D.axes) {
    const left = a.values.map((_, i) => i).filter((i) => off.get(a.key)?.has(a.values[i]));
    if (left.length) S.off[a.key] = new Set(left);
  }
  for (const [key, given, of] of [["rows", D.rows, axes], ["cols", D.cols, axes], ["value", D.value, metrics], ["best", D.objective, metrics]])
    if (!of[S[key]]) S[key] = given;
  return redraw();
};
const busy = () => ["INPUT", "SELECT"].includes(document.activeElement?.tagName);  // a choice being made is not drawn over
const ask = async () => {
  try {
    const answer = await fetch("data.json", { cache: "no-store", headers: known ? { "If-None-Match": known } : {} });
    if (answer.status === 200 && !busy()) {
      const text = await answer.text();
      known = answer.headers.get("ETag") ?? "";
      await renew(text);
    } else if (answer.status !== 304 && answer.status !== 200) throw new Error(await answer.text());
    const open = cellOutcome.reduce((n, f) => n + (f === 4), 0);
    live.textContent = `live: ${D.n - open} of ${D.n} have an answer${open ? "" : "; nothing is left to run"}`;
  } catch (e) {
    live.textContent = `not live: sweep serve does not answer; the page shows its last data (${e.message.trim()})`;
  }
  setTimeout(ask, EVERY_MS);
};
ask();
