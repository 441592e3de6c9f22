// Elements of the page, tables, and numbers as texts. Texts of runs only ever become text nodes, never markup.
function element(name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "class")
      node.className = value;
    else if (key.startsWith("on"))
      node.addEventListener(key.slice(2), value);
    else
      node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(digits - 1) :
                                                      String(Number(value.toPrecision(digits)));
}

function duration(seconds) {
  if (!(seconds >= 0)) return "–";
  if (seconds < 60) return number(seconds, 3) + " s";
  const whole = Math.round(seconds), h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60, s = whole % 60;
  return (h ? h + " h " : "") + m + " min " + (h ? "" : s + " s");
}

const bytes = (n) => n >= 1e9 ? number(n / 1e9, 3) + " GB" :
    n >= 1e6                  ? number(n / 1e6, 3) + " MB" :
                                number(n / 1e3, 3) + " kB";
const percent = (part, whole) => whole > 0 ? number(100 * part / whole, 3) + " %" : "–";
const when = (seconds) => seconds ? new Date(1000 * seconds).toLocaleString() : "–";

function table(caption, heads, rows) {
  const cell = (value, head, first) => {
    const text = value instanceof Node ?
        value :
        document.createTextNode(value === null || value === undefined ? "–" : String(value));
    const properties = {class: head.number ? "number" : "words"};
    return first ? element("th", {scope: "row", ...properties}, text) : element("td", properties, text);
  };
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: " + caption},
      element("table", {}, element("caption", {}, caption),
          element("thead", {},
              element("tr", {},
                  ...heads.map((h) => element("th", {scope: "col", class: h.number ? "number" : ""}, h.name)))),
          element("tbody", {},
              ...rows.map((row) => element("tr", {}, ...row.map((value, i) => cell(value, heads[i], i === 0)))))));
}

function bar(share, kind) {
  const inner = element("div", kind ? {class: "kind-" + kind} : {});
  inner.style.width = Math.max(0, Math.min(100, 100 * share)) + "%";
  return element("div", {class: "bar", "aria-hidden": "true"}, inner);
}
