// SPDX-License-Identifier: Apache-2.0
// Live updates and the keyboard. The page works without it.
"use strict";
(() => {
  const main = document.getElementById("main");
  const lamp = document.getElementById("live");
  const leastPause = Number(main.dataset.pause) || 2000; // milliseconds between two readings of this page

  // put shows a reading of this page in place of the last one.
  let reading = false, again = false, last = 0, tag = "";
  async function read() {
    const active = document.activeElement;
    if (reading || document.hidden || (main.contains(active) && active.matches("input, textarea, select"))) { again = true; return; }
    const wait = last + leastPause - Date.now();
    if (wait > 0) { if (!again) { again = true; setTimeout(() => { again = false; read(); }, wait); } return; }
    reading = true; last = Date.now(); again = false;
    try {
      const headers = { "X-Fragment": "1" };
      if (tag) { headers["If-None-Match"] = tag; }
      const answer = await fetch(location.href, { headers });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag") || "";
        const at = active && main.contains(active) ? active.getAttribute("href") : null;
        const text = await answer.text();
        const next = new DOMParser().parseFromString(text, "text/html");
        main.replaceChildren(...next.body.childNodes);
        if (at) { const same = [...main.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === at); if (same) { same.focus({ preventScroll: true }); } }
      }
    } catch { /* the server is gone: the lamp says so */ } finally { reading = false; }
    if (again) { again = false; read(); }
  }

  // patch shows a change of nodes where they are drawn.
  const tones = ["good", "bad", "warn", "active", "idle"];
  function patch(change) {
    if (change.all) { read(); return; }
    let missing = false;
    for (const n of change.nodes || []) {
      const drawn = main.querySelectorAll(`[data-node="${CSS.escape(n.name)}"]`);
      if (drawn.length === 0) { missing = true; }
      for (const e of drawn) {
        e.classList.remove(...tones, "changed");
        e.classList.add(n.tone);
        void e.getBoundingClientRect();
        e.classList.add("changed");
        e.setAttribute("aria-label", `${n.name}: ${n.state}: ${n.text}`);
        for (const [name, text] of [["mark", n.mark], ["text", n.text], ["state", n.state]]) {
          const part = e.querySelector(`[data-part="${name}"]`);
          if (part) { part.textContent = name === "text" ? text.slice(0, Number(part.dataset.most) || 400) : text; }
        }
      }
    }
    if (missing || main.dataset.live === "page") { read(); return; }
    if (change.counts) { read(); }
  }

  if (main.dataset.live && window.EventSource) {
    const source = new EventSource("/api/v1/live");
    let before = false;
    source.addEventListener("open", () => { if (before) { read(); } before = true; lamp.classList.add("on"); lamp.textContent = "live"; });
    source.addEventListener("error", () => { lamp.classList.remove("on"); lamp.textContent = "not live"; });
    source.addEventListener("reading", (e) => { // what has changed between this page and its stream is in no change
      if (main.dataset.generation && main.dataset.generation !== String(JSON.parse(e.data).generation)) { read(); }
      main.dataset.generation = ""; // after a stream that was lost the page is read in any case
    });
    source.addEventListener("change", (e) => { patch(JSON.parse(e.data)); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && again) { again = false; read(); } });
    main.addEventListener("focusout", () => { if (again) { again = false; setTimeout(read, 100); } });
  }

  // The keyboard: / searches, j and k walk, ? helps.
  const help = document.getElementById("help");
  function walk(step) {
    const all = [...main.querySelectorAll(".go")];
    if (all.length === 0) { return; }
    const at = all.indexOf(document.activeElement);
    const to = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
    to.focus();
    to.scrollIntoView({ block: "nearest" });
  }
  const pages = { o: "/", n: "/nodes", f: "/findings", c: "/fabrics", p: "/plan", r: "/report", e: "/events" };
  let go = false;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) { return; }
    if (e.target.matches("input, textarea, select")) { if (e.key === "Escape") { e.target.blur(); } return; }
    if (go) { go = false; if (pages[e.key]) { location.href = pages[e.key]; } return; }
    switch (e.key) {
      case "/": document.getElementById("q").focus(); break;
      case "j": walk(1); break;
      case "k": walk(-1); break;
      case "g": go = true; return;
      case "?": if (help.open) { help.close(); } else { help.showModal(); } break;
      default: return;
    }
    e.preventDefault();
  });
})();
