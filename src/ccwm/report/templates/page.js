for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
    const numeric = (text) => text !== "" && !Number.isNaN(Number(text));
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");  // what is missing stays last
      const order = numeric(x) && numeric(y) ? x - y : x.localeCompare(y);
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows);
  }));
}

if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
  // a browser may refuse to start a video by itself; the controls are there then
  for (const video of document.querySelectorAll("video")) video.play().catch(() => {});
}
