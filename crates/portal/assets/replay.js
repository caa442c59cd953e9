// The part of a replay that runs in the browser: an archived page asks for what it asked for then, and gets it from the archive.
//
// Loaded before every other script of a page (`<script src="/-/replay.js" data-skep-prefix data-skep-time data-skep-url>`) and of a
// worker (by `importScripts` or `import`). Addresses look like `<prefix><14 digits><modifier>/<url>`; see the table of modifiers in
// `rewrite.rs` of the package page, which does for documents what this does for what scripts make.
//
// What a script sees is the past: its location, origin, cookies, storage, clock. What it asks for is rewritten on the way out, what it
// reads of that is rewritten back. What has no past is refused: sockets, service workers, beacons. None of this is what keeps a page
// from the live web: the policy does, that the server sends with every answer. This keeps pages working under it.
//
// Scripts come with a few of their words changed (`script.rs`): `location` is `skep$location`, a read of `top` is `skep$top(top)`, a
// message is sent by `x.skep$post(skep$window).postMessage(…)`, and `import(x)` is `skep$import("URL of the script", x)`.
//
// The frame around a page is told `{ skep: "page", url, time, title }` whenever that changes.
(function () {
  "use strict";

  // ---------------------------------------------------------------------------------------------------------------- settings

  function settings(scope) {
    if (scope.skep$settings) return scope.skep$settings;
    const script = scope.document && scope.document.currentScript;
    if (script && script.dataset.skepPrefix) {
      const { skepPrefix: prefix, skepTime: time, skepUrl: url } = script.dataset;
      script.remove();
      return { prefix, time, url };
    }
    // A worker's own address says it all.
    const found = /^([a-z]+:\/\/[^/]+\/[^/]+\/)(\d{1,14})[a-z]*_?\/(https?:.*)$/.exec(scope.location.href);
    return found && { prefix: found[1], time: found[2], url: found[3] };
  }

  // ------------------------------------------------------------------------------------------------------------ installation

  /** Puts the past into a window or a worker. */
  function install(scope, { prefix, time, url: ownUrl }) {
    if (Object.prototype.hasOwnProperty.call(scope, "skep$window")) return;
    const { Object: Obj, Reflect: Ref, URL: NativeURL, document: doc, Proxy: Prox } = scope;
    const isWindow = Boolean(doc);
    const realLocation = scope.location;
    const realOrigin = new NativeURL(prefix).origin;
    const ours = realOrigin + "/-/replay.js";
    const replayed = new RegExp(
      prefix.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&") + "\\d{1,14}(?:[a-z]+_)?\\/(?=https?:)", "g");

    const define = (object, name, descriptor) =>
      Obj.defineProperty(object, name, { configurable: true, enumerable: true, ...descriptor });
    const hidden = (object, name, value) =>
      Obj.defineProperty(object, name, { configurable: true, writable: true, value });
    /** Replaces a method; `make` gets the native one. */
    const method = (owner, name, make) => {
      const native = owner && owner[name];
      if (typeof native !== "function") return;
      const made = make(native);
      try {
        Obj.defineProperty(made, "name", { value: name, configurable: true });
        owner[name] = made;
      } catch {
        // A page that froze it keeps it.
      }
    };
    /** Replaces an accessor; either half may stay as it is. */
    const accessor = (owner, name, { get, set }) => {
      const native = owner && Obj.getOwnPropertyDescriptor(owner, name);
      if (!native || !native.get || !native.configurable) return;
      Obj.defineProperty(owner, name, {
        ...native,
        get: get ? function () { return get.call(this, native.get); } : native.get,
        set: set && native.set ? function (value) { set.call(this, value, native.set); } : native.set,
      });
    };
    /** Replaces a constructor, whose instances stay what they are. */
    const constructor = (name, change) => {
      const native = scope[name];
      if (typeof native !== "function") return;
      const made = new Prox(native, {
        construct: (target, args, by) => Ref.construct(target, change(args, target), by === made ? target : by),
      });
      hidden(scope, name, made);
      if (native.prototype) hidden(native.prototype, "constructor", made);
    };
    const prototype = (name) => scope[name] && scope[name].prototype;

    // --------------------------------------------------------------------------------------------------------------- addresses

    const nativeBase = isWindow && Obj.getOwnPropertyDescriptor(scope.Node.prototype, "baseURI").get;

    /** The address in the past of an address here; others stay. */
    const unrewritten = (address) => {
      const text = String(address);
      return text.startsWith(prefix) ? text.replace(replayed, "") : text;
    };
    /** The same for all addresses in a text. */
    const unrewrittenIn = (text) => {
      if (typeof text !== "string") return text;
      const here = text.includes(prefix) ? text.replace(replayed, "") : text;
      return !here.includes("skep$") ? here : here.replace(/(?:\bwindow\.)?\bskep\$location\b/g, "location")
        .replace(/\bskep\$top\(([\w.]+)\)/g, "$1").replace(/\bskep\$post\(skep\$window\)\./g, "")
        .replace(/\bskep\$import\.bind\(null,""\)/g, "import").replace(/\bskep\$import\("[^"]*",/g, "import(");
    };

    const here = () => {
      const address = unrewritten(realLocation.href);
      return /^https?:/.test(address) && !address.startsWith(realOrigin) ? address : ownUrl;
    };
    const base = () => {
      if (!isWindow) return ownUrl;
      const address = unrewritten(nativeBase.call(doc));
      return /^https?:/.test(address) && !address.startsWith(realOrigin + "/") ? address : here();
    };
    const resolved = (address, against) => {
      try {
        return new NativeURL(address, against || base());
      } catch {
        return null;
      }
    };
    const origin = () => new NativeURL(here()).origin;

    /** The address here of an address in the past; others stay. */
    const rewritten = (address, modifier, against) => {
      const text = String(address).trim();
      if (!text || text[0] === "#" || text.startsWith(prefix) || /^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(text)) return address;
      const url = resolved(text, against);
      if (!url || !/^https?:$/.test(url.protocol)) return address;
      // Put together from where it really runs.
      if (url.href.startsWith(prefix)) return url.href;
      const href = url.origin === realOrigin ? origin() + url.href.slice(realOrigin.length) : url.href;
      return prefix + time + modifier + "/" + href;
    };

    const rewrittenSet = (set) =>
      String(set).replace(/(^|,)(\s*)([^\s,](?:\S*[^\s,])?)((?:\s[^,(]*(?:\([^)]*\)[^,(]*)*)?)/g,
        (_, comma, space, address, rest) => comma + space + rewritten(address, "im_") + rest);

    const rewrittenCss = (css) => {
      const text = String(css);
      if (!/url\(|@import/i.test(text)) return css;
      return text.replace(
        /\/\*[^]*?\*\/|(@import\s+)(?:url\(\s*)?(?:"([^"]*)"|'([^']*)'|([^\s;)"']+))(?:\s*\))?|\burl\(\s*(?:"([^"]*)"|'([^']*)'|([^)"']*?))\s*\)/gi,
        (all, imports, a, b, c, d, e, f) => {
          const address = imports ? a ?? b ?? c : d ?? e ?? f;
          const now = address === undefined ? address : rewritten(address, imports ? "cs_" : "im_");
          if (now === address) return all;
          const quoted = `"${now.replace(/["\\\n]/g, "\\$&")}"`;
          return imports ? imports + quoted : `url(${quoted})`;
        });
    };

    // Names after a dot, and on their own; strings, comments and regular expressions stay.
    const tokens =
      /\/\/[^\n]*|\/\*[^]*?\*\/|"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*'|`(?:\\[^]|[^`\\])*`|(?<=(?:^|[=(,:[!&|?{};\n]|\breturn)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\n\\])*\]|[^/\\\n[])+\/[a-z]*|[\w$]+/g;
    const rewrittenScript = (script, isHandler) => {
      const text = String(script);
      if (!/\blocation\b|\btop\b|postMessage|\bimport\b/.test(text)) return script;
      return text.replace(tokens, (token, at) => {
        if (token[0] === "`") {
          return token.replace(/\$\{([^{}`]*)\}/g, (_, inside) => "${" + rewrittenScript(inside) + "}");
        }
        const before = text.slice(Math.max(0, at - 40), at).trimEnd();
        const after = text.slice(at + token.length, at + token.length + 40).trimStart();
        const isMember = before.endsWith(".") && !before.endsWith("...");
        switch (token) {
          case "location":
            if (!isMember && /[{,]$/.test(before) && after[0] === ":") return token;
            // In a handler, a name on its own is looked for on the element first.
            return !isMember && after[0] === "(" ? token : isHandler && !isMember ? "window.skep$location" : "skep$location";
          case "postMessage":
            return isMember && after[0] === "(" ? "skep$post(skep$window).postMessage" : token;
          case "import":
            return !isMember && after[0] === "(" ? "skep$import.bind(null,\"\")" : token;
          case "top":
            if (isMember) return token;
            return after[0] === "." || /^[!=]=/.test(after) || /[!=]=$/.test(before) ? "skep$top(top)" : token;
        }
        return token;
      });
    };

    // ---------------------------------------------------------------------------------------------------------------- location

    /** The modifier under which this page was asked for, which those it leads to get too. */
    const pageModifier = () => {
      const found = realLocation.href.startsWith(prefix) && /^\d{1,14}([a-z]+_)/.exec(realLocation.href.slice(prefix.length));
      return found && (found[1] === "if_" || found[1] === "mp_") ? found[1] : isWindow && scope.parent !== scope ? "if_" : "mp_";
    };
    const go = (address, replaces) => {
      const text = String(address);
      if (/^\s*javascript:/i.test(text)) {
        realLocation.href = text;
        return;
      }
      const to = rewritten(text, pageModifier());
      if (replaces) realLocation.replace(to);
      else realLocation.href = to;
    };

    const past = Obj.create(scope.Location ? scope.Location.prototype : scope.WorkerLocation.prototype);
    for (const part of ["protocol", "host", "hostname", "port", "pathname", "search", "hash", "href", "origin"]) {
      define(past, part, {
        // An empty frame is where it is, and of the origin that made it.
        get: () => (part === "origin" ? origin() : new NativeURL(/^about:/.test(realLocation.href) ? realLocation.href : here())[part]),
        set: isWindow && part !== "origin" ? (value) => {
          if (part === "hash") {
            realLocation.hash = value;
          } else if (part === "href") {
            go(value, false);
          } else {
            const changed = new NativeURL(here());
            changed[part] = value;
            go(changed.href, false);
          }
        } : undefined,
      });
    }
    define(past, "toString", { value: () => past.href });
    if (isWindow) {
      define(past, "assign", { value: (address) => go(address, false) });
      define(past, "replace", { value: (address) => go(address, true) });
      define(past, "reload", { value: () => realLocation.reload() });
      define(past, "ancestorOrigins", { get: () => ({ length: 0, item: () => null, contains: () => false }) });
    }

    Obj.defineProperty(scope.Object.prototype, "skep$location", {
      configurable: true,
      get() {
        return this === scope || (isWindow && this === doc) ? past : this === null || this === undefined ? undefined : this.location;
      },
      set(value) {
        if (this === scope || (isWindow && this === doc)) go(value, false);
        else this.location = value;
      },
    });
    hidden(scope, "skep$window", scope);
    Obj.defineProperty(scope, "skep$origin", { configurable: true, get: origin });
    hidden(scope, "skep$go", go);
    if (Obj.getOwnPropertyDescriptor(scope, "origin")?.configurable) {
      define(scope, "origin", { get: origin, set() {} });
    }

    // ------------------------------------------------------------------------------------------------------------------ frames

    const realTop = isWindow && scope.top;
    const realParent = isWindow && scope.parent;
    /** A window that is a replay too; the frame around a replay is none of its business. */
    const asReplay = (other) => {
      try {
        return other && other.skep$window ? other : null;
      } catch {
        return null;
      }
    };
    const pastParent = () => (realParent !== scope && asReplay(realParent)) || scope;
    const pastTop = () => {
      let top = scope;
      for (let above = pastParent(); above !== top; above = above.parent) top = above;
      return top;
    };
    hidden(scope, "skep$top", (value) => (value === realTop ? pastTop() : value));

    if (isWindow) {
      define(scope, "parent", { get: pastParent, set(value) { define(scope, "parent", { value, writable: true }); } });
      accessor(scope, "frameElement", { get(native) { return pastParent() === scope ? null : native.call(scope); } });
      // An empty frame of the page's own has no script of ours in it.
      const reach = (child) => {
        try {
          if (child && !child.skep$window && child.document && !child.location.href.startsWith("http")) {
            install(child, { prefix, time, url: base() });
          }
        } catch {
          // Another origin; a policy of the page's own made it so.
        }
        return child;
      };
      for (const name of ["HTMLIFrameElement", "HTMLFrameElement", "HTMLObjectElement"]) {
        accessor(prototype(name), "contentWindow", { get(native) { return reach(native.call(this)); } });
        accessor(prototype(name), "contentDocument", {
          get(native) {
            const inner = native.call(this);
            if (inner && inner.defaultView) reach(inner.defaultView);
            return inner;
          },
        });
      }
      method(scope, "open", (native) => function (address, target, features) {
        const to = address === undefined || address === "" ? address : rewritten(address, "mp_");
        if (/^_(top|parent)$/i.test(target || "")) {
          const where = /top/i.test(target) ? pastTop() : pastParent();
          where.skep$go(address, false);
          return where;
        }
        const opened = native.call(scope, to, target, features);
        // The policy lets no script open a window; what a person asked for is shown in this one.
        if (!opened && to && scope.navigator.userActivation?.isActive) go(address, false);
        return opened && reach(opened);
      });
      tellFrame();
    }

    /** Tells the frame around which page this is. */
    function tellFrame() {
      if (pastParent() !== scope || realParent === scope) return;
      const tell = () => realParent.postMessage({ skep: "page", url: here(), time, title: doc.title }, "*");
      scope.addEventListener("DOMContentLoaded", tell);
      scope.addEventListener("load", tell);
      scope.addEventListener("hashchange", tell);
      scope.addEventListener("popstate", tell);
      hidden(scope, "skep$tell", tell);
    }

    // ---------------------------------------------------------------------------------------------------------------- messages

    const nativePost = scope.postMessage;
    /** Sends from this window to another, so that the browser names this one as its source. */
    hidden(scope, "skep$deliver", (target, message, to, transfer) => {
      let options = to !== null && typeof to === "object" ? { ...to } : { targetOrigin: to, transfer };
      const wanted = options.targetOrigin;
      if (wanted !== undefined && wanted !== "*" && wanted !== "/") {
        let targetOrigin;
        try {
          targetOrigin = target.skep$origin;
        } catch {
          // It hides, and gets what is for everybody.
        }
        const meant = resolved(wanted);
        if (!meant) throw new scope.DOMException(`Invalid target origin '${wanted}'`, "SyntaxError");
        if (targetOrigin !== undefined && targetOrigin !== meant.origin) return;
        options.targetOrigin = "*";
      }
      nativePost.call(target, message, options);
    });
    Obj.defineProperty(scope.Object.prototype, "skep$post", {
      configurable: true,
      writable: true,
      value(sender) {
        if (!isWindow || this !== scope) return this;
        const from = asReplay(sender) || scope;
        return { postMessage: (message, to, transfer) => from.skep$deliver(scope, message, to, transfer) };
      },
    });
    if (isWindow) {
      method(scope, "postMessage", () => (message, to, transfer) => scope.skep$deliver(scope, message, to, transfer));
      accessor(prototype("MessageEvent"), "origin", {
        get(native) {
          const real = native.call(this);
          const source = real === realOrigin && this.source;
          if (!source) return real;
          try {
            return source.skep$origin || real;
          } catch {
            return real;
          }
        },
      });
    }

    // ---------------------------------------------------------------------------------------------------------------- requests

    constructor("Request", ([input, init, ...rest]) => {
      const options = init && "integrity" in init ? { ...init, integrity: "" } : init;
      return [input instanceof scope.Request ? input : rewritten(input, "xr_"), options, ...rest];
    });
    method(scope, "fetch", (native) => function (input, init) {
      const options = init && "integrity" in init ? { ...init, integrity: "" } : init;
      return native.call(scope, input instanceof scope.Request ? input : rewritten(input, "xr_"), options);
    });
    for (const name of ["Request", "Response"]) {
      accessor(prototype(name), "url", { get(native) { return unrewritten(native.call(this)); } });
    }
    method(prototype("XMLHttpRequest"), "open", (native) => function (verb, address, ...rest) {
      return native.call(this, verb, rewritten(address, "xr_"), ...rest);
    });
    accessor(prototype("XMLHttpRequest"), "responseURL", { get(native) { return unrewritten(native.call(this)); } });
    accessor(prototype("PerformanceEntry"), "name", { get(native) { return unrewritten(native.call(this)); } });

    /** Something that connects, fails as if nobody were there. */
    const unreachable = (name, states, methods) => {
      if (!scope[name]) return;
      const made = class extends scope.EventTarget {
        constructor(address) {
          super();
          const url = resolved(address);
          if (!url) throw new scope.DOMException(`The URL '${address}' is invalid.`, "SyntaxError");
          this.url = url.href;
          this.readyState = 0;
          this.binaryType = "blob";
          this.protocol = this.extensions = "";
          this.bufferedAmount = 0;
          this.withCredentials = false;
          this.onopen = this.onmessage = this.onerror = this.onclose = null;
          scope.setTimeout(() => {
            this.readyState = states.indexOf("CLOSED");
            this.report(new scope.Event("error"));
            if (scope.CloseEvent && states.includes("CLOSING")) this.report(new scope.CloseEvent("close", { code: 1006 }));
          }, 0);
        }
        report(event) {
          this.dispatchEvent(event);
          const handler = this["on" + event.type];
          if (typeof handler === "function") handler.call(this, event);
        }
      };
      states.forEach((state, number) => {
        define(made, state, { value: number });
        define(made.prototype, state, { value: number });
      });
      methods.forEach((one) => hidden(made.prototype, one, function () {}));
      Obj.defineProperty(made, "name", { value: name });
      hidden(scope, name, made);
    };
    unreachable("WebSocket", ["CONNECTING", "OPEN", "CLOSING", "CLOSED"], ["send", "close"]);
    unreachable("EventSource", ["CONNECTING", "OPEN", "CLOSED"], ["close"]);
    for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport", "WebSocketStream", "RTCDataChannel"]) {
      if (!scope[name]) continue;
      const made = function () {
        throw new scope.DOMException("There is nobody to connect to in the past.", "NotSupportedError");
      };
      made.prototype = scope[name].prototype;
      hidden(scope, name, made);
    }
    method(prototype("Navigator"), "sendBeacon", () => () => true);
    method(prototype("Navigator"), "registerProtocolHandler", () => () => undefined);

    // ----------------------------------------------------------------------------------------------------------------- workers

    const blobs = new Map();
    method(NativeURL, "createObjectURL", (native) => (object) => {
      const address = native.call(NativeURL, object);
      // A worker may be made of it, also after it is revoked.
      if (object instanceof scope.Blob && object.size < 1 << 22) {
        blobs.set(address, object);
        if (blobs.size > 256) blobs.delete(blobs.keys().next().value);
      }
      return address;
    });
    const nativeObjectUrl = (parts) =>
      NativeURL.createObjectURL(new scope.Blob(parts, { type: "text/javascript" }));
    const dataText = (address) => {
      const [, isBase64, text] = /^data:[^,]*?(;base64)?,([^]*)$/i.exec(address) || [];
      return text === undefined ? "" : isBase64 ? scope.atob(decodeURIComponent(text)) : decodeURIComponent(text);
    };
    const workerAddress = (address, options) => {
      const isModule = options && options.type === "module";
      const text = String(address);
      const source = blobs.get(text) || (/^data:/i.test(text) ? dataText(text) : null);
      if (source === null) return rewritten(text, isModule ? "wkm_" : "wkr_");
      const told = `self.skep$settings=${JSON.stringify({ prefix, time, url: base() })};`;
      if (!isModule) return nativeObjectUrl([`${told}importScripts(${JSON.stringify(ours)});`, source]);
      return nativeObjectUrl([`import ${JSON.stringify(nativeObjectUrl([told]))};import ${JSON.stringify(ours)};`, source]);
    };
    for (const name of ["Worker", "SharedWorker"]) {
      constructor(name, ([address, options, ...rest]) => [workerAddress(address, options), options, ...rest]);
    }
    method(scope, "importScripts", (native) => (...addresses) =>
      native.apply(scope, addresses.map((address) => rewritten(address, "js_"))));
    method(prototype("Worklet"), "addModule", (native) => function (address, options) {
      return native.call(this, rewritten(address, "esm_"), options);
    });
    // Bare names are for the import map.
    hidden(scope, "skep$import", (from, name, options) => {
      const text = String(name);
      const address = /^(\.{0,2}\/|https?:)/.test(text) ? rewritten(text, "esm_", from || undefined) : text;
      return options === undefined ? import(address) : import(address, options);
    });

    const workers = new scope.EventTarget();
    Obj.assign(workers, {
      controller: null,
      ready: new Promise(() => {}),
      register: () => Promise.reject(new scope.DOMException("A page of the past has no service worker.", "SecurityError")),
      getRegistration: () => Promise.resolve(undefined),
      getRegistrations: () => Promise.resolve([]),
      startMessages() {},
    });
    accessor(prototype("Navigator") || prototype("WorkerNavigator"), "serviceWorker", { get: () => workers });

    // ----------------------------------------------------------------------------------------------------------------- storage

    const own = `skep ${origin()} `;
    let session = null;
    const storage = (native) => new Prox(Obj.create(scope.Storage.prototype), {
      get(_, name) {
        const keys = () => Obj.keys(native).filter((key) => key.startsWith(own));
        switch (name) {
          case "length": return keys().length;
          case "key": return (number) => { const key = keys()[number]; return key === undefined ? null : key.slice(own.length); };
          case "getItem": return (key) => native.getItem(own + key);
          case "setItem": return (key, value) => native.setItem(own + key, value);
          case "removeItem": return (key) => native.removeItem(own + key);
          case "clear": return () => keys().forEach((key) => native.removeItem(key));
        }
        if (typeof name === "symbol") return Ref.get(scope.Storage.prototype, name);
        const value = native.getItem(own + name);
        return value === null ? scope.Object.prototype[name] : value;
      },
      set(_, name, value) { native.setItem(own + String(name), value); return true; },
      has(_, name) { return typeof name === "string" && native.getItem(own + name) !== null; },
      deleteProperty(_, name) { native.removeItem(own + String(name)); return true; },
      ownKeys() { return Obj.keys(native).filter((key) => key.startsWith(own)).map((key) => key.slice(own.length)); },
      getOwnPropertyDescriptor(_, name) {
        const value = typeof name === "string" ? native.getItem(own + name) : null;
        return value === null ? undefined : { value, writable: true, enumerable: true, configurable: true };
      },
    });
    for (const name of ["localStorage", "sessionStorage"]) {
      let native;
      try {
        native = scope[name];
      } catch {
        // A page inside a sandbox has none.
      }
      if (native) define(scope, name, { value: storage(native), enumerable: true });
      if (name === "sessionStorage") session = native;
    }
    accessor(prototype("StorageEvent"), "key", {
      get(native) { const key = native.call(this); return key && key.startsWith(own) ? key.slice(own.length) : key; },
    });
    for (const name of ["open", "deleteDatabase"]) {
      method(prototype("IDBFactory"), name, (native) => function (database, ...rest) { return native.call(this, own + database, ...rest); });
    }
    method(prototype("IDBFactory"), "databases", (native) => function () {
      return native.call(this).then((all) => all.filter((one) => one.name.startsWith(own))
        .map((one) => ({ ...one, name: one.name.slice(own.length) })));
    });
    accessor(prototype("IDBDatabase"), "name", { get(native) { return native.call(this).replace(own, ""); } });
    for (const name of ["open", "has", "delete"]) {
      method(prototype("CacheStorage"), name, (native) => function (cache) { return native.call(this, own + cache); });
    }
    method(prototype("CacheStorage"), "keys", (native) => function () {
      return native.call(this).then((all) => all.filter((one) => one.startsWith(own)).map((one) => one.slice(own.length)));
    });
    constructor("BroadcastChannel", ([name]) => [own + name]);
    if ("cookieStore" in scope) define(scope, "cookieStore", { value: undefined });

    // ------------------------------------------------------------------------------------------------------------------- clock

    // It goes on from the time of the capture, and chance is the same each time: a page shown twice is the same page.
    const moment = Date.UTC(+time.slice(0, 4), (+time.slice(4, 6) || 1) - 1, +time.slice(6, 8) || 1,
      +time.slice(8, 10), +time.slice(10, 12), +time.slice(12, 14));
    const NativeDate = scope.Date;
    const nativeNow = NativeDate.now;
    const begun = nativeNow();
    const now = () => moment + (nativeNow() - begun);
    const PastDate = new Prox(NativeDate, {
      construct: (target, args, by) => Ref.construct(target, args.length ? args : [now()], by === PastDate ? target : by),
      apply: () => new NativeDate(now()).toString(),
      get: (target, name) => (name === "now" ? now : Ref.get(target, name)),
    });
    hidden(NativeDate.prototype, "constructor", PastDate);
    hidden(scope, "Date", PastDate);
    let chance = [...(time + ownUrl)].reduce((sum, sign) => (Math.imul(sum, 31) + sign.charCodeAt(0)) | 0, 7);
    scope.Math.random = function random() {
      chance = (chance + 0x6d2b79f5) | 0;
      let mixed = Math.imul(chance ^ (chance >>> 15), 1 | chance);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };

    for (const name of ["setTimeout", "setInterval"]) {
      method(scope, name, (native) => (handler, ...rest) =>
        native.call(scope, typeof handler === "string" ? rewrittenScript(handler) : handler, ...rest));
    }

    if (isWindow) documents();

    // --------------------------------------------------------------------------------------------------------------- documents

    function documents() {
      const html = "http://www.w3.org/1999/xhtml";
      const native = {
        getAttribute: scope.Element.prototype.getAttribute,
        setAttribute: scope.Element.prototype.setAttribute,
        removeAttribute: scope.Element.prototype.removeAttribute,
        destination: prototype("NavigationDestination") && Obj.getOwnPropertyDescriptor(scope.NavigationDestination.prototype, "url").get,
      };
      const isModule = (script) => /^\s*module\s*$/i.test(native.getAttribute.call(script, "type") || "");

      /** What `link` leads to; null: it must not. */
      const related = (rel, as) => {
        const has = (word) => rel.toLowerCase().split(/\s+/).includes(word);
        if (has("preconnect") || has("dns-prefetch") || has("prerender")) return null;
        if (has("stylesheet")) return "cs_";
        if (has("modulepreload")) return "esm_";
        if (has("preload") || has("prefetch")) {
          return { script: "js_", style: "cs_", worker: "wkr_", fetch: "xr_", document: "if_" }[as.toLowerCase()] || "im_";
        }
        return has("icon") || has("apple-touch-icon") ? "im_" : "mp_";
      };

      /**
       * The value that an attribute gets here; null: none. `other` reads the other attributes of the element.
       * The element is given by its name in lower case, with `svg:` in front of those of drawings.
       */
      const attribute = (element, name, value, other) => {
        if (value === null || value === undefined) return value;
        const drawn = element.startsWith("svg:");
        switch (name) {
          case "href":
          case "xlink:href":
            if (element === "a" || element === "area" || element === "base" || element === "svg:a") return link(value, "mp_");
            if (element === "link") {
              const modifier = related(other("rel") || "", other("as") || "");
              return modifier === null ? null : rewritten(value, modifier);
            }
            return drawn ? rewritten(value, element === "svg:script" ? "js_" : "im_") : value;
          case "src":
            switch (element) {
              case "script": return rewritten(value, /^\s*module\s*$/i.test(other("type") || "") ? "esm_" : "js_");
              case "iframe": case "frame": case "embed": return link(value, "if_");
              case "img": case "input": case "audio": case "video": case "source": case "track": case "bgsound":
                return rewritten(value, "im_");
            }
            return value;
          case "srcset": case "imagesrcset": return rewrittenSet(value);
          case "style": return rewrittenCss(value);
          case "background": case "poster": return rewritten(value, "im_");
          case "data": return element === "object" ? link(value, "if_") : value;
          case "action": return element === "form" ? link(value, "mp_") : value;
          case "formaction": return link(value, "mp_");
          case "srcdoc": return element === "iframe" ? rewrittenMarkup(value, true) : value;
          case "content":
            if (element === "meta" && /^\s*refresh\s*$/i.test(other("http-equiv") || "")) {
              return String(value).replace(/^(\s*[\d.]+\s*[;,]?\s*(?:url\s*=\s*)?["']?)([^"']+)/i, (_, start, address) => start + rewritten(address, "mp_"));
            }
            return element === "meta" && /content-security-policy/i.test(other("http-equiv") || "") ? null : value;
          case "integrity": return element === "script" || element === "link" ? null : value;
          case "ping": case "attributionsrc": return null;
        }
        return /^on[a-z]{3,}$/.test(name) ? rewrittenScript(value, true) : value;
      };
      const link = (value, modifier) => {
        const script = /^(\s*javascript:)([^]*)$/i.exec(String(value));
        return script ? script[1] + rewrittenScript(script[2]) : rewritten(value, modifier);
      };

      // What scripts wrote, by what became of it: they read it as they wrote it.
      const written = new Map();
      const remember = (now, value) => {
        if (now === value || typeof now !== "string" || written.has(now)) return;
        written.set(now, value);
        if (written.size > 4096) written.delete(written.keys().next().value);
      };
      const asWritten = (value) =>
        (typeof value === "string" && (value.includes(prefix) || value.includes("skep$")) ? written.get(value) ?? unrewrittenIn(value) : value);
      const kindOf = (element) => (element.namespaceURI === html ? "" : "svg:") + element.localName;
      const changed = (element, name, value) => {
        const now = attribute(kindOf(element), name, value, (other) => native.getAttribute.call(element, other));
        remember(now, value);
        return now;
      };

      // Markup in texts, whole or in part. Entities are replaced as far as addresses have them.
      const unescaped = (text) => text.replace(/&(?:amp|quot|apos|lt|gt|#39|#x27|#34);?/gi, (one) =>
        ({ "&amp": "&", "&quot": '"', "&apos": "'", "&lt": "<", "&gt": ">", "&#39": "'", "&#x27": "'", "&#34": '"' })[one.replace(";", "").toLowerCase()]);
      const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
      const attributes = /(\s+|\/)([^\s"'<>/=]+)(?:(\s*=\s*)(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g;
      const rewrittenTag = (name, text, inSvg) => {
        const found = {};
        text.replace(attributes, (_, _space, key, _is, a, b, c) => {
          found[key.toLowerCase()] ??= unescaped(a ?? b ?? c ?? "");
        });
        const kind = (inSvg && name !== "svg" ? "svg:" : "") + name;
        return text.replace(attributes, (all, space, key, is, a, b, c) => {
          if (is === undefined) return all;
          const value = unescaped(a ?? b ?? c);
          const lower = key.toLowerCase();
          const now = attribute(kind, lower, value, (other) => found[other]);
          remember(now, value);
          return now === value ? all : now === null ? space : `${space}${key}="${escaped(now)}"`;
        });
      };
      const markup = /<!--[^]*?-->|<(style|script|textarea|title|xmp)\b((?:[^>"']|"[^"]*"|'[^']*')*)>([^]*?)(?=<\/\1|$)|<(\/?)([a-z][^\s/>]*)((?:[^>"']|"[^"]*"|'[^']*')*)>/gi;
      function rewrittenMarkup(text, isPage) {
        const all = String(text);
        if (!all.includes("<")) return text;
        let inSvg = false;
        const out = all.replace(markup, (whole, raw, rawAttributes, content, closes, name, rest) => {
          if (raw) {
            const lower = raw.toLowerCase();
            const tag = `<${raw}${rewrittenTag(lower, rawAttributes, false)}>`;
            if (lower === "style") return tag + rewrittenCss(content);
            const type = /\btype\s*=\s*["']?([^\s"'>]*)/i.exec(rawAttributes);
            const isScript = lower === "script" && (!type || !type[1] || /^module$|script/i.test(type[1]));
            return tag + (isScript ? rewrittenScript(content) : content);
          }
          if (!name) return whole;
          const lower = name.toLowerCase();
          if (lower === "svg") inSvg = !closes;
          return closes ? whole : `<${name}${rewrittenTag(lower, rest, inSvg)}>`;
        });
        if (!isPage) return out;
        const told = [["src", ours], ["data-skep-prefix", prefix], ["data-skep-time", time], ["data-skep-url", base()]];
        return `<script ${told.map(([key, value]) => `${key}="${escaped(value)}"`).join(" ")}></script>${out}`;
      }

      // What a script sets and reads as a property.
      const addresses = {
        HTMLImageElement: ["src", "lowsrc"], HTMLScriptElement: ["src"], HTMLLinkElement: ["href"], HTMLBaseElement: ["href"],
        HTMLAnchorElement: ["href"], HTMLAreaElement: ["href"], HTMLIFrameElement: ["src"], HTMLFrameElement: ["src"],
        HTMLEmbedElement: ["src"], HTMLObjectElement: ["data"], HTMLMediaElement: ["src"], HTMLVideoElement: ["poster"],
        HTMLSourceElement: ["src"], HTMLTrackElement: ["src"], HTMLInputElement: ["src", "formAction"],
        HTMLButtonElement: ["formAction"], HTMLFormElement: ["action"], HTMLBodyElement: ["background"],
      };
      for (const [name, properties] of Obj.entries(addresses)) {
        for (const property of properties) {
          const attributeName = property.toLowerCase();
          accessor(prototype(name), property, {
            get(read) { const value = read.call(this); return typeof value === "string" ? unrewritten(value) : value; },
            set(value, write) {
              const now = changed(this, attributeName, String(value));
              if (now !== null) write.call(this, now);
            },
          });
        }
      }
      for (const [name, property] of [["HTMLImageElement", "srcset"], ["HTMLSourceElement", "srcset"], ["HTMLLinkElement", "imageSrcset"]]) {
        accessor(prototype(name), property, {
          get(read) { return unrewrittenIn(read.call(this)); },
          set(value, write) { write.call(this, rewrittenSet(value)); },
        });
      }
      // Which attribute of a drawing it is, it does not say: only what is surely an address is led.
      accessor(prototype("SVGAnimatedString"), "baseVal", {
        get(read) { return unrewrittenIn(read.call(this)); },
        set(value, write) { write.call(this, /^https?:\/\//.test(value) ? rewritten(value, "im_") : value); },
      });
      for (const name of ["HTMLScriptElement", "HTMLLinkElement"]) {
        accessor(prototype(name), "integrity", { set() {} });
      }
      // The modifier of an address hangs on attributes that may be set after it.
      for (const [name, property, address] of [["HTMLLinkElement", "rel", "href"], ["HTMLLinkElement", "as", "href"], ["HTMLScriptElement", "type", "src"]]) {
        accessor(prototype(name), property, { set(value, write) { write.call(this, value); renew(this, address); } });
      }
      const renew = (element, name) => {
        const value = native.getAttribute.call(element, name);
        if (!value) return;
        const now = changed(element, name, unrewritten(value));
        if (now === null) native.removeAttribute.call(element, name);
        else if (now !== value) native.setAttribute.call(element, name, now);
      };
      for (const [name, property] of [["HTMLImageElement", "currentSrc"], ["HTMLMediaElement", "currentSrc"], ["StyleSheet", "href"], ["CSSImportRule", "href"], ["HashChangeEvent", "newURL"], ["HashChangeEvent", "oldURL"], ["NavigationHistoryEntry", "url"], ["NavigationDestination", "url"], ["Node", "baseURI"], ["Document", "URL"], ["Document", "documentURI"]]) {
        accessor(prototype(name), property, {
          get(read) { const value = read.call(this); return typeof value === "string" ? unrewritten(value) : value; },
        });
      }
      accessor(prototype("Document"), "referrer", {
        get(read) { const from = unrewritten(read.call(this)); return from.startsWith(realOrigin) ? "" : from; },
      });
      for (const name of ["HTMLAnchorElement", "HTMLAreaElement"]) {
        for (const part of ["protocol", "host", "hostname", "port", "pathname", "search", "hash", "origin", "username", "password"]) {
          accessor(prototype(name), part, {
            get(read) {
              const url = /^https?:/.test(this.href) && resolved(this.href);
              return url ? url[part] : read.call(this);
            },
            set(value, write) {
              const url = part !== "hash" && /^https?:/.test(this.href) && resolved(this.href);
              if (!url) return write.call(this, value);
              url[part] = value;
              this.href = url.href;
            },
          });
        }
        method(prototype(name), "toString", () => function () { return this.href; });
      }

      const concerned = new Set(["href", "xlink:href", "src", "srcset", "imagesrcset", "style", "background", "poster", "data", "action",
        "formaction", "srcdoc", "content", "integrity", "ping", "attributionsrc"]);
      const put = (element, name, value, write) => {
        const lower = String(name).toLowerCase();
        if (!concerned.has(lower) && !lower.startsWith("on")) {
          write(value);
          if (lower === "rel" || lower === "as") renew(element, "href");
          if (lower === "type" && element.localName === "script") renew(element, "src");
          return;
        }
        const now = changed(element, lower, String(value));
        if (now !== null) write(now);
      };
      method(scope.Element.prototype, "setAttribute", (write) => function (name, value) {
        put(this, name, value, (now) => write.call(this, name, now));
      });
      method(scope.Element.prototype, "setAttributeNS", (write) => function (space, name, value) {
        put(this, name, value, (now) => write.call(this, space, name, now));
      });
      method(scope.Element.prototype, "getAttribute", (read) => function (name) { return asWritten(read.call(this, name)); });
      method(scope.Element.prototype, "getAttributeNS", (read) => function (space, name) { return asWritten(read.call(this, space, name)); });
      for (const name of ["setAttributeNode", "setAttributeNodeNS"]) {
        method(scope.Element.prototype, name, (write) => function (node) {
          put(this, node.name, node.value, (now) => { node.value = now; });
          return write.call(this, node);
        });
      }
      for (const [owner, property] of [["Attr", "value"], ["Attr", "nodeValue"], ["Attr", "textContent"]]) {
        accessor(prototype(owner), property, {
          get(read) { return asWritten(read.call(this)); },
          set(value, write) {
            if (this.ownerElement) put(this.ownerElement, this.name, value, (now) => write.call(this, now));
            else write.call(this, value);
          },
        });
      }

      // What a script sets as markup or text.
      const contentOf = (element, value, otherwise) => {
        if (element.localName === "style") return rewrittenCss(value);
        if (element.localName === "script") return isScriptText(element) ? rewrittenScript(value) : value;
        return otherwise(value);
      };
      const isScriptText = (script) => {
        const type = (native.getAttribute.call(script, "type") || "").trim().toLowerCase();
        return !type || type === "module" || /(java|ecma|j|live)script/.test(type);
      };
      for (const owner of [prototype("Element"), prototype("ShadowRoot")]) {
        accessor(owner, "innerHTML", {
          get(read) { return unrewrittenIn(read.call(this)); },
          set(value, write) { write.call(this, contentOf(this, value === null ? "" : value, rewrittenMarkup)); },
        });
        for (const name of ["setHTMLUnsafe", "setHTML"]) {
          method(owner, name, (write) => function (value, ...rest) { return write.call(this, rewrittenMarkup(value), ...rest); });
        }
      }
      accessor(prototype("Element"), "outerHTML", {
        get(read) { return unrewrittenIn(read.call(this)); },
        set(value, write) { write.call(this, rewrittenMarkup(value)); },
      });
      method(prototype("XMLSerializer"), "serializeToString", (read) => function (node) { return unrewrittenIn(read.call(this, node)); });
      method(prototype("Element"), "insertAdjacentHTML", (write) => function (where, text) {
        return write.call(this, where, rewrittenMarkup(text));
      });
      method(prototype("Range"), "createContextualFragment", (make) => function (text) { return make.call(this, rewrittenMarkup(text)); });
      for (const name of ["write", "writeln"]) {
        method(prototype("Document"), name, (write) => function (...texts) {
          return write.call(this, rewrittenMarkup(texts.join("")));
        });
      }
      for (const [owner, property] of [["Node", "textContent"], ["HTMLElement", "innerText"], ["HTMLScriptElement", "text"]]) {
        accessor(prototype(owner), property, {
          get(read) {
            const text = read.call(this);
            return this.localName === "style" || this.localName === "script" ? unrewrittenIn(text) : text;
          },
          set(value, write) { write.call(this, value === null ? value : contentOf(this, value, (text) => text)); },
        });
      }
      accessor(prototype("HTMLIFrameElement"), "srcdoc", {
        get(read) { return unrewrittenIn(read.call(this)); },
        set(value, write) { write.call(this, rewrittenMarkup(value, true)); },
      });

      // Style sheets.
      for (const name of ["insertRule", "addRule", "replace", "replaceSync"]) {
        method(prototype("CSSStyleSheet"), name, (write) => function (text, ...rest) { return write.call(this, rewrittenCss(text), ...rest); });
      }
      for (const owner of ["CSSGroupingRule", "CSSStyleRule"]) {
        method(prototype(owner), "insertRule", (write) => function (text, ...rest) { return write.call(this, rewrittenCss(text), ...rest); });
      }
      method(prototype("CSSStyleDeclaration"), "setProperty", (write) => function (name, value, ...rest) {
        return write.call(this, name, rewrittenCss(value), ...rest);
      });
      for (const name of Obj.getOwnPropertyNames(prototype("CSSStyleDeclaration"))) {
        if (!/cssText|background|image|cursor|content|mask|filter|source|clip|shape|src/i.test(name)) continue;
        accessor(prototype("CSSStyleDeclaration"), name, { set(value, write) { write.call(this, rewrittenCss(value)); } });
      }
      accessor(prototype("HTMLElement"), "style", { set(value, write) { write.call(this, rewrittenCss(value)); } });
      constructor("FontFace", ([family, source, ...rest]) => [family, typeof source === "string" ? rewrittenCss(source) : source, ...rest]);
      constructor("Audio", (args) => (args.length ? [rewritten(args[0], "im_")] : args));

      // What a script puts into the page was made elsewhere, perhaps: by a parser of its own, or in an empty frame.
      const mended = new WeakSet();
      const mend = (element) => {
        for (const { name } of [...element.attributes]) {
          if (!concerned.has(name) && !name.startsWith("on")) continue;
          const value = native.getAttribute.call(element, name);
          const now = changed(element, name, value);
          if (now === null) native.removeAttribute.call(element, name);
          else if (now !== value) native.setAttribute.call(element, name, now);
        }
        if ((element.localName === "script" || element.localName === "style") && !mended.has(element) && !element.isConnected) {
          mended.add(element);
          for (const child of element.childNodes) {
            if (child.nodeType === 3) child.data = contentOf(element, child.data, (text) => text);
          }
        }
      };
      const selector = "[href],[src],[srcset],[imagesrcset],[style],[background],[poster],[data],[action],[formaction],[ping],[integrity],script,style,meta[http-equiv],iframe[srcdoc],use,image,a,feImage";
      const nativeAll = { Element: scope.Element.prototype.querySelectorAll, DocumentFragment: scope.DocumentFragment.prototype.querySelectorAll };
      const prepare = (node, parent) => {
        if (!node || typeof node !== "object") return node;
        if (node.nodeType === 3) {
          if (parent && parent.localName === "style") node.data = rewrittenCss(node.data);
          else if (parent && parent.localName === "script" && isScriptText(parent)) node.data = rewrittenScript(node.data);
        } else if (node.nodeType === 1 || node.nodeType === 11) {
          if (node.nodeType === 1) mend(node);
          if (node.firstElementChild) {
            for (const inner of (node.nodeType === 1 ? nativeAll.Element : nativeAll.DocumentFragment).call(node, selector)) mend(inner);
          }
        }
        return node;
      };
      for (const name of ["appendChild", "insertBefore", "replaceChild"]) {
        method(scope.Node.prototype, name, (write) => function (node, ...rest) {
          prepare(node, this);
          const result = write.call(this, node, ...rest);
          return result;
        });
      }
      const isText = (node) => typeof node === "string";
      for (const owner of ["Element", "Document", "DocumentFragment", "CharacterData"]) {
        for (const name of ["append", "prepend", "before", "after", "replaceWith", "replaceChildren"]) {
          method(prototype(owner), name, (write) => function (...nodes) {
            const parent = name === "append" || name === "prepend" || name === "replaceChildren" ? this : this.parentNode;
            return write.apply(this, nodes.map((node) =>
              isText(node) ? (parent && parent.localName === "style" ? rewrittenCss(node) : node) : prepare(node, parent)));
          });
        }
      }
      method(prototype("Element"), "insertAdjacentElement", (write) => function (where, node) { return write.call(this, where, prepare(node)); });

      // What no setter sees: styles by property, and what a parser of the browser's made.
      const observer = new scope.MutationObserver((records) => {
        for (const { type, target, attributeName, addedNodes } of records) {
          if (type === "attributes") {
            const value = native.getAttribute.call(target, attributeName);
            const now = value === null ? null : changed(target, attributeName, value);
            if (value !== null && now !== null && now !== value) native.setAttribute.call(target, attributeName, now);
          } else {
            for (const node of addedNodes) if (node.nodeType === 1) prepare(node);
          }
        }
      });
      const watch = (root) => observer.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ["style", "src", "href", "srcset", "action"] });
      watch(doc);
      method(prototype("Element"), "attachShadow", (make) => function (...rest) {
        const root = make.apply(this, rest);
        watch(root);
        return root;
      });

      // ------------------------------------------------------------------------------------------------------------- history

      for (const name of ["pushState", "replaceState"]) {
        method(prototype("History"), name, (write) => function (state, title, address) {
          if (address === undefined || address === null) {
            write.call(this, state, title);
          } else {
            const url = resolved(unrewritten(address));
            const meant = url && url.origin === realOrigin ? resolved(url.href.slice(realOrigin.length), here()) : url;
            if (!meant || meant.origin !== origin()) {
              throw new scope.DOMException(`A history state object with URL '${address}' cannot be created in a document with origin '${origin()}'.`, "SecurityError");
            }
            if (/^https?:/.test(realLocation.protocol)) write.call(this, state, title, prefix + time + pageModifier() + "/" + meant.href);
            else write.call(this, state, title);
          }
          if (scope.skep$tell) scope.skep$tell();
        });
      }
      method(prototype("Navigation"), "navigate", (write) => function (address, ...rest) {
        return write.call(this, rewritten(address, pageModifier()), ...rest);
      });
      // The last gate: whatever still leads away from the archive is led back.
      if (scope.navigation && native.destination) {
        scope.navigation.addEventListener("navigate", (event) => {
          const to = native.destination.call(event.destination);
          if (!/^https?:/.test(to) || to.startsWith(prefix) || event.hashChange || !event.cancelable) return;
          event.preventDefault();
          if (!event.formData) scope.setTimeout(() => go(to, event.navigationType === "replace"), 0);
        });
      }
      /** The window that a target means, where the browser would find another or none: there are no new windows. */
      const targetOf = (named) => {
        const name = named || doc.querySelector("base[target]")?.target || "";
        if (name === "" || /^_self$/i.test(name)) return null;
        if (/^_top$/i.test(name)) return pastTop();
        if (/^_parent$/i.test(name)) return pastParent();
        const isFrame = (inside) => {
          for (let number = 0; number < inside.length; number++) {
            try {
              if (inside[number].name === name || isFrame(inside[number])) return true;
            } catch {
              // One that hides has no name here.
            }
          }
          return false;
        };
        return name !== "_blank" && (scope.name === name || isFrame(pastTop())) ? null : scope;
      };
      scope.addEventListener("click", (event) => {
        const anchor = event.composedPath().find((node) => node.nodeType === 1 && (node.localName === "a" || node.localName === "area"));
        if (!anchor || event.defaultPrevented) return;
        const value = native.getAttribute.call(anchor, "href");
        if (value === null) return;
        const now = changed(anchor, "href", value);
        if (now !== value && now !== null) native.setAttribute.call(anchor, "href", now);
        const target = targetOf(native.getAttribute.call(anchor, "target"));
        if (target && /^https?:/.test(anchor.href) && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
          event.preventDefault();
          target.skep$go(anchor.href, false);
        }
      });
      const settle = (form) => {
        const value = native.getAttribute.call(form, "action");
        const now = changed(form, "action", value);
        if (value !== null && now !== value) native.setAttribute.call(form, "action", now);
        if (targetOf(native.getAttribute.call(form, "target")) === scope) form.target = "_self";
      };
      scope.addEventListener("submit", (event) => settle(event.target));
      for (const name of ["submit", "requestSubmit"]) {
        method(prototype("HTMLFormElement"), name, (write) => function (...rest) {
          settle(this);
          return write.apply(this, rest);
        });
      }

      // ------------------------------------------------------------------------------------------------------------- cookies

      let domain = null;
      accessor(prototype("Document"), "domain", {
        get: () => domain || new NativeURL(here()).hostname,
        set(value) { domain = String(value); },
      });
      const hosts = () => {
        const parts = new NativeURL(here()).hostname.split(".");
        return parts.map((_, at) => parts.slice(at).join("."));
      };
      // For as long as the window is open, as { host: { name: [value, until] } }.
      const jar = { kept: null };
      const cookies = () => {
        try {
          jar.kept = JSON.parse(session.getItem("skep cookies")) || {};
        } catch {
          jar.kept ??= {};
        }
        return jar.kept;
      };
      const keep = () => {
        try {
          session.setItem("skep cookies", JSON.stringify(jar.kept));
        } catch {
          // They last as long as the page, then.
        }
      };
      const forever = 8.64e15;
      accessor(prototype("Document"), "cookie", {
        get() {
          const found = new Map();
          const all = cookies();
          for (const host of hosts().reverse()) {
            for (const [name, [value, until]] of Obj.entries(all[host] || {})) {
              if (until > now()) found.set(name, value);
            }
          }
          return [...found].map(([name, value]) => (name ? `${name}=${value}` : value)).join("; ");
        },
        set(text) {
          const [pair, ...parts] = String(text).split(";");
          const at = pair.indexOf("=");
          const name = at < 0 ? "" : pair.slice(0, at).trim();
          const value = pair.slice(at + 1).trim();
          let host = hosts()[0];
          let until = forever;
          for (const part of parts) {
            const [key, given = ""] = part.split("=").map((one) => one.trim());
            const lower = key.toLowerCase();
            if (lower === "domain") host = given.replace(/^\./, "").toLowerCase();
            if (lower === "expires" && until === forever) until = NativeDate.parse(given) || forever;
            if (lower === "max-age") until = now() + Number(given) * 1000;
          }
          if (!hosts().includes(host)) return;
          const own = (cookies()[host] ??= {});
          delete own[name];
          if (until > now() && Obj.keys(own).length < 180) own[name] = [value, until];
          keep();
        },
      });
    }
  }

  const found = settings(self);
  if (found) install(self, found);
})();
