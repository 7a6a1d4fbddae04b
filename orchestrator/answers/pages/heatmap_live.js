// The page of `sweep serve`: asks for newer data, and draws it anew where something changed. What was chosen stays.
const EVERY_MS = 1000;
trialAddress = (id) => `trial/${encodeURIComponent(id)}`;
const live = make("p", "live", "meta");
live.id = "live";
const bar = make("progress"), now = make("p", "", "meta"), failed = make("ul", undefined, "meta");
bar.id = "bar";
now.id = "now";
failed.id = "failed";
el("summary").after(bar, live, now, failed);
if (/\/sweep\/[^/]+\/$/.test(location.pathname)) {  // one of several, behind an index
  const back = make("a", "all sweeps");
  back.id = "back";
  back.href = "../../";
  bar.before(back);
}
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
// A choice being made is not drawn over: a list that is open, words typed and not yet entered. A list that was chosen from
// keeps the focus and is closed; what closes it without a choice is seen by the next event elsewhere.
let choosing = false;
const inList = (e) => e.target.tagName === "SELECT";
addEventListener("pointerdown", (e) => { choosing = inList(e); }, true);
addEventListener("keydown", (e) => { choosing = inList(e) && (e.altKey || [" ", "F4"].includes(e.key)); }, true);
addEventListener("pointermove", (e) => { choosing &&= inList(e); }, true);
for (const end of ["change", "focusout"]) addEventListener(end, () => { choosing = false; }, true);
const busy = () => choosing || [...document.querySelectorAll("#filters input")].some((i) => i === document.activeElement && i.value !== i.defaultValue);
// The newest failures: what had not failed when the page looked last; at first the last of those that had.
const MOST_FAILURES = 5;
const seen = new Set();
const showFailures = () => {
  for (let i = 0; i < D.n; ++i) {
    if ((cellOutcome[i] !== 1 && cellOutcome[i] !== 3) || seen.has(D.ids[i])) continue;
    seen.add(D.ids[i]);
    const line = make("li", `${D.outcomes[D.outcome[i]]}: ${D.axes.map((a) => a.settings[a.of[i]]).filter((s) => s).join(" ")}${D.reason[i] ? `: ${D.reasons[D.reason[i]]}` : ""} `);
    line.append(trialName(i));
    failed.prepend(line);
  }
  while (failed.children.length > MOST_FAILURES) failed.lastChild.remove();
};
const askProgress = async () => {
  const answer = await fetch("progress.json", { cache: "no-store" });
  if (answer.status !== 200) throw new Error(await answer.text());
  const P = await answer.json(), open = P.pending + P.running;
  bar.max = P.total || 1;
  bar.value = P.total - open;
  live.textContent = `live: ${P.total - open} of ${P.total} have an answer${open ? (P.left ? `; about ${P.left} left` : "") : "; nothing is left to run"}`;
  const running = P.attempts_running.map((a) => a.trial);
  now.textContent = [P.run_by ? `run by ${P.run_by.host}` : open ? "no run is under way" : "", running.length ? `running now: ${running.slice(0, 4).join(", ")}${running.length > 4 ? ` and ${running.length - 4} more` : ""}` : ""].filter((s) => s).join("; ");
};
const ask = async () => {
  try {
    const answer = await fetch("data.json", { cache: "no-store", headers: known ? { "If-None-Match": known } : {} });
    if (answer.status === 200 && !busy()) {
      const text = await answer.text();
      known = answer.headers.get("ETag") ?? "";
      await renew(text);
    } else if (answer.status !== 304 && answer.status !== 200) throw new Error(await answer.text());
    showFailures();
    await askProgress();
  } catch (e) {
    live.textContent = `not live: sweep serve does not answer; the page shows its last data (${e.message.trim()})`;
  }
  setTimeout(ask, EVERY_MS);
};
ask();
