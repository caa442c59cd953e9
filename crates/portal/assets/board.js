// The board of contributors, made anew every few seconds while somebody looks at it.
"use strict";
const EVERY_MS = 3000;
async function again() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const [now, then] = [page.getElementById("board"), document.getElementById("board")];
      if (answer.ok && now && then) then.replaceWith(document.adoptNode(now));
    } catch (gone) {
      // The portal does not answer now: what was last heard stays.
    }
  }
  setTimeout(again, EVERY_MS);
}
setTimeout(again, EVERY_MS);
