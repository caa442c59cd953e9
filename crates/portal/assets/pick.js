// In an archived page that is shown without its own scripts: tells the page around it which part was pointed at.
(function () {
  "use strict";
  const plain = /^[A-Za-z][\w-]*$/;
  const count = (selector) => document.querySelectorAll(selector).length;
  const own = (element) => {
    if (element.id && plain.test(element.id)) return `#${element.id}`;
    const classes = [...element.classList].filter((name) => plain.test(name)).slice(0, 2);
    return element.localName + classes.map((name) => `.${name}`).join("");
  };
  // What a browser puts into a page by itself never has attributes: rules go by the page as it was sent, where it does not stand.
  const made = (element) => /^(tbody|tr|colgroup|body|head|html)$/.test(element.localName) && !element.hasAttributes();
  const selector = (element) => {
    const here = own(element);
    if (count(here) === 1) return here;
    for (let around = element.parentElement; around && around !== document.body; around = around.parentElement) {
      if (made(around)) continue;
      const within = `${own(around)} ${here}`;
      if (count(within) === 1) return within;
    }
    return here;
  };
  let marked = null;
  const mark = (element) => {
    if (marked) marked.style.outline = "";
    marked = element;
    if (marked) marked.style.outline = "3px solid #c60";
  };
  const meant = (event) => {
    let element = event.target instanceof Element ? event.target : null;
    while (element && made(element)) element = element.parentElement;
    return element === document.documentElement ? null : element;
  };
  document.addEventListener("mouseover", (event) => mark(meant(event)), true);
  const chosen = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    const element = meant(event);
    if (!element) return;
    const found = selector(element);
    parent.postMessage({ skep: "picked", selector: found, parts: count(found) }, "*");
  };
  document.addEventListener("click", chosen, true);
  document.addEventListener("submit", (event) => event.preventDefault(), true);
})();
