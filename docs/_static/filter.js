// A table with a column "verdict" gets a choice for each of its columns "paper" and "verdict", and a search in all columns.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const heads = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    if (!heads.includes("verdict") || !heads.includes("statement")) continue;
    const rows = [...table.querySelectorAll("tbody tr")];
    const bar = document.createElement("div");
    bar.className = "filters";
    const chosen = {};
    const count = document.createElement("span");
    const search = document.createElement("input");
    search.type = "search";
    search.placeholder = "words";
    const show = () => {
      let shown = 0;
      for (const row of rows) {
        const fits = Object.entries(chosen).every(([k, v]) => !v.value || row.cells[k].textContent.trim() === v.value);
        row.hidden = !(fits && row.textContent.toLowerCase().includes(search.value.toLowerCase()));
        shown += !row.hidden;
      }
      count.textContent = `${shown} of ${rows.length}`;
    };
    for (const name of ["paper", "verdict"]) {
      const k = heads.indexOf(name);
      if (k < 0) continue;
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.add(new Option("all", ""));
      for (const value of new Set(rows.map((row) => row.cells[k].textContent.trim()))) select.add(new Option(value, value));
      select.addEventListener("change", show);
      chosen[k] = select;
      label.append(`${name} `, select);
      bar.append(label);
    }
    search.addEventListener("input", show);
    bar.append(search, count);
    (table.closest(".table-wrapper") || table).before(bar);
    show();
  }
});
