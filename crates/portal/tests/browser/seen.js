// What a page has become: elements with their attributes, addresses as absolute ones, and text; one line each.
const addresses = new Set(["src", "href", "action", "poster", "data", "background", "formaction", "xlink:href"]);
const absolute = (value) => { try { return new URL(value, document.baseURI).href; } catch { return value; } };
const inText = (value) => value.replace(/url\(\s*["']?([^"')]*)["']?\s*\)/g, (_, address) => `url("${absolute(address)}")`);
const lines = [];
const see = (node, depth) => {
  const indent = " ".repeat(depth);
  if (node.nodeType === 3) {
    const text = node.data.trim();
    const raw = node.parentNode.localName === "script" || node.parentNode.localName === "style";
    if (text && !raw) lines.push(indent + text.replace(/\s+/g, " "));
    return;
  }
  if (node.nodeType !== 1) return;
  const attributes = [...node.attributes].map(({ name }) => {
    let value = node.getAttribute(name);
    if (name === "ping" || name === "integrity" || name === "nonce") return "";
    if (addresses.has(name) && value && value[0] !== "#") value = absolute(value);
    if (name === "srcset") value = value.split(", ").map((one) => { const [address, ...rest] = one.trim().split(" "); return [absolute(address), ...rest].join(" "); }).join(", ");
    if (name === "style") value = inText(node.style.cssText.replaceAll("\\", "")).replace(/http:\/\/replay[^"']*?_\/(?=http)/g, "");
    return ` ${name}="${value}"`;
  }).sort().join("");
  lines.push(`${indent}<${node.localName}${attributes}>`);
  node.childNodes.forEach((child) => see(child, depth + 1));
  if (node.shadowRoot) { lines.push(indent + " #shadow"); node.shadowRoot.childNodes.forEach((child) => see(child, depth + 2)); }
};
see(document.documentElement, 0);
return lines.join("\n");
