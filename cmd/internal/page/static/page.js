// What every page can do by key, and what it says when the server is gone.
// An element with data-key="x" is pressed by the key x, unless the user is
// writing or has turned single keys off.
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

  let pressed = false; // one act a page: a key held down must not decide about the next card
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && e.target instanceof HTMLElement && writing(e)) {
      e.target.blur();
      return;
    }
    if (e.ctrlKey || e.altKey || e.metaKey || e.repeat || writing(e)) return;
    if (box ? !box.checked : !keysOn()) return;
    // The last: what a page itself offers comes after the frame.
    const target = [...document.querySelectorAll(`[data-key="${CSS.escape(e.key)}"]`)].at(-1);
    if (!target || target.disabled) return;
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

  // What the server said of the page itself stays; what is said here of a part
  // goes when a part comes.
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
    if (asker && asker.id === "live") return; // what follows a task takes nothing back
    said?.remove();
  });
})();

// In the form of a card's text Ctrl+Enter saves. What was written there is not
// left behind without a question.
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
