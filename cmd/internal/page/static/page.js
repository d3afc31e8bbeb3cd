// Keys of every page, and its message when the server does not answer.
// The key x presses the element with data-key="x", unless the user is typing
// or has turned single keys off.
"use strict";
(() => {
  const off = "anamnesis-keys-off";
  const box = document.getElementById("keys-on");
  const keysOn = () => {
    try { return localStorage.getItem(off) === null; } catch { return true; }
  };
  if (box) {
    box.checked = keysOn();
    box.addEventListener("change", () => {
      try { box.checked ? localStorage.removeItem(off) : localStorage.setItem(off, "1"); } catch { /* lasts for this page only */ }
    });
  }

  const writing = (e) => e.target instanceof Element &&
    e.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;

  let pressed = false; // one act a page: a key held down must not decide about the next card too
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && e.target instanceof HTMLElement && writing(e)) {
      e.target.blur();
      return;
    }
    if (e.ctrlKey || e.altKey || e.metaKey || e.repeat || writing(e)) return;
    if (box ? !box.checked : !keysOn()) return;
    // The last one: the page's own elements come after those of the frame.
    const target = [...document.querySelectorAll(`[data-key="${CSS.escape(e.key)}"]`)].at(-1);
    if (!target || target.disabled || !target.checkVisibility()) return;
    e.preventDefault();
    if (target.matches("input, textarea, select")) {
      target.focus();
      return;
    }
    if (pressed) return;
    pressed = target.matches("a[href], button[type=submit]");
    target.click();
  });
  window.addEventListener("pageshow", () => { pressed = false; });

  // A problem of the page itself stays; one of a part is removed when a part
  // arrives.
  let said = null;
  const say = (text) => {
    said?.remove();
    said = document.createElement("p");
    said.className = "problem";
    said.textContent = text;
    document.getElementById("problem").append(said);
  };
  document.addEventListener("htmx:sendError", () => say("The server does not answer. Is 'anamnesis serve' still running?"));
  document.addEventListener("htmx:responseError", (e) => say(e.detail.xhr.responseText.slice(0, 500)));
  document.addEventListener("htmx:afterSwap", (e) => {
    const asker = e.detail.requestConfig && e.detail.requestConfig.elt;
    if (asker && asker.id === "live") return; // polling removes no message
    said?.remove();
  });
})();

// The list of waiting cards begins at the one that is shown.
(() => {
  const at = document.querySelector(".queue [aria-current]");
  const list = at && at.closest(".queue");
  if (list) list.scrollTop += at.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 3;
})();

// In the form of a card's text, Ctrl+Enter saves. The browser asks before
// unsaved text is left.
(() => {
  const form = document.getElementById("edit-form");
  if (!form) return;
  let saving = false;
  form.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", () => { saving = true; });
  window.addEventListener("pageshow", () => { saving = false; });
  window.addEventListener("beforeunload", (e) => {
    const changed = [...form.elements].some((f) => f.matches("textarea, input[type=text]") && f.value !== f.defaultValue);
    if (!saving && changed) e.preventDefault();
  });
})();
