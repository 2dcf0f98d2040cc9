"use strict";
// The address holds what is shown: #place, #?outcome=fail&q=words, or both, #place?outcome=fail.
(() => {
  const tools = document.getElementById("tools");
  const items = [...document.querySelectorAll(".item")];
  const parts = [...document.querySelectorAll(".part, .rest")];
  const selects = ["outcome", "level", "extension", "area"].map((name) => document.getElementById(name));
  const fields = [document.getElementById("q"), ...selects];
  const found = document.getElementById("found");
  const texts = new Map();

  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };
  const fits = (item, wanted) =>
    selects.every((field) => !field.value || item.dataset[field.id] === field.value) &&
    wanted.every((word) => textOf(item).includes(word));

  const hideEmptyHeadings = () => {
    for (const heading of document.querySelectorAll("#requirements > h3, #requirements > h4")) {
      const ends = heading.tagName === "H3" ? ["H3"] : ["H3", "H4"];
      let empty = true;
      for (let next = heading.nextElementSibling; next && !ends.includes(next.tagName); next = next.nextElementSibling) {
        if (next.matches(".item") && !next.hidden) empty = false;
      }
      heading.hidden = empty;
    }
  };

  const filter = () => {
    const wanted = fields[0].value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = wanted.length > 0 || selects.some((field) => field.value);
    let shown = 0;
    for (const item of items) {
      item.hidden = !fits(item, wanted);
      shown += !item.hidden;
    }
    for (const part of parts) {
      const holds = part.querySelector(".item:not([hidden])") !== null;
      part.hidden = active && !holds;
      if (part.matches("details")) part.open = active && holds;
    }
    hideEmptyHeadings();
    found.textContent = active ? `${shown} of ${items.length} findings and requirements` : "";
  };

  const remember = () => {
    const named = fields.filter((field) => field.value).map((field) => [field.id, field.value]);
    const bare = location.href.split("#")[0];
    history.replaceState(null, "", named.length ? `${bare}#?${new URLSearchParams(named)}` : bare);
  };

  const placed = (name) => {
    try {
      return document.getElementById(name) || document.getElementById(decodeURIComponent(name));
    } catch {
      return null; // not what an address can hold
    }
  };

  const show = () => {
    const [name, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
    const wanted = new URLSearchParams(query);
    for (const field of fields) field.value = wanted.get(field.id) || "";
    filter();
    const target = name && placed(name);
    if (!target) {
      if (query) tools.scrollIntoView();
      return;
    }
    for (let part = target; part; part = part.parentElement) if (part.matches("details")) part.open = true;
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

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("#failures .block:not([open])")];
    for (const block of opened) block.open = true;
  });
  addEventListener("afterprint", () => {
    for (const block of opened) block.open = false;
  });

  tools.hidden = false;
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("input", () => (filter(), remember()));
  tools.addEventListener("reset", () => setTimeout(() => (filter(), remember())));
  if (navigator.clipboard) document.querySelectorAll("pre.command").forEach(copied);
  addEventListener("hashchange", show);
  if (location.hash) show();
})();
