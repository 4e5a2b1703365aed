"use strict";
// Filter and sort the table of all rollouts; everything else in the report is static.
(() => {
  const table = document.getElementById("rollouts");
  const filter = document.getElementById("filter");
  const count = document.getElementById("shown");
  if (!table || !filter || !count) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word));
      if (!row.hidden) shown++;
    }
    count.textContent = shown + " of " + rows.length;
  };
  filter.hidden = false;
  filter.addEventListener("input", apply);
  apply();

  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = Number(text);
    return text === "" || Number.isNaN(number) ? text : number;
  };
  const compare = (x, y) => {
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return x < y ? -1 : x > y ? 1 : 0;
  };
  const sort = (column) => {
    const up = heads[column].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
    rows.sort((a, b) => compare(value(a, column), value(b, column)) * (up ? 1 : -1));
    body.append(...rows);
  };
  table.classList.add("sortable");
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(column));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sort(column);
    });
  });
})();
