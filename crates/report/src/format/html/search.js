"use strict";
// Adds a search over all sets of a site. Its index is loaded at the first letter.
for (const place of document.querySelectorAll(".search")) {
 const MOST = 200;
 const add = (parent, tag, text, more) => {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  Object.assign(made, more);
  parent.append(made);
  return made;
 };
 const form = add(place, "form");
 form.setAttribute("role", "search");
 const words = add(add(form, "label", "Search all sets "), "input", "", { type: "search", placeholder: "pf-stateful ConnectX" });
 const names = ["machine", "card", "topic"];
 const filters = names.map((name) => {
  const filter = add(add(form, "label", ` ${name} `, { hidden: true }), "select");
  add(filter, "option", "any", { value: "" });
  return filter;
 });
 const found = add(place, "p");
 found.setAttribute("role", "status");
 const results = add(place, "div", "", { className: "scroll", tabIndex: 0, hidden: true });
 results.setAttribute("role", "region");
 results.setAttribute("aria-label", "sets found");
 // Words behind blanks: what is searched for is the beginning of some.
 const plain = (text) => ` ${text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim()}`;
 let index;
 let asked = false;

 const rate = (value, quantity) => {
  if (quantity) return `${value.toPrecision(4)} ${["Mbit/s", "Mbit/s", "(no unit)"][quantity - 1]}`;
  const [scale, unit] = value >= 1e6 ? [1e6, "Mpps"] : value >= 1e3 ? [1e3, "kpps"] : [1, "pps"];
  return `${(value / scale).toPrecision(4)} ${unit}`;
 };
 const show = () => {
  const wanted = words.value.split(/\s+/).map(plain).filter((word) => word !== " ");
  const chosen = filters.map((filter) => (filter.value === "" ? -1 : Number(filter.value)));
  results.replaceChildren();
  results.hidden = true;
  found.textContent = "";
  if (wanted.length === 0 && chosen.every((at) => at < 0)) return;
  const hits = index.rows.filter((row) => chosen.every((at, n) => at < 0 || row.place[n] === at) && wanted.every((word) => row.text.includes(word)));
  found.textContent = `${hits.length} of ${index.rows.length} sets${hits.length > MOST ? `, the first ${MOST} of them shown` : ""}`;
  if (hits.length === 0) return;
  const table = add(results, "table");
  const head = add(add(table, "thead"), "tr");
  for (const name of ["set", "median", "runs", "machine", "card", "topic", "campaign"]) add(head, "th", name, { scope: "col" });
  const body = add(table, "tbody");
  for (const row of hits.slice(0, MOST)) {
   const line = add(body, "tr");
   add(add(line, "th", "", { scope: "row" }), "a", row.name, { href: row.file });
   add(line, "td", row.runs ? rate(row.median, row.quantity) : "-", { className: "number" });
   add(line, "td", row.runs, { className: "number" });
   for (const text of row.where) add(line, "td", text);
  }
  results.hidden = false;
 };
 // The address has the state, so that it is there again on the way back from a page, and can be sent.
 const kept = new URLSearchParams(location.hash.slice(1));
 const keep = () => {
  const state = new URLSearchParams({ search: words.value });
  filters.forEach((filter, n) => filter.value !== "" && state.set(names[n], filter.selectedOptions[0].textContent));
  history.replaceState(null, "", `#${state}`);
 };
 window.linerateSets = ({ names: known, pages, sets }) => {
  const rows = sets.map(([name, page, median, runs, quantity]) => {
   const [file, place, label, system] = pages[page];
   const where = [...place.map((at, n) => known[n][at]), label];
   return { name, file, place, median, runs, quantity, where, text: plain([name, ...where, system].join(" ")) };
  });
  index = { rows };
  filters.forEach((filter, n) => {
   known[n].forEach((name, at) => add(filter, "option", name || "not named", { value: at, selected: kept.get(names[n]) === (name || "not named") }));
   filter.parentElement.hidden = false;
  });
  show();
 };
 form.addEventListener("submit", (event) => event.preventDefault());
 const load = () => {
  if (asked) return;
  asked = true;
  found.textContent = "Loading the index";
  add(document.head, "script", "", {
   src: place.dataset.index,
   onerror: () => {
    found.textContent = `The index ${place.dataset.index} is not beside this page.`;
   },
  });
 };
 form.addEventListener("input", () => {
  keep();
  if (index) show();
  else load();
 });
 if (kept.has("search")) {
  words.value = kept.get("search");
  load();
 }
}
