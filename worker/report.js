"use strict";
// Filter and sort the table of all rollouts; everything else in the report is static.
(() => {
  const table = document.getElementById("rollouts");
  const filter = document.getElementById("filter");
  if (!table || !filter) return;
  const body = table.tBodies[0];
  const count = document.getElementById("shown");
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown++;
    }
    count.textContent = shown + " of " + body.rows.length;
  };
  filter.addEventListener("input", apply);
  apply();
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    let up = false;
    cell.addEventListener("click", () => {
      up = !up;
      const key = (row) => {
        const text = row.cells[column].textContent.trim();
        const number = Number.parseFloat(text);
        return Number.isNaN(number) ? text : number;
      };
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a), y = key(b);
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
        return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
      });
      body.append(...rows);
    });
  });
})();
