"use strict";
// Search and filters. The address holds the open cell, #REQUIREMENT--server, or what is shown, #?show=fails&q=words.
(() => {
  const root = document.querySelector(".oip-matrix:has(.tools)");
  if (!root) return;
  const tools = root.querySelector(".tools");
  const scroll = root.querySelector(".scroll");
  const found = tools.querySelector("output");
  const fields = [...tools.querySelectorAll("input[type=search], select")];
  const boxes = [...tools.querySelectorAll("[name=column]")];
  const groups = [...root.querySelectorAll(".matrix tbody")];
  const rows = [...root.querySelectorAll(".matrix .row")].map((row) => ({
    row,
    more: row.nextElementSibling,
    concern: row.closest("tbody").dataset.concern,
    cells: [...row.cells].slice(1),
  }));
  const shows = {
    differs: (cells) => new Set(cells.map((cell) => cell.className)).size > 1,
    fails: (cells) => cells.some((cell) => ["fail", "known_failure"].includes(cell.className)),
    changed: (cells) => cells.some((cell) => cell.querySelector(".before")),
  };

  const textOf = (item) => (item.text ??= (item.row.textContent + item.more.textContent).toLowerCase());
  const fits = (item, wanted, places) => {
    const { q, show, ...own } = wanted;
    const cells = item.cells.filter((_, place) => places.has(place));
    return (
      (!own.level || own.level === item.row.dataset.level) &&
      (!own.extension || own.extension === item.row.dataset.extension) &&
      (!own.concern || own.concern === item.concern) &&
      (!show || shows[show](cells)) &&
      q.toLowerCase().split(/\s+/).every((word) => textOf(item).includes(word))
    );
  };

  const showColumns = (places) => {
    const versions = [...root.querySelector(".matrix thead").rows[1].cells];
    for (const cells of [versions, ...rows.map((item) => item.cells)]) {
      for (const [place, cell] of cells.entries()) cell.hidden = !places.has(place);
    }
    for (const head of root.querySelectorAll("[data-places]")) {
      const own = head.dataset.places.split(" ").filter((place) => places.has(Number(place)));
      head.hidden = !own.length;
      if (own.length) head.colSpan = own.length;
    }
  };

  const filter = () => {
    const wanted = Object.fromEntries(fields.map((field) => [field.name, field.value]));
    const places = new Set(boxes.flatMap((box, place) => (box.checked ? [place] : [])));
    let shown = 0;
    for (const item of rows) {
      item.row.hidden = item.more.hidden = !fits(item, wanted, places);
      shown += !item.row.hidden;
    }
    for (const group of groups) group.hidden = !group.querySelector(".row:not([hidden])");
    showColumns(places);
    found.textContent = `${shown} of ${rows.length} requirements`;
  };

  const remember = () => {
    const named = fields.filter((field) => field.value).map((field) => [field.name, field.value]);
    if (boxes.some((box) => !box.checked)) {
      named.push(...boxes.filter((box) => box.checked).map((box) => ["column", box.value]));
    }
    const query = named.length ? `#?${new URLSearchParams(named)}` : "";
    history.replaceState(null, "", location.href.split("#")[0] + query);
  };

  const restore = () => {
    const wanted = new URLSearchParams(location.hash.slice(2));
    for (const field of fields) field.value = wanted.get(field.name) ?? "";
    const columns = wanted.getAll("column");
    for (const box of boxes) box.checked = !columns.length || columns.includes(box.value);
    filter();
  };

  // A cell that is named by an address has to be visible; of a server that is no longer here, the row is left.
  const arrive = () => {
    if (location.hash.startsWith("#?")) return restore();
    const name = location.hash.slice(1);
    const target = document.getElementById(name);
    if (target && root.contains(target) && target.closest("[hidden]")) {
      tools.reset();
      location.replace(`#${name}`);
    } else if (target && root.contains(target)) {
      const cell = [...root.querySelectorAll(".row td a")].find((link) => link.hash === `#${name}`)?.closest("td");
      if (cell) scroll.scrollLeft = cell.offsetLeft - cell.parentElement.cells[0].offsetWidth;
    } else if (!target && name.includes("--")) {
      location.replace(`#${name.split("--")[0]}`);
    }
  };

  // Opening a cell moves the page only as far as its panel needs; an open one closes.
  const open = (event) => {
    const link = event.target.closest(".row td a, a.close");
    if (!link) return;
    event.preventDefault();
    const before = [scroll.scrollTop, scroll.scrollLeft, scrollX, scrollY];
    const row = link.closest("tr.row") ?? link.closest("tr.more").previousElementSibling;
    const isOpen = link.matches(".close") || link.hash === location.hash;
    location.hash = isOpen ? "" : link.hash;
    scroll.scrollTo(before[1], before[0]);
    scrollTo(before[2], before[3]);
    if (isOpen) (link.matches(".close") ? row.querySelector("td a") : link).focus({ preventScroll: true });
    else document.getElementById(link.hash.slice(1))?.scrollIntoView({ block: "nearest" });
  };

  tools.hidden = false;
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("input", () => (filter(), remember()));
  tools.addEventListener("reset", () => setTimeout(() => (filter(), location.hash.startsWith("#?") && remember())));
  root.addEventListener("click", open);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") root.querySelector("section:target .close, td:target a")?.click();
  });
  addEventListener("hashchange", arrive);
  filter();
  arrive();
})();
