// The data of the page, and which colours its values take. Texts, directions, order and intervals are in the data, as C++
// computed them. Part of one program with heatmap_view.js (what is chosen, and the cells), heatmap_chart.js and heatmap.js.
const SEP = "\n";  // between names in the address: no name holds a line end
const byKey = (list) => Object.fromEntries(list.map((x) => [x.key, x]));
let D, axes, metrics, cellOutcome, stopped;
const numbers = (list) => Float64Array.from(list.split(","), (s) => (s === "" ? NaN : Number(s)));
const take = (text) => {
  D = JSON.parse(text);
  axes = byKey(D.axes);
  metrics = byKey(D.metrics);
  for (const m of D.metrics) {
    m.of = numbers(m.of);
    m.text = m.text.split(",");
    m.rank = numbers(m.rank);
  }
  for (const a of D.axes) a.of = Uint32Array.from(a.of);
  cellOutcome = Uint8Array.from(D.cell_outcome, Number);
  stopped = new Set(D.stopped);
  for (const s of D.spreads) for (const end of ["low", "high"]) s[end] = numbers(s[end]);
};
take(document.getElementById("data").textContent);
const WORDS = Object.fromEntries(D.states);  // state without a value -> the word in its cell

const inkOn = (share) => (share < D.light_text_below ? "#ffffff" : "#10161c");
const quantile = (sorted, q) => {
  const at = (sorted.length - 1) * q, i = Math.floor(at);
  return sorted[i] + (at - i) * (sorted[Math.min(i + 1, sorted.length - 1)] - sorted[i]);
};
// Which colours values take, and where one of them stands among the colours: 0 dark, 1 bright, brighter is better. `auto`
// as C++ chooses: logarithmic over many magnitudes, else without outliers beyond a box plot's whiskers.
const COLOURS = { auto: "automatic", linear: "linear", log: "logarithmic", rank: "by rank" };
const coloursFor = (all, lower, kind) => {
  const sorted = Float64Array.from(all).sort(), n = sorted.length;
  const out = { low: sorted[0] ?? 0, high: sorted[n - 1] ?? 0, log: false, rank: kind === "rank" && n > 1, below: false, above: false, lower };
  out.log = out.low > 0 && (kind === "log" || (kind === "auto" && out.high / out.low >= D.log_ratio));
  if (kind === "auto" && !out.log && n >= 5) {
    const first = quantile(sorted, 0.25), third = quantile(sorted, 0.75), reach = 1.5 * (third - first);
    if (reach > 0) {
      out.low = sorted.find((v) => v >= first - reach);
      out.high = sorted.findLast((v) => v <= third + reach);
      out.below = out.low > sorted[0];
      out.above = out.high < sorted[n - 1];
    }
  }
  const { low, high, log, rank } = out;
  const place = (v) => {
    let from = 0, to = n;  // the first that is not below v
    while (from < to) { const mid = (from + to) >> 1; if (sorted[mid] < v) from = mid + 1; else to = mid; }
    return from / (n - 1);
  };
  out.share = (value) => {
    if (!(high > low)) return 1;
    const v = Math.min(Math.max(value, low), high);
    const s = rank ? place(v) : log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low);
    return lower ? 1 - s : s;
  };
  return out;
};
