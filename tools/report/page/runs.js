// What the document in #data (schema.json has its form) says of runs.
const state = {
  doc: JSON.parse(document.getElementById("data").textContent),
  axis: "step",
  smooth: 0.6,
  log: false,
  plots: []
};

const names = () => {
  const runs = state.doc.runs, last = runs.map((r) => r.name.replace(/\/+$/, "").split("/").pop());
  return runs.map((r, i) => last.indexOf(last[i]) === last.lastIndexOf(last[i]) ? last[i] : r.name);
};
// Seconds of training over all starts: each start counts from 0 again.
function clock(columns) {
  let base = 0, before = 0;
  return (columns.seconds || []).map((s) => {
    if (s !== null && s < before) base += before;
    if (s !== null) before = s;
    return base + before;
  });
}

const values = (run, split, key) => ((run.series[split] || {}).columns || {})[key];
const last = (array) => {
  for (let i = (array || []).length; i-- > 0;)
    if (array[i] !== null) return array[i];
  return null;
};

// A run's column as points of the chosen axis, in rising order without equal places, as uPlot needs them.
function points(run, split, key) {
  const columns = (run.series[split] || {}).columns || {}, y = columns[key];
  if (!y) return null;
  const x = state.axis === "step" ? columns.step : clock(columns), xs = [], ys = [];
  x.forEach((at, i) => {
    if (at === null || at === undefined) return;
    if (xs.length && at <= xs[xs.length - 1]) {
      ys[ys.length - 1] = y[i];
      return;
    }
    xs.push(at);
    ys.push(y[i]);
  });
  return ys.some((value) => value !== null) ? {x: xs, y: ys} : null;
}

// An exponential mean that counts from the first value, as TensorBoard smooths.
function smoothed(y, weight) {
  let mean = 0, count = 0;
  return y.map((value) => {
    if (value === null) return null;
    mean = mean * weight + (1 - weight) * value;
    ++count;
    return mean / (1 - Math.pow(weight, count));
  });
}

const many = () => state.doc.runs.length > 1;
const label = (run, what) => many() ? names()[run] + (what ? ", " + what : "") : what || names()[run];
const kFields = new Set([
  "step", "epoch", "loss", "lr", "samples_per_second", "seconds", "samples", "after_step", "compute_seconds",
  "waiting_seconds", "network_seconds", "network_hidden_seconds", "network_exposed_seconds", "network_bytes",
  "network_gb_per_second", "node_bytes", "node_gb_per_second", "slowest_rank", "slowest_lead_seconds", "noise_scale",
  "skipped"
]);
function metricNames() {
  const found = new Set();
  for (const run of state.doc.runs)
    for (const split of Object.values(run.series))
      for (const key of Object.keys(split.columns))
        if (!kFields.has(key)) found.add(key);
  return [...found];
}

const evaluations =
    () => [...new Set(state.doc.runs.flatMap((run) => Object.keys(run.series).filter((s) => s.startsWith("eval"))))];
const said = (split) => split === "eval" ? "evaluation" : split.replace("eval:", "evaluation of ");
const trains = () => state.doc.runs.some((run) => run.series.train);
