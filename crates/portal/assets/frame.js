// The frame around an archived page follows it: the page tells where it is whenever that changes, and the address, the title and the date
// above it are brought up to date. What it says is believed only as far as it is an address of the archive.
(function () {
  "use strict";
  const { scope, replay } = document.body.dataset;
  const page = document.getElementById("page");
  const origin = new URL(replay).origin;
  addEventListener("message", (event) => {
    const told = event.data;
    // A page in a sandbox has no origin; it is told from others by its window.
    if (event.source !== page.contentWindow || (event.origin !== origin && event.origin !== "null")) return;
    if (!told || told.skep !== "page" || typeof told.url !== "string" || !/^https?:\/\//.test(told.url)) return;
    const time = /^\d{14}$/.test(told.time) ? told.time : null;
    if (!time) return;
    const title = typeof told.title === "string" && told.title ? told.title.slice(0, 300) : told.url;
    document.title = title;
    document.getElementById("url").textContent = told.url;
    history.replaceState(null, "", `/${scope}/${time}/${told.url}`);
  });
})();
