// The data of the page, and numbers, labels and colours as C++ shows them. Part of one program with heatmap_view.js (what
// is chosen, and the cells), heatmap_chart.js and heatmap.js.
const SEP = "\n";  // between names in the address: no name holds a line end
const byKey = (list) => Object.fromEntries(list.map((x) => [x.key, x]));
let D, axes, metrics, cellOutcome, stopped;
const take = (text) => {
  D = JSON.parse(text);
  axes = byKey(D.axes);
  metrics = byKey(D.metrics);
  for (const m of D.metrics) m.of = Float64Array.from(m.of.split(","), (s) => (s === "" ? NaN : Number(s)));
  for (const a of D.axes) a.of = Uint32Array.from(a.of);
  cellOutcome = Uint8Array.from(D.cell_outcome, Number);
  stopped = new Set(D.stopped);
  for (const key of ["step_low", "step_high"]) D[key] = Float64Array.from(D[key].split(","), (s) => (s === "" ? NaN : Number(s)));
};
take(document.getElementById("data").textContent);
const OUTCOMES = ["ok", "OOM", "pruned", "failed", "not run yet"];
const STATES = ["", "oom", "pruned", "failed", "pending"];
const WORDS = Object.fromEntries(D.states);  // of a state without a value: the word in its cell

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
// "step time [ms]": the unit stands behind a name that does not spell it.
const withUnit = (x, unit) => (unit && unit !== "MT/h" && !x.name.includes(unit) ? `${x.name} [${unit}]` : x.name);
const largestOf = (m) => m.largest ??= m.of.reduce((a, v) => (Math.abs(v) > a ? Math.abs(v) : a), 0);

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
