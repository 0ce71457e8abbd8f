// A form made from the client's own description of its columns. Entries never leave the page, and are not stored.
import { Refused, answered, columns, digest, randomize, statement } from "./client.mjs";

const find = (id) => document.getElementById(id);

/** An element with properties and children. */
function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function field(column) {
  if (column.type === "category") {
    const label = (v) => (column.flag ? ["no", "yes"][v] : String(v));
    const options = column.values.map((v) => element("option", { value: String(v) }, label(v)));
    return element("select", { name: column.name }, element("option", { value: "" }, "–"), ...options);
  }
  const date = column.type === "date";
  const bounds = date ? { min: column.first, max: column.last } : { min: column.lower, max: column.upper };
  return element("input", { name: column.name, type: date ? "date" : "number", step: column.whole ? 1 : "any", ...bounds });
}

function label({ name, type, first, last, lower, upper, unit }) {
  if (type === "category") return name;
  return `${name} (${type === "date" ? `${first} to ${last}` : `${lower} to ${upper} ${unit}`.trim()})`;
}

const entries = () => Object.fromEntries(new FormData(find("form")));

function show(sent) {
  find("result").hidden = false;
  find("sent").textContent = JSON.stringify({ optdp: digest, ...sent }, null, 2);
  const names = columns.map(({ name }) => name);
  const rows = Array.from({ length: 10 }, () => randomize(entries()));
  const cell = (v) => element("td", {}, v === null ? "not sent" : typeof v === "number" ? v.toFixed(2) : String(v));
  const head = element("tr", {}, ...names.map((name) => element("th", {}, name)));
  find("others").replaceChildren(head, ...rows.map((row) => element("tr", {}, ...names.map((name) => cell(row[name])))));
}

find("promise").textContent = statement;
find("form").append(...columns.map((column) => element("label", {}, label(column), field(column))), element("button", {}, "Randomise"));
find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  find("refusal").textContent = "";
  try {
    show(randomize(entries(), localStorage)); // the plan is answered once: the answer is kept, and a second one refused
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    find("refusal").textContent = error.message;
  }
});
find("forget").addEventListener("click", () => {
  localStorage.clear();
  find("result").hidden = true;
});
if (answered(localStorage) !== null) find("refusal").textContent = "This device has answered already.";
