"use strict";
// Adds to a page that is complete without it: sorted tables, copied texts, and flame graphs that zoom.

/** A button with a text, or with the content of another element. */
function button(content, pressed) {
  const made = document.createElement("button");
  made.type = "button";
  made.append(...content);
  made.addEventListener("click", pressed);
  return made;
}

// Tables: by the figure of a cell where it has one, and by its text otherwise. Cells without a value come last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, at) => {
    const cell = row.cells[at];
    const text = cell.textContent.trim();
    return "value" in cell.dataset ? Number(cell.dataset.value) : text === "-" ? "" : text;
  };
  const order = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  // A row whose name is indented stays below the one that it belongs to.
  const groups = [];
  for (const row of body.rows) {
    if (groups.length > 0 && row.cells[0].textContent.startsWith("   ")) groups.at(-1).push(row);
    else groups.push([row]);
  }
  const sort = (head, at) => {
    const down = head.ariaSort === "ascending" ? -1 : 1;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.ariaSort = down < 0 ? "descending" : "ascending";
    const rows = groups.map((rows) => [value(rows[0], at), rows]);
    rows.sort(([a], [b]) => order(a, b) * (a === "" || b === "" ? 1 : down));
    body.append(...rows.flatMap(([, rows]) => rows));
  };
  heads.forEach((head, at) => {
    if (head.textContent.trim() === "") return;
    head.append(button(head.childNodes, () => sort(head, at)));
  });
}

// All tables as one file, figures with all their digits.
const tables = [...document.querySelectorAll("table")];
if (tables.length > 0) {
  const quoted = (text) => (/^[=+\-@]|[",\n]/.test(text) && !/^[+-]?[\d.]+$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (row) => [...row.cells].map((cell) => quoted(cell.dataset.value ?? cell.innerText.trim().replace(/\s+/g, " "))).join(",");
  const save = () => {
    const title = (table) => quoted(table.closest("section, details")?.querySelector("h2, h3, h4")?.innerText ?? document.title);
    const text = tables.map((table) => [title(table), ...[...table.rows].map(line)].join("\r\n")).join("\r\n\r\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = "tables.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const tools = document.createElement("p");
  tools.className = "tools";
  tools.append(button(["All tables as CSV"], save));
  (document.querySelector("nav.contents") ?? document.querySelector("main").lastElementChild).after(tools);
}

// Texts: where a page may not write to the clipboard, they are selected.
for (const text of document.querySelectorAll("pre.copied")) {
  const copy = button(["Copy"], async () => {
    getSelection().selectAllChildren(text);
    try {
      await navigator.clipboard.writeText(text.innerText);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Selected: press Ctrl+C";
    }
  });
  copy.className = "copy";
  text.before(copy);
}

// Flame graphs: a click or Enter zooms to a function, arrow keys go from one to the next, a text marks all that contain it.
for (const frames of document.querySelectorAll(".flames svg svg")) {
  const total = Number(frames.getAttribute("total_samples"));
  const all = [...frames.querySelectorAll("g")].map((group) => {
    const [title, rect, text] = ["title", "rect", "text"].map((name) => group.querySelector(name));
    const [from, wide, y] = ["fg:x", "fg:w", "y"].map((name) => Number(rect.getAttribute(name)));
    return { group, rect, text, from, wide, y, to: from + wide, says: title.textContent, name: title.textContent.replace(/ \([^(]*\)$/, "") };
  });
  const within = (inner, outer) => inner.from >= outer.from && inner.to <= outer.to;
  const root = all.reduce((a, b) => (b.wide > a.wide || (b.wide === a.wide && b.y > a.y) ? b : a));
  let here = root;
  const says = document.createElement("p");
  says.className = "note";
  says.setAttribute("role", "status");
  const look = (at) => {
    here.group.classList.remove("here");
    here = at;
    here.group.classList.add("here");
    says.textContent = here.says;
  };
  const zoom = (at) => {
    for (const one of all) {
      const below = one.y > at.y && within(at, one);
      one.group.style.display = below || within(one, at) ? "" : "none";
      const [from, wide] = below ? [0, 1] : [(one.from - at.from) / at.wide, one.wide / at.wide];
      one.rect.setAttribute("x", `${100 * from}%`);
      one.rect.setAttribute("width", `${100 * wide}%`);
      one.text.setAttribute("x", `${100 * from + 0.25}%`);
      const letters = Math.floor((frames.width.baseVal.value * wide - 6) / 7.3);
      one.text.textContent = letters < 3 ? "" : one.name.length <= letters ? one.name : one.name.slice(0, letters - 2) + "..";
    }
    look(at);
  };
  const beside = (key) => {
    const row = (up) => all.filter((one) => Math.sign(here.y - one.y) === up && one.group.style.display === "");
    const best = (found, better) => found.reduce((a, b) => (a && !better(b, a) ? a : b), undefined);
    switch (key) {
      case "ArrowUp": return best(row(1).filter((one) => within(one, here)), (a, b) => a.y > b.y || (a.y === b.y && a.wide > b.wide));
      case "ArrowDown": return best(row(-1).filter((one) => within(here, one)), (a, b) => a.y < b.y);
      case "ArrowLeft": return best(row(0).filter((one) => one.to <= here.from), (a, b) => a.from > b.from);
      case "ArrowRight": return best(row(0).filter((one) => one.from >= here.to), (a, b) => a.from < b.from);
    }
  };
  const mark = (wanted) => {
    let [share, end] = [0, 0];
    for (const one of [...all].sort((a, b) => a.from - b.from || b.wide - a.wide)) {
      const found = wanted !== "" && one.name.toLowerCase().includes(wanted.toLowerCase());
      one.group.classList.toggle("found", found);
      // A function below another one that is found is in its share already.
      if (found && one.to > end) [share, end] = [share + one.wide, one.to];
    }
    says.textContent = wanted === "" ? "" : `${((100 * share) / total).toFixed(1)} % of the samples are in functions with "${wanted}" in their names`;
  };
  for (const one of all) {
    one.group.addEventListener("click", () => zoom(one));
    one.group.addEventListener("mouseenter", () => look(one));
  }
  const picture = frames.closest(".flames");
  picture.tabIndex = 0;
  picture.setAttribute("role", "application");
  picture.addEventListener("keydown", (event) => {
    const next = beside(event.key);
    if (next) look(next);
    else if (event.key === "Enter") zoom(here);
    else if (event.key === "Escape") zoom(root);
    else return;
    event.preventDefault();
  });
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Function";
  search.ariaLabel = "Mark functions whose names contain";
  search.addEventListener("input", () => mark(search.value));
  const tools = document.createElement("p");
  tools.className = "tools";
  tools.append(search, button(["Show all"], () => zoom(root)), " Click a function to zoom; or arrow keys, Enter and Escape.");
  picture.before(tools);
  picture.after(says);
}

// Folded parts: what was opened stays open when a server's page is loaded again. Their titles name them, because their numbers change.
if (location.protocol.startsWith("http")) {
  const parts = [...document.querySelectorAll("details")];
  const title = (part) => part.querySelector("summary").textContent;
  const name = (part) => {
    const around = part.parentElement.closest("details");
    return (around ? name(around) + "\n" : "") + title(part);
  };
  const key = `open ${location.pathname}`;
  const open = JSON.parse(sessionStorage.getItem(key) ?? "[]");
  for (const part of parts) {
    if (open.includes(name(part))) part.open = true;
    part.addEventListener("toggle", () => sessionStorage.setItem(key, JSON.stringify(parts.filter((one) => one.open).map(name))));
  }
}
