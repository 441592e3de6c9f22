"use strict";
// Shows the document in #data (schema.json has its form), and, if it is live, asks the server for newer ones.
// Texts of runs only ever become text nodes, never markup.
(() => {
  const state = { doc: JSON.parse(document.getElementById("data").textContent), axis: "step", smooth: 0.6, log: false, plots: [] };
  const main = document.getElementById("main");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (i) => css("--c" + (i % 8));

  // ---- elements and numbers

  function element(name, properties, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  function number(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  }
  function duration(seconds) {
    if (!(seconds >= 0)) return "–";
    if (seconds < 60) return number(seconds, 3) + " s";
    const whole = Math.round(seconds), h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60, s = whole % 60;
    return (h ? h + " h " : "") + m + " min " + (h ? "" : s + " s");
  }
  const bytes = (n) => n >= 1e9 ? number(n / 1e9, 3) + " GB" : n >= 1e6 ? number(n / 1e6, 3) + " MB" : number(n / 1e3, 3) + " kB";
  const percent = (part, whole) => whole > 0 ? number(100 * part / whole, 3) + " %" : "–";
  const when = (seconds) => seconds ? new Date(1000 * seconds).toLocaleString() : "–";

  function table(caption, heads, rows) {
    const cell = (value, head, first) => {
      const text = value instanceof Node ? value : document.createTextNode(value === null || value === undefined ? "–" : String(value));
      const properties = { class: head.number ? "number" : "words" };
      return first ? element("th", { scope: "row", ...properties }, text) : element("td", properties, text);
    };
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: " + caption },
      element("table", {}, element("caption", {}, caption),
        element("thead", {}, element("tr", {}, ...heads.map((h) => element("th", { scope: "col", class: h.number ? "number" : "" }, h.name)))),
        element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((value, i) => cell(value, heads[i], i === 0)))))));
  }
  function bar(share) {
    const inner = element("div", {});
    inner.style.width = Math.max(0, Math.min(100, 100 * share)) + "%";
    return element("div", { class: "bar", "aria-hidden": "true" }, inner);
  }

  // ---- runs

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
  const last = (array) => { for (let i = (array || []).length; i-- > 0;) if (array[i] !== null) return array[i]; return null; };

  // A run's column as points of the chosen axis, in rising order without equal places, as uPlot needs them.
  function points(run, split, key) {
    const columns = (run.series[split] || {}).columns || {}, y = columns[key];
    if (!y) return null;
    const x = state.axis === "step" ? columns.step : clock(columns), xs = [], ys = [];
    x.forEach((at, i) => {
      if (at === null || at === undefined) return;
      if (xs.length && at <= xs[xs.length - 1]) { ys[ys.length - 1] = y[i]; return; }
      xs.push(at); ys.push(y[i]);
    });
    return ys.some((value) => value !== null) ? { x: xs, y: ys } : null;
  }
  // An exponential mean that counts from the first value, as TensorBoard smooths.
  function smoothed(y, weight) {
    let mean = 0, count = 0;
    return y.map((value) => {
      if (value === null) return null;
      mean = mean * weight + (1 - weight) * value; ++count;
      return mean / (1 - Math.pow(weight, count));
    });
  }

  // ---- plots

  // Where the marks of a run lie on the axis. Events know their step; the time follows from the lines around it.
  function marks() {
    const all = [];
    state.doc.runs.forEach((run) => run.events.forEach((event) => {
      if (event.kind === "warning" || (event.kind === "start" && event.step === 0)) return;
      let x = event.step;
      if (state.axis === "time") {
        const columns = (run.series.train || run.series.epoch || {}).columns;
        if (!columns) return;
        const at = columns.step.findIndex((step) => step >= event.step), times = clock(columns);
        x = at < 0 ? times[times.length - 1] : times[at];
      }
      all.push({ x, kind: event.kind });
    }));
    return all;
  }
  const markPlugin = () => ({ hooks: { draw: (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.lineWidth = 1.5;
    for (const mark of marks()) {
      const x = u.valToPos(mark.x, "x", true);
      if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
      ctx.strokeStyle = css(mark.kind === "fault" ? "--fault" : "--resume");
      ctx.setLineDash(mark.kind === "fault" ? [] : [4, 4]);
      ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      ctx.fillStyle = ctx.strokeStyle;  // a shape too, for those who cannot tell the colours apart
      ctx.beginPath();
      if (mark.kind === "fault") { ctx.moveTo(x - 5, bbox.top); ctx.lineTo(x + 5, bbox.top); ctx.lineTo(x, bbox.top + 9); }
      else ctx.arc(x, bbox.top + 4, 4, 0, 7);
      ctx.fill();
    }
    ctx.restore();
  } } });

  // A figure with a plot of `curves` ({label, x, y, colour, dashed, faint, dots}), a legend, and its values as a table. The
  // arrow keys move through the points, and a line below says them.
  function figure(title, unit, curves, options = {}) {
    const shown = curves.filter((c) => c !== null);
    if (!shown.length) return null;
    const tables = shown.map((c) => [c.x, c.y]);
    const data = uPlot.join(tables);
    const named = shown.filter((c) => !c.faint);
    const readout = element("p", { class: "readout", "aria-live": "polite" });
    const place = element("div", { class: "plot", tabindex: "0", role: "application", "aria-roledescription": "plot",
      "aria-label": title + (unit ? " in " + unit : "") + ". " + summary(named) + " Arrow keys move through the points." });
    const node = element("figure", {}, element("figcaption", {}, title + (unit ? " (" + unit + ")" : "")), place, readout,
      named.length > 1 || options.legend ? legend(named) : null, valueTable(title, named));
    state.plots.push({ place, data, shown, readout, options });
    return node;
  }
  const summary = (curves) => curves.map((c) => c.label + ": from " + number(c.y.find((v) => v !== null)) + " to " + number(last(c.y))).join("; ") + ".";
  function legend(curves) {
    return element("ul", { class: "legend" }, ...curves.map((c) => {
      const key = element("span", { "aria-hidden": "true" });
      key.style.borderTopColor = c.colour();
      return element("li", { class: c.dashed ? "dashed" : "" }, key, c.label);
    }));
  }
  function valueTable(title, curves) {
    const details = element("details", {}, element("summary", {}, "Values of " + title.toLowerCase()));
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      for (const c of curves) {
        const step = Math.max(1, Math.ceil(c.x.length / 40)), rows = [];
        for (let i = 0; i < c.x.length; i += step) rows.push([number(c.x[i]), number(c.y[i])]);
        if ((c.x.length - 1) % step) rows.push([number(c.x[c.x.length - 1]), number(c.y[c.y.length - 1])]);
        details.append(table(title + ": " + c.label, [{ name: state.axis === "step" ? "update" : "seconds", number: true }, { name: "value", number: true }], rows));
      }
    });
    return details;
  }
  function draw(plot) {
    const grid = { stroke: css("--grid"), width: 1 }, axis = { stroke: css("--text"), grid, ticks: grid };
    const width = Math.max(240, plot.place.clientWidth), log = state.log && plot.options.canLog;
    const options = {
      width, height: 260, legend: { show: false }, cursor: { drag: { x: true, y: false } }, plugins: [markPlugin()],
      scales: { x: { time: false }, y: log ? { distr: 3 } : { range: (u, low, high) => spread(low, high, plot.options.fromZero) } },
      axes: [{ ...axis, label: state.axis === "step" ? "update" : "seconds of training", labelSize: 22, size: 34 },
        { ...axis, size: 66, values: (u, ticks) => ticks.map((t) => t === null ? "" : number(t, 3)) }],
      series: [{}, ...plot.shown.map((c) => ({ label: c.label, stroke: c.colour() + (c.faint ? "55" : ""), width: c.faint ? 1 : 2,
        dash: c.dashed ? [6, 4] : undefined, spanGaps: true, points: { show: c.dots || c.x.length < 3, size: 6, fill: c.colour() } }))],
      hooks: { setCursor: [(u) => say(plot, u.cursor.idx)] },
    };
    const data = log ? plot.data.map((column, i) => i === 0 ? column : column.map((v) => v > 0 ? v : null)) : plot.data;
    if (plot.chart) plot.chart.destroy();
    plot.chart = new uPlot(options, data, plot.place);
    plot.chart.ctx.canvas.setAttribute("aria-hidden", "true");
  }
  function spread(low, high, fromZero) {
    if (low === null || high === null) return [0, 1];
    if (fromZero) low = Math.min(0, low);
    const room = 0.05 * (high - low) || Math.abs(high) * 0.1 || 1;
    return [fromZero && low === 0 ? 0 : low - room, high + room];
  }
  function say(plot, index) {
    if (index === null || index === undefined) return;
    const parts = plot.shown.map((c, i) => c.faint || plot.data[i + 1][index] == null ? null : c.label + " " + number(plot.data[i + 1][index])).filter(Boolean);
    plot.readout.textContent = (state.axis === "step" ? "update " : "second ") + number(plot.data[0][index]) + ": " + (parts.join(", ") || "no value");
  }
  function moveBy(plot, by) {
    const size = plot.data[0].length, now = plot.index === undefined ? (by > 0 ? -1 : size) : plot.index;
    plot.index = Math.max(0, Math.min(size - 1, now + by));
    plot.chart.setCursor({ left: plot.chart.valToPos(plot.data[0][plot.index], "x"), top: 20 }, false);
    say(plot, plot.index);
  }
  document.addEventListener("keydown", (event) => {
    const plot = state.plots.find((p) => p.place === document.activeElement);
    if (!plot || !plot.chart) return;
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    moveBy(plot, Number.isFinite(by) ? by : by < 0 ? -plot.data[0].length : plot.data[0].length);
  });

  const many = () => state.doc.runs.length > 1;
  const label = (run, what) => many() ? names()[run] + (what ? ", " + what : "") : what || names()[run];
  // One curve for each run; with smoothing, the values are faint behind the curve.
  function curves(split, key, what, look = {}) {
    return state.doc.runs.flatMap((run, i) => {
      const p = points(run, split, key);
      if (!p) return [];
      const base = { ...p, label: label(i, what), colour: () => colour((look.shift || 0) + i), ...look };
      if (!look.smooth || state.smooth === 0 || p.x.length < 8) return [base];
      return [{ ...base, faint: true }, { ...base, y: smoothed(p.y, state.smooth) }];
    });
  }
  const kFields = new Set(["step", "epoch", "loss", "lr", "samples_per_second", "seconds", "samples", "after_step", "compute_seconds", "waiting_seconds",
    "network_seconds", "network_hidden_seconds", "network_bytes", "network_gb_per_second", "node_bytes", "node_gb_per_second", "slowest_rank",
    "slowest_lead_seconds", "noise_scale", "skipped"]);
  function metricNames() {
    const found = new Set();
    for (const run of state.doc.runs)
      for (const split of Object.values(run.series)) for (const key of Object.keys(split.columns)) if (!kFields.has(key)) found.add(key);
    return [...found];
  }
  const evaluations = () => [...new Set(state.doc.runs.flatMap((run) => Object.keys(run.series).filter((s) => s.startsWith("eval"))))];
  const said = (split) => split === "eval" ? "evaluation" : split.replace("eval:", "evaluation of ");
  const trains = () => state.doc.runs.some((run) => run.series.train);

  // ---- sections; each returns nodes, or null if the runs have nothing for it

  function overview() {
    const rows = state.doc.runs.map((run, i) => {
      const split = run.series.train ? "train" : "epoch";
      const seconds = clock((run.series[split] || { columns: {} }).columns), faults = run.events.filter((e) => e.kind === "fault").length;
      return [names()[i], run.run || "–", number(run.ranks.length || null), number(run.last_step), number(last(values(run, split, "loss"))),
        number(last(values(run, "eval", "loss"))), number(last(values(run, "epoch", "samples_per_second")) ?? last(values(run, "train", "samples_per_second")), 4),
        duration(last(seconds)), when(run.began), number(run.events.filter((e) => e.kind === "resume").length), number(faults)];
    });
    const n = (name) => ({ name, number: true });
    const notes = state.doc.runs.filter((r) => r.bad_lines > 0).map((r) => element("p", { class: "note" }, r.name + ": " + r.bad_lines + " lines of metrics.jsonl are no records and are left out."));
    return [table("Runs", [{ name: "run" }, { name: "id" }, n("ranks"), n("updates"), n("training loss"), n("evaluation loss"), n("samples/s"), n("trained for"),
      { name: "last start" }, n("resumes"), n("faults")], rows), ...notes];
  }
  function controls() {
    const radio = (value, text) => {
      const input = element("input", { type: "radio", name: "axis", value, onchange: () => { state.axis = value; renderPlots(); } });
      input.checked = state.axis === value;
      return element("label", {}, input, " " + text);
    };
    const shown = element("output", {}, String(state.smooth));
    const range = element("input", { type: "range", min: "0", max: "0.98", step: "0.02", value: String(state.smooth), "aria-label": "Smoothing of training curves",
      oninput: (e) => { state.smooth = Number(e.target.value); shown.textContent = e.target.value; renderPlots(); } });
    const log = element("input", { type: "checkbox", onchange: (e) => { state.log = e.target.checked; renderPlots(); } });
    log.checked = state.log;
    return element("form", { class: "controls", "aria-label": "How curves are shown", onsubmit: (e) => e.preventDefault() },
      element("fieldset", {}, element("legend", {}, "Axis"), radio("step", "updates"), radio("time", "time")),
      element("label", {}, "Smoothing ", range, " ", shown), element("label", {}, log, " logarithmic losses"));
  }
  function plotSection(figures, note) {
    const nodes = figures.filter((f) => f !== null);
    return nodes.length ? [note ? element("p", { class: "note" }, note) : null, element("div", { class: "plots" }, ...nodes)] : null;
  }
  function learning() {
    const train = trains() ? "train" : "epoch";
    const evals = (key) => evaluations().flatMap((split, s) => curves(split, key, said(split), { dashed: true, dots: true, shift: many() ? 0 : 1 + s }));
    const figures = [figure("Loss", "", [...curves(train, "loss", "training", { smooth: true }), ...evals("loss")], { canLog: true })];
    for (const name of metricNames()) figures.push(figure(name, "", [...curves(train, name, "training", { smooth: true }), ...evals(name)]));
    figures.push(figure("Learning rate", "", curves(train, "lr", "")), figure("Gradient noise scale", "samples", curves(train, "noise_scale", "", { smooth: true }), { canLog: true }));
    return plotSection(figures, "Vertical lines: a triangle is a fault, a circle a start, a resume or a stop. Drag to zoom, double-click to see all.");
  }
  function speed() {
    const train = trains() ? "train" : "epoch";
    const figures = [figure("Throughput", "samples per second", curves(train, "samples_per_second", "", { smooth: true }), { fromZero: true })];
    figures.push(figure("Computing and waiting of rank 0", "seconds per update", [...curves("train", "compute_seconds", "computing", { smooth: true }),
      ...curves("train", "waiting_seconds", "waiting", { smooth: true, dashed: true, shift: many() ? 0 : 1 })], { fromZero: true, legend: true }));
    return plotSection(figures);
  }
  function communication() {
    const exposed = (run) => {
      const all = values(run, "train", "network_seconds"), hidden = values(run, "train", "network_hidden_seconds");
      return all && hidden ? all.map((v, i) => v === null || hidden[i] === null ? null : Math.max(0, v - hidden[i])) : null;
    };
    for (const run of state.doc.runs) {
      const column = exposed(run);
      if (column) run.series.train.columns.network_exposed_seconds = column;
    }
    kFields.add("network_exposed_seconds");
    const rows = state.doc.runs.map((run, i) => {
      const t = run.totals, open = Math.max(0, (t.network_seconds || 0) - (t.network_hidden_seconds || 0)), n = t.updates || 0;
      return n && t.network_seconds > 0 ? [names()[i], number(1e3 * t.network_seconds / n), number(1e3 * t.network_hidden_seconds / n), number(1e3 * open / n),
        percent(t.network_hidden_seconds, t.network_seconds), bar(t.network_hidden_seconds / t.network_seconds), bytes((t.network_bytes || 0) / n)] : null;
    }).filter(Boolean);
    if (!rows.length) return null;
    const n = (name) => ({ name, number: true });
    return [table("Messages of gradients, means per logged update", [{ name: "run" }, n("network ms"), n("hidden ms"), n("exposed ms"), n("hidden"), { name: "share that is hidden" }, n("sent")], rows),
      ...plotSection([figure("Communication hidden behind computing, and exposed", "seconds per update", [...curves("train", "network_hidden_seconds", "hidden", { smooth: true }),
        ...curves("train", "network_exposed_seconds", "exposed", { smooth: true, dashed: true, shift: many() ? 0 : 1 })], { fromZero: true, legend: true })])];
  }
  function work() {
    const nodes = state.doc.runs.flatMap((run, i) => {
      const p = run.profile;
      if (!p || !p.steps) return [];
      return [table("Time by class of work on rank 0" + (many() ? ", " + names()[i] : "") + ", means of " + number(p.steps) + " steps",
        [{ name: "class" }, { name: "ms per step", number: true }, { name: "share", number: true }, { name: "share as a bar" }],
        p.classes.map((c) => [c.name, number(1e3 * c.seconds / p.steps), percent(c.seconds, p.seconds), bar(c.seconds / p.seconds)]))];
    });
    return nodes.length ? nodes : null;
  }
  function ranks() {
    const nodes = state.doc.runs.flatMap((run, i) => {
      if (!run.ranks.length) return [];
      const slow = new Map((run.totals.slowest || []).map((s) => [s.rank, s])), traces = new Map((run.trace || []).map((t) => [t.rank, t]));
      const tracks = [...new Set((run.trace || []).flatMap((t) => Object.keys(t.tracks)))];
      const heads = [{ name: "rank" }, { name: "host" }, ...["memory MiB", "times slowest", "share", "mean lead ms", "warnings", "errors", ...tracks.map((t) => t + " s")].map((name) => ({ name, number: true }))];
      const updates = run.totals.updates || 0;
      const line = (r) => {
        const s = slow.get(r.rank) || { times: 0, lead_seconds: 0 }, t = traces.get(r.rank);
        return [String(r.rank), r.host || "–", number(r.memory_mib), number(s.times), percent(s.times, updates), s.times ? number(1e3 * s.lead_seconds / s.times) : "–",
          number(r.warnings), number(r.errors), ...tracks.map((name) => t && t.tracks[name] !== undefined ? number(t.tracks[name]) : "–")];
      };
      const hosts = new Map();
      for (const r of run.ranks) {
        const h = hosts.get(r.host) || { ranks: 0, memory: 0, times: 0, lead: 0, errors: 0 }, s = slow.get(r.rank) || { times: 0, lead_seconds: 0 };
        h.ranks += 1; h.memory += r.memory_mib || 0; h.times += s.times; h.lead += s.lead_seconds; h.errors += r.errors;
        hosts.set(r.host, h);
      }
      const of = many() ? " of " + names()[i] : "";
      const hostRows = [...hosts].map(([host, h]) => [host || "–", number(h.ranks), number(h.memory || null), number(h.times), percent(h.times, updates), bar(updates ? h.times / updates : 0), number(h.lead), number(h.errors)]);
      return [table("Hosts" + of, [{ name: "host" }, { name: "ranks", number: true }, { name: "memory MiB", number: true }, { name: "times slowest", number: true }, { name: "share", number: true },
        { name: "share as a bar" }, { name: "sum of leads s", number: true }, { name: "errors", number: true }], hostRows), table("Ranks" + of, heads, run.ranks.map(line))];
    });
    if (!nodes.length) return null;
    return [element("p", { class: "note" }, "The slowest rank of an update is the last to bring its gradients; its lead is by how much it was slower than the fastest. Memory is the most that was resident, known when a rank has ended."),
      ...nodes, ...(plotSection([figure("Lead of the slowest rank", "seconds", curves("train", "slowest_lead_seconds", "", { smooth: true }), { fromZero: true })]) || [])];
  }
  function events() {
    const nodes = state.doc.runs.flatMap((run, i) => {
      if (!run.events.length) return [];
      const rows = run.events.map((e) => [e.time, element("span", { class: e.kind }, e.kind), number(e.step), e.rank < 0 ? "supervisor" : "rank " + e.rank + (e.host ? " on " + e.host : ""),
        e.text + (e.count > 1 ? " (" + e.count + " times)" : "")]);
      return [table("Events" + (many() ? " of " + names()[i] : ""), [{ name: "time" }, { name: "kind" }, { name: "update", number: true }, { name: "from" }, { name: "text" }], rows),
        run.events_left_out ? element("p", { class: "note" }, run.events_left_out + " events are left out here; lockstep logs has all.") : null];
    });
    return nodes.length ? nodes : null;
  }
  function differences() {
    if (!many()) return null;
    const text = (v) => v === undefined ? "–" : typeof v === "string" ? v : JSON.stringify(v);
    const keys = [...new Set(state.doc.runs.flatMap((r) => Object.keys(r.options)))].sort();
    const rows = keys.map((key) => [key, ...state.doc.runs.map((r) => text(r.options[key]))]).filter((row) => new Set(row.slice(1)).size > 1);
    const heads = [{ name: "option" }, ...names().map((name) => ({ name }))];
    const known = state.doc.runs.every((r) => Object.keys(r.options).length);
    const finals = [["last training loss", (r) => last(values(r, r.series.train ? "train" : "epoch", "loss"))], ["last evaluation loss", (r) => last(values(r, "eval", "loss"))],
      ["lowest evaluation loss", (r) => { const v = (values(r, "eval", "loss") || []).filter((x) => x !== null); return v.length ? v.reduce((a, b) => Math.min(a, b)) : null; }],
      ...metricNames().map((m) => ["last evaluation " + m, (r) => last(values(r, "eval", m))]),
      ["updates", (r) => r.last_step], ["mean computing ms per update", (r) => r.totals.updates ? 1e3 * (r.totals.compute_seconds || 0) / r.totals.updates : null],
      ["mean waiting ms per update", (r) => r.totals.updates ? 1e3 * (r.totals.waiting_seconds || 0) / r.totals.updates : null]];
    const results = finals.map(([name, of]) => [name, ...state.doc.runs.map((r) => number(of(r), 6))]).filter((row) => row.slice(1).some((v) => v !== "–"));
    return [table("Results", [{ name: "result" }, ...names().map((name) => ({ name, number: true }))], results),
      known ? null : element("p", { class: "note" }, "Not all of these runs have facts.json with their options."),
      rows.length ? table("Options that differ", heads, rows) : element("p", {}, "No option differs, as far as it is known.")];
  }
  function options() {
    const nodes = state.doc.runs.flatMap((run, i) => {
      const keys = Object.keys(run.options);
      if (!keys.length) return [];
      const details = element("details", {}, element("summary", {}, "All options" + (many() ? " of " + names()[i] : "")));
      details.append(table("Options" + (many() ? " of " + names()[i] : ""), [{ name: "option" }, { name: "value" }], keys.sort().map((k) => [k, typeof run.options[k] === "string" ? run.options[k] : JSON.stringify(run.options[k])])));
      return [details];
    });
    return nodes.length ? nodes : null;
  }

  // ---- the page

  const kSections = [["runs", "Runs", overview], ["differences", "Differences", differences], ["learning", "Learning", learning, true], ["speed", "Speed", speed, true],
    ["work", "Time by class of work", work], ["communication", "Communication", communication, true], ["ranks", "Ranks and hosts", ranks, true], ["events", "Events", events], ["options", "Options", options]];

  function fill(section, make) {
    const nodes = (make() || []).filter(Boolean);
    section.querySelector(".content").replaceChildren(...nodes);
    section.hidden = nodes.length === 0;
  }
  function drawAll() { for (const plot of state.plots) draw(plot); }
  function renderPlots() {
    dropPlots();
    for (const [id, , make, plots] of kSections) if (plots) fill(document.getElementById(id), make);
    drawAll();
  }
  function dropPlots() {
    for (const plot of state.plots) if (plot.chart) plot.chart.destroy();
    state.plots = [];
  }
  function build() {
    main.replaceChildren(controls(), ...kSections.map(([id, title]) => {
      const section = element("section", { id, "aria-labelledby": id + "-title" }, element("h2", { id: id + "-title" }, title), element("div", { class: "content" }));
      return section;
    }));
  }
  // Keeps what the reader has open and focused: a live page is filled anew every few seconds.
  function render() {
    const open = [...document.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
    const focus = state.plots.findIndex((p) => p.place === document.activeElement), index = focus >= 0 ? state.plots[focus].index : undefined;
    dropPlots();
    for (const [id, , make] of kSections) fill(document.getElementById(id), make);
    const shown = kSections.filter(([id]) => !document.getElementById(id).hidden);
    document.getElementById("sections").replaceChildren(...shown.map(([id, title]) => element("li", {}, element("a", { href: "#" + id }, title))));
    document.getElementById("subtitle").textContent = (state.doc.live ? "Live page" : "Written " + when(state.doc.generated)) + " by Lockstep " + state.doc.lockstep;
    document.title = (state.doc.live ? "Watching " : "Report on ") + names().join(", ");
    document.getElementById("title").textContent = document.title;
    drawAll();
    for (const summary of document.querySelectorAll("details > summary")) if (open.includes(summary.textContent)) summary.parentElement.open = true;
    if (focus >= 0 && state.plots[focus]) { state.plots[focus].place.focus({ preventScroll: true }); state.plots[focus].index = index; }
  }

  async function ask() {
    const live = document.getElementById("live");
    try {
      const answer = await fetch("data.json", { headers: state.etag ? { "If-None-Match": state.etag } : {}, cache: "no-store" });
      if (answer.status === 200) {
        state.etag = answer.headers.get("ETag");
        state.doc = await answer.json();
        render();
      } else if (answer.status !== 304) throw new Error((await answer.text()).trim());
      if (live.textContent !== "") live.textContent = "";
    } catch (error) {
      const text = "No new numbers: " + (error instanceof TypeError ? "lockstep watch does not answer; it may have ended." : error.message);
      if (live.textContent !== text) live.textContent = text;
    }
    setTimeout(ask, 2000);
  }

  build();
  render();
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; drawAll(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", renderPlots);
  window.addEventListener("beforeprint", drawAll);
  window.addEventListener("afterprint", drawAll);
  if (state.doc.live) ask();
})();
