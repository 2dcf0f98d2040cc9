"use strict";
(() => {
  const tools = document.getElementById("tools");
  const items = [...document.querySelectorAll(".item")];
  const fields = ["outcome", "level", "extension"].map((name) => document.getElementById(name));
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  const texts = new Map();

  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };
  const words = () => query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (item, wanted) =>
    fields.every((field) => !field.value || item.dataset[field.id] === field.value) &&
    wanted.every((word) => textOf(item).includes(word));

  const filter = () => {
    const wanted = words();
    const active = wanted.length > 0 || fields.some((field) => field.value);
    let shown = 0;
    for (const item of items) {
      item.hidden = !fits(item, wanted);
      shown += !item.hidden;
    }
    // A heading of requirements none of which is shown would only be in the way.
    for (const heading of document.querySelectorAll("#requirements h3, #requirements h4")) {
      const ends = heading.tagName === "H3" ? ["H3"] : ["H3", "H4"];
      let empty = true;
      for (let next = heading.nextElementSibling; next && !ends.includes(next.tagName); next = next.nextElementSibling) {
        if (next.matches(".item") && !next.hidden) empty = false;
      }
      heading.hidden = empty;
    }
    found.textContent = active ? `${shown} of ${items.length} findings and requirements` : "";
  };

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden) {
      tools.reset();
      filter();
    }
    if (target.matches("details")) target.open = true;
    target.scrollIntoView();
  };

  const copied = (pre) => {
    const box = document.createElement("div");
    const button = document.createElement("button");
    box.className = "copied";
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    });
    pre.replaceWith(box);
    box.append(pre, button);
  };

  tools.hidden = false;
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("input", filter);
  tools.addEventListener("reset", () => setTimeout(filter));
  if (navigator.clipboard) document.querySelectorAll("pre.command").forEach(copied);
  addEventListener("hashchange", open);
  addEventListener("beforeprint", () => document.querySelectorAll(".finding > details").forEach((item) => (item.open = true)));
  open();
})();
