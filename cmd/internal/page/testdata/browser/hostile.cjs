// A card that wants to run, load, send or hide something is text.
"use strict";
const assert = require("node:assert/strict");
const { run } = require("./harness.cjs");

run(async (story, args) => {
  const page = await story.open();
  for (const path of [`/review/${args.card}`, `/cards/${args.card}`, `/cards/${args.card}/edit`, `/cards/${args.card}/history`, "/review", "/cards", "/cards?q=hostile+script"]) {
    await page.goto(story.origin + path, { waitUntil: "networkidle" });
    assert.equal(await page.evaluate(() => window.hostile), undefined, `${path}: a script of the card ran`);
    const bad = await page.evaluate(() => [...document.querySelectorAll("main *")].filter((e) =>
      ["SCRIPT", "IMG", "SVG", "IFRAME", "OBJECT", "EMBED", "STYLE", "LINK", "META", "BASE", "VIDEO"].includes(e.tagName.toUpperCase()) ||
      e.getAttributeNames().some((n) => n.startsWith("on") || n === "style" || n === "srcdoc") ||
      (e.tagName === "A" && !/^https?:\/\//.test(e.href))).map((e) => e.outerHTML));
    assert.deepEqual(bad, [], path);
    const seen = await page.evaluate(() => document.querySelector("main").innerText);
    assert.ok(!/[\u202a-\u202e\u2066-\u2069\u200b\u001b]/.test(seen), `${path}: a character that turns text around is shown`);
  }
  // What it says can be read.
  await page.goto(story.origin + `/cards/${args.card}`);
  const body = await page.locator(".body").innerText();
  for (const part of ["<script>", "not loaded: ", "javascript:", "<svg", "\\u202e"]) {
    assert.ok(body.includes(part), `the reviewer does not see ${part}`);
  }
  await story.accessible(page, "a hostile card");
});
