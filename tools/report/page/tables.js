// The sections of tables; each function returns nodes, or null if the runs have nothing for it.
function overview() {
  const rows = state.doc.runs.map((run, i) => {
    const split = run.series.train ? "train" : "epoch";
    const seconds = clock((run.series[split] || {columns: {}}).columns),
          faults = run.events.filter((e) => e.kind === "fault").length;
    return [
      names()[i], run.run || "–", number(run.ranks.length || null), number(run.last_step),
      number(last(values(run, split, "loss"))), number(last(values(run, "eval", "loss"))),
      number(last(values(run, "epoch", "samples_per_second")) ?? last(values(run, "train", "samples_per_second")), 4),
      duration(last(seconds)), when(run.began), number(run.events.filter((e) => e.kind === "resume").length),
      number(faults)
    ];
  });
  const n = (name) => ({name, number: true});
  const notes = state.doc.runs.filter((r) => r.bad_lines > 0)
                    .map((r) => element("p", {class: "note"},
                             r.name + ": " + r.bad_lines + " lines of metrics.jsonl are no records and are left out."));
  return [
    table("Where each run stands",
        [
          {name: "run"}, {name: "id"}, n("ranks"), n("updates"), n("training loss"), n("evaluation loss"),
          n("samples/s"), n("trained for"), {name: "last start"}, n("resumes"), n("faults")
        ],
        rows),
    ...notes
  ];
}

function work() {
  const nodes = state.doc.runs.flatMap((run, i) => {
    const p = run.profile;
    if (!p || !p.steps) return [];
    return [table("Time by class of work on rank 0" + (many() ? ", " + names()[i] : "") + ", means of " +
            number(p.steps) + " steps",
        [{name: "class"}, {name: "ms per step", number: true}, {name: "share", number: true}, {name: "share as a bar"}],
        p.classes.map((c) => [c.name, number(1e3 * c.seconds / p.steps), percent(c.seconds, p.seconds),
                          bar(c.seconds / p.seconds, c.kind)]))];
  });
  return nodes.length ? nodes : null;
}

const kNeverSlowest = {
  times: 0,
  lead_seconds: 0
};
const slowestByRank = (run) => new Map((run.totals.slowest || []).map((s) => [s.rank, s]));

function hostTable(run, caption) {
  const slow = slowestByRank(run), updates = run.totals.updates || 0, hosts = new Map();
  for (const r of run.ranks) {
    const h = hosts.get(r.host) || {ranks: 0, memory: 0, times: 0, lead: 0, errors: 0},
          s = slow.get(r.rank) || kNeverSlowest;
    h.ranks += 1;
    h.memory += r.memory_mib || 0;
    h.times += s.times;
    h.lead += s.lead_seconds;
    h.errors += r.errors;
    hosts.set(r.host, h);
  }
  const rows = [...hosts].map(
      ([host, h]) => [host || "–", number(h.ranks), number(h.memory || null), number(h.times),
          percent(h.times, updates), bar(updates ? h.times / updates : 0), number(h.lead), number(h.errors)]);
  const n = (name) => ({name, number: true});
  const heads = [
    {name: "host"}, n("ranks"), n("memory MiB"), n("times slowest"), n("share"), {name: "share as a bar"},
    n("sum of leads s"), n("errors")
  ];
  return table(caption, heads, rows);
}

function rankTable(run, caption) {
  const slow = slowestByRank(run), updates = run.totals.updates || 0;
  const traces = new Map((run.trace || []).map((t) => [t.rank, t]));
  const tracks = [...new Set((run.trace || []).flatMap((t) => Object.keys(t.tracks)))];
  const numbers =
      ["memory MiB", "times slowest", "share", "mean lead ms", "warnings", "errors", ...tracks.map((t) => t + " s")];
  const rows = run.ranks.map((r) => {
    const s = slow.get(r.rank) || kNeverSlowest, t = traces.get(r.rank);
    return [
      String(r.rank), r.host || "–", number(r.memory_mib), number(s.times), percent(s.times, updates),
      s.times ? number(1e3 * s.lead_seconds / s.times) : "–", number(r.warnings), number(r.errors),
      ...tracks.map((name) => t && t.tracks[name] !== undefined ? number(t.tracks[name]) : "–")
    ];
  });
  return table(caption, [{name: "rank"}, {name: "host"}, ...numbers.map((name) => ({name, number: true}))], rows);
}

function ranks() {
  const nodes = state.doc.runs.flatMap((run, i) => {
    if (!run.ranks.length) return [];
    const of = many() ? " of " + names()[i] : "";
    return [hostTable(run, "Hosts" + of), rankTable(run, "Ranks" + of)];
  });
  if (!nodes.length) return null;
  return [
    element("p", {class: "note"},
        "The slowest rank of an update is the last to bring its gradients; its lead is by how much it was slower than the fastest. Memory is the most that was resident, known when a rank has ended."),
    ...nodes,
    ...(plotSection([figure("Lead of the slowest rank", "seconds",
            curves("train", "slowest_lead_seconds", "", {smooth: true}), {fromZero: true})]) ||
        [])
  ];
}

function events() {
  const nodes = state.doc.runs.flatMap((run, i) => {
    if (!run.events.length) return [];
    const rows = run.events.map((e) => [e.time, element("span", {class: e.kind}, e.kind), number(e.step),
                                    e.rank < 0 ? "supervisor" : "rank " + e.rank + (e.host ? " on " + e.host : ""),
                                    e.text + (e.count > 1 ? " (" + e.count + " times)" : "")]);
    return [
      table("Events" + (many() ? " of " + names()[i] : ""),
          [{name: "time"}, {name: "kind"}, {name: "update", number: true}, {name: "from"}, {name: "text"}], rows),
      run.events_left_out ?
          element("p", {class: "note"}, run.events_left_out + " events are left out here; lockstep logs has all.") :
          null
    ];
  });
  return nodes.length ? nodes : null;
}

function differences() {
  if (!many()) return null;
  const text = (v) => v === undefined ? "–" : typeof v === "string" ? v : JSON.stringify(v);
  const keys = [...new Set(state.doc.runs.flatMap((r) => Object.keys(r.options)))].sort();
  const rows = keys.map((key) => [key, ...state.doc.runs.map((r) => text(r.options[key]))])
                   .filter((row) => new Set(row.slice(1)).size > 1);
  const heads = [{name: "option"}, ...names().map((name) => ({name}))];
  const known = state.doc.runs.every((r) => Object.keys(r.options).length);
  const finals = [
    ["last training loss", (r) => last(values(r, r.series.train ? "train" : "epoch", "loss"))],
    ["last evaluation loss", (r) => last(values(r, "eval", "loss"))],
    [
      "lowest evaluation loss",
      (r) => {
        const v = (values(r, "eval", "loss") || []).filter((x) => x !== null);
        return v.length ? v.reduce((a, b) => Math.min(a, b)) : null;
      }
    ],
    ...metricNames().map((m) => ["last evaluation " + m, (r) => last(values(r, "eval", m))]),
    ["updates", (r) => r.last_step],
    [
      "mean computing ms per update",
      (r) => r.totals.updates ? 1e3 * (r.totals.compute_seconds || 0) / r.totals.updates : null
    ],
    [
      "mean waiting ms per update",
      (r) => r.totals.updates ? 1e3 * (r.totals.waiting_seconds || 0) / r.totals.updates : null
    ]
  ];
  const results = finals.map(([name, of]) => [name, ...state.doc.runs.map((r) => number(of(r), 6))])
                      .filter((row) => row.slice(1).some((v) => v !== "–"));
  return [
    table("Results", [{name: "result"}, ...names().map((name) => ({name, number: true}))], results),
    known ? null : element("p", {class: "note"}, "Not all of these runs have facts.json with their options."),
    rows.length ? table("Options that differ", heads, rows) :
                  element("p", {}, "No option differs, as far as it is known.")
  ];
}

function options() {
  const nodes = state.doc.runs.flatMap((run, i) => {
    const keys = Object.keys(run.options);
    if (!keys.length) return [];
    const details = element("details", {}, element("summary", {}, "All options" + (many() ? " of " + names()[i] : "")));
    details.append(table("Options" + (many() ? " of " + names()[i] : ""), [{name: "option"}, {name: "value"}],
        keys.sort().map(
            (k) => [k, typeof run.options[k] === "string" ? run.options[k] : JSON.stringify(run.options[k])])));
    return [details];
  });
  return nodes.length ? nodes : null;
}
