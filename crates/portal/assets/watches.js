// Beside an archived page: takes what was pointed at into the form. What comes from the frame is somebody else's words, and is only ever text.
(function () {
  "use strict";
  const frame = document.getElementById("page");
  const form = document.getElementById("rule");
  const told = document.getElementById("told");
  const toml = document.getElementById("toml");
  const longest = 400;
  const quoted = (text) => JSON.stringify(text);
  const show = () => {
    const { about, part, which } = form.elements;
    toml.textContent = part.value
      ? `[[site]]\nmatch = ${quoted(about.value)}\n${which.value} = [${quoted(part.value)}]`
      : "";
  };
  window.addEventListener("message", (event) => {
    const said = event.data;
    if (event.source !== frame.contentWindow || !said || said.skep !== "picked") return;
    if (typeof said.selector !== "string" || said.selector.length > longest) return;
    form.elements.part.value = said.selector;
    told.textContent = said.parts === 1 ? "One part of the page is called so." : `${Number(said.parts)} parts of the page are called so.`;
    show();
  });
  form.addEventListener("input", show);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { about, part, which, token } = form.elements;
    const body = new URLSearchParams({ about: about.value, [which.value]: part.value });
    const headers = token.value ? { Authorization: `Bearer ${token.value}` } : {};
    try {
      const answer = await fetch("/watches/rules", { method: "POST", body, headers });
      told.textContent = await answer.text();
    } catch {
      told.textContent = "The portal does not answer.";
    }
  });
})();
