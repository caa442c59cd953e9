// The live page: what comes is put on top of the list, as the portal itself draws it (`pages/event.rs`). Everything of an event is
// somebody else's words: it becomes text, never markup.
(function () {
  "use strict";
  const list = document.getElementById("changes");
  const state = document.getElementById("state");
  const rows = Number(list.dataset.rows);
  const held = [];
  const wanted = new Set(list.dataset.wanted.split(" "));
  // A stream of all nodes tells some of what is shown once more, under the same keys.
  const seen = new Set(list.dataset.seen ? list.dataset.seen.split(" ") : []);
  const remembered = 5000;
  let paused = false;
  let passed = 0;

  const element = (name, text, attributes) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    return made;
  };
  const percent = (share) => (share < 0.01 ? `${(share * 100).toFixed(2)} %` : `${(share * 100).toFixed(0)} %`);
  const gist = ({ text, http, reason, meta }) =>
    (text && text.snippet) || (http && http.redirect) || reason || (meta && meta.title) || "";

  const item = (event) => {
    const data = event.data || {};
    const line = element("p", "", { class: "url", "data-key": event.key });
    line.append(element("time", event.time.replace("T", " ").replace("Z", ""), { datetime: event.time }), " ");
    const classes = element("span");
    (data.classes || []).forEach((name, at) => classes.append(at ? " " : "", element("b", name)));
    if (data.magnitude > 0) classes.append(` ${percent(data.magnitude)}`);
    line.append(classes, " ", element("a", event.subject, { href: `/history?url=${encodeURIComponent(event.subject)}` }));
    const made = element("li", "", { class: "fresh" });
    made.append(line);
    if (gist(data)) made.append(element("p", gist(data), { class: "soft" }));
    return made;
  };

  const classes = (event) => (event.data && event.data.classes) || [];
  // Files that were added at two nodes may have the same keys.
  const isOf = (event) => (row) =>
    row.firstElementChild.dataset.key === event.key && row.querySelector("time").getAttribute("datetime") === event.time;

  // A key has one row: what is told again is shown as it is told now, what is taken back or turned out to be noise not at all.
  const show = (event) => {
    Array.from(list.children).filter(isOf(event)).forEach((row) => row.remove());
    if (!classes(event).some((name) => wanted.has(name))) return;
    list.prepend(item(event));
    while (list.childElementCount > rows) list.lastElementChild.remove();
    const none = document.getElementById("none");
    if (none) none.remove();
  };

  const button = element("button", "Pause", { type: "button", id: "pause", "aria-pressed": "false" });
  const told = element("span");
  const tell = () => {
    const connected = stream.readyState === EventSource.OPEN ? "Live." : stream.readyState === EventSource.CLOSED
      ? "The stream has ended; load this page again." : "Not connected; trying again.";
    const waiting = held.length + passed;
    told.textContent = paused ? ` Paused, ${waiting} waiting.` : ` ${connected}`;
    state.dataset.state = paused ? "paused" : stream.readyState === EventSource.OPEN ? "live" : "apart";
  };
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Go on" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    if (!paused) {
      held.splice(0).forEach(show);
      passed = 0;
    }
    tell();
  });

  const stream = new EventSource(list.dataset.stream);
  stream.addEventListener("open", tell);
  stream.addEventListener("error", tell);
  stream.addEventListener("message", (message) => {
    const event = JSON.parse(message.data);
    if (list.dataset.stream.includes("nodes=all")) {
      const name = `${event.key}|${event.time}|${classes(event).join()}`;
      if (seen.has(name)) return;
      seen.add(name);
      if (seen.size > remembered) seen.delete(seen.values().next().value);
    }
    if (!paused) return show(event);
    held.push(event);
    // Who pauses for long sees the newest of what came meanwhile.
    if (held.length > rows) {
      held.shift();
      passed += 1;
    }
    tell();
  });
  state.replaceChildren(button, told);
  // Not every line is worth being read aloud.
  list.setAttribute("aria-live", "off");
  tell();
})();
