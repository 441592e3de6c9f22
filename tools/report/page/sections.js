// The sections with plots; each function returns nodes, or null if the runs have nothing for it.
function controls() {
  const radio = (value, text) => {
    const input = element("input", {
      type: "radio",
      name: "axis",
      value,
      onchange: () => {
        state.axis = value;
        renderPlots();
      }
    });
    input.checked = state.axis === value;
    return element("label", {}, input, " " + text);
  };
  const shown = element("output", {}, String(state.smooth));
  const range = element("input", {
    type: "range",
    min: "0",
    max: "0.98",
    step: "0.02",
    value: String(state.smooth),
    "aria-label": "Smoothing of training curves",
    oninput: (e) => {
      state.smooth = Number(e.target.value);
      shown.textContent = e.target.value;
      renderPlots();
    }
  });
  const log = element("input", {
    type: "checkbox",
    onchange: (e) => {
      state.log = e.target.checked;
      renderPlots();
    }
  });
  log.checked = state.log;
  return element("form", {class: "controls", "aria-label": "How curves are shown", onsubmit: (e) => e.preventDefault()},
      element("fieldset", {}, element("legend", {}, "Axis"), radio("step", "updates"), radio("time", "time")),
      element("label", {}, "Smoothing ", range, " ", shown), element("label", {}, log, " logarithmic losses"));
}

function plotSection(figures, note) {
  const nodes = figures.filter((f) => f !== null);
  return nodes.length ?
      [note ? element("p", {class: "note"}, note) : null, element("div", {class: "plots"}, ...nodes)] :
      null;
}

function learning() {
  const train = trains() ? "train" : "epoch";
  const evals = (key) => evaluations().flatMap(
      (split, s) => curves(split, key, said(split), {dashed: true, dots: true, shift: many() ? 0 : 1 + s}));
  const figures =
      [figure("Loss", "", [...curves(train, "loss", "training", {smooth: true}), ...evals("loss")], {canLog: true})];
  for (const name of metricNames())
    figures.push(figure(name, "", [...curves(train, name, "training", {smooth: true}), ...evals(name)]));
  figures.push(figure("Learning rate", "", curves(train, "lr", "")),
      figure("Gradient noise scale", "samples", curves(train, "noise_scale", "", {smooth: true}), {canLog: true}));
  return plotSection(figures,
      "Vertical lines: a triangle is a fault, a circle a start, a resume or a stop. Drag to zoom, double-click to see all.");
}

function speed() {
  const train = trains() ? "train" : "epoch";
  const figures = [figure(
      "Throughput", "samples per second", curves(train, "samples_per_second", "", {smooth: true}), {fromZero: true})];
  figures.push(figure("Computing and waiting of rank 0", "seconds per update",
      [
        ...curves("train", "compute_seconds", "computing", {smooth: true}),
        ...curves("train", "waiting_seconds", "waiting", {smooth: true, dashed: true, shift: many() ? 0 : 1})
      ],
      {fromZero: true, legend: true}));
  return plotSection(figures);
}

function communication() {
  const exposed = (run) => {
    const all = values(run, "train", "network_seconds"), hidden = values(run, "train", "network_hidden_seconds");
    return all && hidden ? all.map((v, i) => v === null || hidden[i] === null ? null : Math.max(0, v - hidden[i])) :
                           null;
  };
  for (const run of state.doc.runs) {
    const column = exposed(run);
    if (column) run.series.train.columns.network_exposed_seconds = column;
  }
  const rows = state.doc.runs.flatMap((run, i) => {
    const t = run.totals, n = t.updates || 0;
    if (!n || !(t.network_seconds > 0)) return [];
    const open = Math.max(0, t.network_seconds - t.network_hidden_seconds);
    return [[
      names()[i], number(1e3 * t.network_seconds / n), number(1e3 * t.network_hidden_seconds / n),
      number(1e3 * open / n), percent(t.network_hidden_seconds, t.network_seconds),
      bar(t.network_hidden_seconds / t.network_seconds), bytes((t.network_bytes || 0) / n)
    ]];
  });
  if (!rows.length) return null;
  const n = (name) => ({name, number: true});
  return [
    table("Messages of gradients, means per logged update",
        [
          {name: "run"}, n("network ms"), n("hidden ms"), n("exposed ms"), n("hidden"), {name: "share that is hidden"},
          n("sent")
        ],
        rows),
    ...(plotSection([figure("Communication hidden behind computing, and exposed", "seconds per update",
            [
              ...curves("train", "network_hidden_seconds", "hidden", {smooth: true}),
              ...curves(
                  "train", "network_exposed_seconds", "exposed", {smooth: true, dashed: true, shift: many() ? 0 : 1})
            ],
            {fromZero: true, legend: true})]) ||
        [])
  ];
}
