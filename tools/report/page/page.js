// Fills the page with the document, and, if it is live, asks the server for newer ones.
const main = document.getElementById("main");

const kSections = [
  ["runs", "Runs", overview], ["differences", "Differences", differences], ["learning", "Learning", learning, true],
  ["speed", "Speed", speed, true], ["work", "Time by class of work", work],
  ["communication", "Communication", communication, true], ["ranks", "Ranks and hosts", ranks, true],
  ["events", "Events", events], ["options", "Options", options]
];

function fill(section, make) {
  const nodes = (make() || []).filter(Boolean);
  section.querySelector(".content").replaceChildren(...nodes);
  section.hidden = nodes.length === 0;
}

function drawAll() {
  for (const plot of state.plots) draw(plot);
}

function renderPlots() {
  dropPlots();
  for (const [id, , make, plots] of kSections)
    if (plots) fill(document.getElementById(id), make);
  drawAll();
}

function dropPlots() {
  for (const plot of state.plots)
    if (plot.chart) plot.chart.destroy();
  state.plots = [];
}

function build() {
  const sections = kSections.map(([id, title]) => element("section", {id, "aria-labelledby": id + "-title"},
                                     element("h2", {id: id + "-title"}, title), element("div", {class: "content"})));
  main.replaceChildren(controls(), ...sections);
}

// Keeps what the reader has open and focused: a live page is filled anew every few seconds.
function render() {
  const open = [...document.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
  const focus = state.plots.findIndex((p) => p.place === document.activeElement),
        index = focus >= 0 ? state.plots[focus].index : undefined;
  dropPlots();
  for (const [id, , make] of kSections) fill(document.getElementById(id), make);
  const shown = kSections.filter(([id]) => !document.getElementById(id).hidden);
  const links = shown.map(([id, title]) => element("li", {}, element("a", {href: "#" + id}, title)));
  document.getElementById("sections").replaceChildren(...links);
  document.getElementById("subtitle").textContent =
      (state.doc.live ? "Live page" : "Written " + when(state.doc.generated)) + " by Lockstep " + state.doc.lockstep;
  document.title = (state.doc.live ? "Watching " : "Report on ") + names().join(", ");
  document.getElementById("title").textContent = document.title;
  drawAll();
  for (const summary of document.querySelectorAll("details > summary"))
    if (open.includes(summary.textContent)) summary.parentElement.open = true;
  if (focus >= 0 && state.plots[focus]) {
    state.plots[focus].place.focus({preventScroll: true});
    state.plots[focus].index = index;
  }
}

async function ask() {
  const live = document.getElementById("live");
  try {
    const answer =
        await fetch("data.json", {headers: state.etag ? {"If-None-Match": state.etag} : {}, cache: "no-store"});
    if (answer.status === 200) {
      state.etag = answer.headers.get("ETag");
      state.doc = await answer.json();
      render();
    } else if (answer.status !== 304)
      throw new Error((await answer.text()).trim());
    if (live.textContent !== "") live.textContent = "";
  } catch (error) {
    const text = "No new numbers: " +
        (error instanceof TypeError ? "lockstep watch does not answer; it may have ended." : error.message);
    if (live.textContent !== text) live.textContent = text;
  }
  setTimeout(ask, 2000);
}

build();
render();
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== width) {
    width = window.innerWidth;
    drawAll();
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", renderPlots);
window.addEventListener("beforeprint", drawAll);
window.addEventListener("afterprint", drawAll);
if (state.doc.live) ask();
