// The frame around an archived page follows it: the page tells where it is whenever that changes, and the address, the title and the date
// above it are brought up to date. What it says is believed only as far as it is an address of the archive.
(function () {
  "use strict";
  const { scope, replay } = document.body.dataset;
  const page = document.getElementById("page");
  const origin = new URL(replay).origin;
  // How far apart in time the parts of the page are. Where that cannot be told, the link to them stays.
  const lengths = [["year", 31557600], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const spelled = (seconds) => {
    const [name, length] = lengths.find(([, length]) => seconds >= 2 * length) || lengths[lengths.length - 1];
    const count = Math.floor(seconds / length);
    return `${count} ${name}${count === 1 ? "" : "s"}`;
  };
  const link = document.getElementById("parts");
  let asked = "";
  const tellParts = async (url, time) => {
    const about = `url=${encodeURIComponent(url)}&time=${time}${scope === "web" ? "" : `&collection=${encodeURIComponent(scope)}`}`;
    if (about === asked) return;
    asked = about;
    link.href = `/completeness?${about}`;
    link.textContent = "parts of this page";
    const answer = await fetch(`/api/v1/completeness?${about}`).catch(() => null);
    const told = answer && answer.ok ? await answer.json().catch(() => null) : null;
    // Meanwhile another page may be shown.
    if (!told || about !== asked) return;
    const { missing } = told.counts;
    const apart = told.parts.length === 0 ? "this page has no parts of its own"
      : told.span_seconds > 0 ? `this page’s parts are ${spelled(told.span_seconds)} apart`
      : "this page’s parts are of one moment";
    link.textContent = missing > 0 ? `${apart}, ${missing} missing` : apart;
  };
  tellParts(document.getElementById("url").textContent, document.body.dataset.time);
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
    tellParts(told.url, time);
    history.replaceState(null, "", `/${scope}/${time}/${told.url}`);
  });
})();
