// Names for parts of the theme that have none, for those who hear the pages.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
const nameButtons = () => {
  for (const [place, each] of document.querySelectorAll("nav.md-code__nav").entries()) {
    each.setAttribute("aria-label", `Code block ${place + 1}`);
  }
};
new MutationObserver(nameButtons).observe(document.body, { childList: true, subtree: true });
nameButtons();
