// Plots of curves with marks, a legend, values as a table, and keys that move through the points.
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (i) => css("--c" + (i % 8));

// Where the marks of a run lie on the axis. Events know their step; the time follows from the lines around it. A start
// by the supervisor has no mark: rank 0's resume follows. Faults are drawn last, over what happened at the same update.
function marks() {
  const all = [];
  state.doc.runs.forEach((run) => run.events.forEach((event) => {
    if (event.kind === "warning" || (event.kind === "start" && (event.step === 0 || event.rank < 0))) return;
    let x = event.step;
    if (state.axis === "time") {
      const columns = (run.series.train || run.series.epoch || {}).columns;
      if (!columns) return;
      const at = columns.step.findIndex((step) => step >= event.step), times = clock(columns);
      x = at < 0 ? times[times.length - 1] : times[at];
    }
    all.push({x, kind: event.kind});
  }));
  return all.sort((a, b) => (a.kind === "fault") - (b.kind === "fault"));
}

const markPlugin = () => ({
  hooks: {
    draw: (u) => {
      const {ctx, bbox} = u;
      ctx.save();
      ctx.lineWidth = 1.5;
      for (const mark of marks()) {
        const x = u.valToPos(mark.x, "x", true);
        if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
        ctx.strokeStyle = css(mark.kind === "fault" ? "--fault" : "--resume");
        ctx.setLineDash(mark.kind === "fault" ? [] : [4, 4]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.fillStyle = ctx.strokeStyle;  // a shape too, for those who cannot tell the colours apart
        ctx.beginPath();
        if (mark.kind === "fault") {
          ctx.moveTo(x - 5, bbox.top);
          ctx.lineTo(x + 5, bbox.top);
          ctx.lineTo(x, bbox.top + 9);
        } else
          ctx.arc(x, bbox.top + 4, 4, 0, 7);
        ctx.fill();
      }
      ctx.restore();
    }
  }
});

// A figure with a plot of `curves` ({label, x, y, colour, dashed, faint, dots}), a legend, and its values as a table.
// The arrow keys move through the points, and a line below says them.
function figure(title, unit, curves, options = {}) {
  const shown = curves.filter((c) => c !== null);
  if (!shown.length) return null;
  const tables = shown.map((c) => [c.x, c.y]);
  const data = uPlot.join(tables);
  const named = shown.filter((c) => !c.faint);
  const readout = element("p", {class: "readout", "aria-live": "polite"});
  const place = element("div", {
    class: "plot",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "plot",
    "aria-label": title + (unit ? " in " + unit : "") + ". " + summary(named) + " Arrow keys move through the points."
  });
  const node = element("figure", {}, element("figcaption", {}, title + (unit ? " (" + unit + ")" : "")), place, readout,
      named.length > 1 || options.legend ? legend(named) : null, valueTable(title, named));
  state.plots.push({place, data, shown, readout, options});
  return node;
}

const summary = (curves) =>
    curves.map((c) => c.label + ": from " + number(c.y.find((v) => v !== null)) + " to " + number(last(c.y)))
        .join("; ") +
    ".";
function legend(curves) {
  return element("ul", {class: "legend"}, ...curves.map((c) => {
    const key = element("span", {"aria-hidden": "true"});
    key.style.borderTopColor = c.colour();
    return element("li", {class: c.dashed ? "dashed" : ""}, key, c.label);
  }));
}

const ordinal = (n) => n + (n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] || "th");

function valueTable(title, curves) {
  const details = element("details", {}, element("summary", {}, "Values of " + title.toLowerCase()));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    for (const c of curves) {
      const step = Math.max(1, Math.ceil(c.x.length / 40)), rows = [];
      for (let i = 0; i < c.x.length; i += step) rows.push([number(c.x[i]), number(c.y[i])]);
      if ((c.x.length - 1) % step) rows.push([number(c.x[c.x.length - 1]), number(c.y[c.y.length - 1])]);
      const part = step > 1 ? " (every " + ordinal(step) + " point, and the last)" : "";
      details.append(table(title + ": " + c.label + part,
          [{name: state.axis === "step" ? "update" : "seconds", number: true}, {name: "value", number: true}], rows));
    }
  });
  return details;
}

function draw(plot) {
  const grid = {stroke: css("--grid"), width: 1}, axis = {stroke: css("--text"), grid, ticks: grid};
  const width = Math.max(240, plot.place.clientWidth), log = state.log && plot.options.canLog;
  const options = {
    width,
    height: 260,
    legend: {show: false},
    cursor: {drag: {x: true, y: false}},
    plugins: [markPlugin()],
    scales:
        {x: {time: false}, y: log ? {distr: 3} : {range: (u, low, high) => spread(low, high, plot.options.fromZero)}},
    axes: [
      {...axis, label: state.axis === "step" ? "update" : "seconds of training", labelSize: 22, size: 34},
      {...axis, size: 66, values: (u, ticks) => ticks.map((t) => t === null ? "" : number(t, 3))}
    ],
    series: [
      {}, ...plot.shown.map((c) => ({
        label: c.label,
        stroke: c.colour() + (c.faint ? "55" : ""),
        width: c.faint ? 1 : 2,
        dash: c.dashed ? [6, 4] : undefined,
        spanGaps: true,
        points: {show: c.dots || c.x.length < 3, size: 6, fill: c.colour()}
      }))
    ],
    hooks: {setCursor: [(u) => say(plot, u.cursor.idx)]},
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
  const value = (i) => plot.data[i + 1][index];
  const said = plot.shown.map((c, i) => c.faint || value(i) == null ? null : c.label + " " + number(value(i)));
  plot.readout.textContent = (state.axis === "step" ? "update " : "second ") + number(plot.data[0][index]) + ": " +
      (said.filter(Boolean).join(", ") || "no value");
}

function moveBy(plot, by) {
  const size = plot.data[0].length, now = plot.index === undefined ? (by > 0 ? -1 : size) : plot.index;
  plot.index = Math.max(0, Math.min(size - 1, now + by));
  plot.chart.setCursor({left: plot.chart.valToPos(plot.data[0][plot.index], "x"), top: 20}, false);
  say(plot, plot.index);
}
document.addEventListener("keydown", (event) => {
  const plot = state.plots.find((p) => p.place === document.activeElement);
  if (!plot || !plot.chart) return;
  const by = {ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity}[event.key];
  if (by === undefined) return;
  event.preventDefault();
  moveBy(plot, Number.isFinite(by) ? by : by < 0 ? -plot.data[0].length : plot.data[0].length);
});

// One curve for each run; with smoothing, the values are faint behind the curve.
function curves(split, key, what, look = {}) {
  return state.doc.runs.flatMap((run, i) => {
    const p = points(run, split, key);
    if (!p) return [];
    const base = {...p, label: label(i, what), colour: () => colour((look.shift || 0) + i), ...look};
    if (!look.smooth || state.smooth === 0 || p.x.length < 8) return [base];
    return [{...base, faint: true}, {...base, y: smoothed(p.y, state.smooth)}];
  });
}
