// Names for parts of the theme that have none, and tables that scroll by keyboard.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
const mend = () => {
  for (const [place, each] of document.querySelectorAll("nav.md-code__nav").entries()) {
    each.setAttribute("aria-label", `Code block ${place + 1}`);
  }
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
  }
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", mend);
mend();
