// Keys of the timeline: up, down, Home and End move along a list, left (to the
// parent) and right (to a child) along the tree. An opened detail takes the
// focus; Escape returns it. It has an address; the browser's Back returns to the task's.
"use strict";
(() => {
  const lists = () => document.querySelectorAll("[data-arrows]");
  const linksOf = (list) => [...list.querySelectorAll(list.matches(".ops") ? "summary, a" : ".step")].filter((a) => a.checkVisibility());
  const shown = () => document.getElementById("detail");
  let opener = "";

  // goBack focuses the link that opened the detail, or else a list.
  const goBack = () => {
    const back = document.getElementById(opener) || document.querySelector("[data-arrows] a");
    if (back) back.focus();
  };

  // On a narrow page the detail is apart from its list, and a phone has no
  // Escape key.
  const offerBack = (heading) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Back " });
    button.append(Object.assign(document.createElement("kbd"), { textContent: "Esc" }));
    button.addEventListener("click", goBack);
    heading.after(button);
  };

  // One link of a list is in the tab order; arrow keys reach the others.
  const settle = () => lists().forEach((list) => {
    const links = linksOf(list);
    const focused = links.find((a) => a === document.activeElement);
    const now = focused || links.find((a) => a.id && a.id === list.dataset.at) || links.find((a) => a.hasAttribute("aria-current")) || links[0];
    list.querySelectorAll(".step, .ops a, summary").forEach((a) => { a.tabIndex = a === now ? 0 : -1; });
    if (list.matches(".ops")) list.querySelectorAll("a").forEach((a) => { a.tabIndex = a === now ? 0 : -1; });
  });

  const go = (list, to) => {
    if (!to) return;
    list.dataset.at = to.id;
    to.focus();
    settle();
  };

  const next = (list, at, key) => {
    const links = linksOf(list);
    const i = links.indexOf(at);
    switch (key) {
      case "ArrowUp": return links[i - 1];
      case "ArrowDown": return links[i + 1];
      case "Home": return links[0];
      case "End": return links[links.length - 1];
      case "ArrowLeft": return at.dataset.parent && document.getElementById(`step-${at.dataset.parent}`);
      case "ArrowRight": return links.find((a, k) => k > i && a.dataset.parent && `step-${a.dataset.parent}` === at.id);
    }
    return null;
  };

  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || !(e.target instanceof Element)) return;
    if (e.key === "Escape" && shown().contains(e.target)) {
      goBack();
      return;
    }
    const list = e.target.closest("[data-arrows]");
    if (!list || !e.target.matches("a, summary")) return;
    if (!/^(Arrow|Home$|End$)/.test(e.key)) return;
    e.preventDefault();
    go(list, next(list, e.target, e.key));
  });

  const note = (e) => {
    const link = e.target instanceof Element && e.target.closest("[data-arrows] a[id]");
    if (!link) return;
    opener = link.closest("[data-arrows]").dataset.at = link.id;
    settle();
  };
  document.addEventListener("focusin", note);
  document.addEventListener("click", note, true); // a tap does not focus a link in every browser

  document.addEventListener("toggle", settle, true);

  // A link to an operation expands its step.
  const reveal = () => {
    const at = document.getElementById(location.hash.slice(1));
    const step = at && at.closest("details");
    if (!step || step.open) return;
    step.open = true;
    at.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // One entry of the history is what was opened last; what was shown at first returns with Back.
  const home = location.pathname;
  let first = null;
  document.addEventListener("htmx:beforeSwap", (e) => {
    if (e.detail.target !== shown() || !e.detail.shouldSwap) return;
    first ??= [...shown().childNodes];
    const at = location.pathname;
    const to = e.detail.pathInfo.requestPath;
    if (at === home) history.pushState(null, "", to);
    else if (at !== to) history.replaceState(null, "", to);
  });
  addEventListener("popstate", () => {
    if (location.pathname !== home) {
      htmx.ajax("GET", location.pathname, { target: "#detail", swap: "innerHTML show:none" });
    } else if (first) {
      shown().replaceChildren(...first);
      first = null;
      goBack();
    }
  });

  document.addEventListener("htmx:afterSettle", (e) => {
    if (e.detail.target && e.detail.target.id === "detail") {
      shown().scrollTop = 0;
      const heading = document.getElementById("opened");
      offerBack(heading);
      heading.focus();
      return;
    }
    settle();
  });

  // Stop polling when the server does not answer.
  const stop = (e) => {
    const live = document.getElementById("live");
    if (live && e.detail.elt === live) live.replaceWith(Object.assign(document.createElement("p"), {
      className: "note", textContent: "This page no longer follows the task. Load it again to go on.",
    }));
  };
  document.addEventListener("htmx:sendError", stop);
  document.addEventListener("htmx:responseError", stop);
  settle();
})();
