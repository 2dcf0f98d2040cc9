"use strict";
// A body as bytes beside its parts: whatever is pointed at, touched or focused in one shows in the other.
(() => {
  const COLOURS = 4;
  const hex = (number, digits) => number.toString(16).padStart(digits, "0");

  const element = (tag, className, text = "") => {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    return made;
  };

  const line = (bytes, start, width) => {
    const piece = [...bytes.subarray(start, start + width)];
    const text = piece.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    const row = element("div", "");
    const cells = piece.map((byte) => element("b", "", hex(byte, 2)));
    row.append(element("i", "", hex(start, 4) + " "), ...cells, " ".repeat(3 * (width - piece.length)), element("i", "", " " + text));
    return [row, cells];
  };

  const dump = (bytes, fields, title) => {
    const box = element("div", "dump");
    const list = element("div", "fields");
    const view = element("div", "bytes");
    const told = element("output", "told");
    const cells = [];
    let here = 0;

    view.tabIndex = 0;
    view.setAttribute("role", "group");
    view.setAttribute("aria-label", `${title}, ${bytes.length} bytes; the arrow keys go from byte to byte`);
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", `Parts of it`);
    const width = innerWidth < 768 ? 8 : 16;
    for (let start = 0; start < bytes.length; start += width) {
      const [row, own] = line(bytes, start, width);
      view.append(row);
      cells.push(...own);
    }
    const buttons = fields.map(([start, end, label], place) => {
      const colour = `f${place % COLOURS}`;
      for (let at = start; at < end && at < cells.length; at++) {
        cells[at].dataset.field = place;
        cells[at].classList.add(colour);
      }
      const button = element("button", colour, `${label} ${hex(start, 4)}-${hex(end - 1, 4)}`);
      button.type = "button";
      return button;
    });
    list.append(...buttons);

    const mark = (place, from, to) => {
      for (const marked of box.querySelectorAll(".on, .here")) marked.classList.remove("on", "here");
      if (!(place in fields)) return;
      buttons[place].classList.add("on");
      for (let at = from; at < to && at < cells.length; at++) cells[at].classList.add("on");
    };
    const showField = (place) => {
      const [start, end, label] = fields[place];
      mark(place, start, end);
      told.textContent = `${label}: ${end - start} bytes from ${start} (0x${hex(start, 4)})`;
      cells[start]?.scrollIntoView({ block: "nearest" });
    };
    const showByte = (at, follow) => {
      const place = Number(cells[at].dataset.field);
      const [start, end, label, size] = fields[place] || [0, 0, "", 0];
      const index = size ? Math.floor((at - start) / size) : 0;
      mark(place, size ? start + index * size : start, size ? start + (index + 1) * size : end);
      here = at;
      cells[at].classList.add("here");
      told.textContent = `${at} (0x${hex(at, 4)}) is ${hex(bytes[at], 2)}: ${label}${size ? ` element ${index}` : ""}`;
      buttons[place]?.scrollIntoView({ block: "nearest" });
      if (follow) cells[at].scrollIntoView({ block: "nearest" });
    };

    const pointed = (event) => {
      const at = cells.indexOf(event.target);
      if (at >= 0) showByte(at, false);
      const place = buttons.indexOf(event.target);
      if (place >= 0) showField(place);
    };
    for (const kind of ["pointerover", "click", "focusin"]) box.addEventListener(kind, pointed);
    view.addEventListener("focus", () => showByte(here, true));
    view.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width, Home: -here, End: cells.length - 1 - here };
      if (!(event.key in steps)) return;
      event.preventDefault();
      showByte(Math.max(0, Math.min(cells.length - 1, here + steps[event.key])), true);
    });
    box.append(list, view, told);
    return box;
  };

  const drawn = (pre) => {
    try {
      const bytes = Uint8Array.from(atob(pre.textContent), (character) => character.charCodeAt(0));
      pre.replaceWith(dump(bytes, JSON.parse(pre.dataset.fields), pre.dataset.title));
    } catch {
      // What is no body stays the text that it is.
    }
  };

  for (const message of document.querySelectorAll("details.message")) {
    message.addEventListener("toggle", () => message.querySelectorAll("pre.body").forEach(drawn));
  }
})();
