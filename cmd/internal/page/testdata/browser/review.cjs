// Twenty drafts over coffee, by keyboard alone: most approved, some rejected,
// one edited, one decision taken back.
"use strict";
const assert = require("node:assert/strict");
const { run } = require("./harness.cjs");

run(async (story, args) => {
  const page = await story.open();
  const press = async (key) => {
    const before = page.url();
    await page.keyboard.press(key);
    await page.waitForURL((u) => u.href !== before);
  };
  const place = (text) => page.getByRole("navigation", { name: "Queue" }).getByText(text, { exact: true }).waitFor();
  const done = (text) => page.getByRole("status").getByText(text, { exact: true }).first().waitFor();
  const topic = () => page.getByRole("heading", { level: 1 }).innerText();

  await page.getByText("20 cards wait for you").waitFor();
  await page.goto(story.origin + "/review?by=nothing");
  await press("j");
  await place("1 of 20 waiting");
  await press("j");
  await place("2 of 20 waiting");
  await press("k");
  await place("1 of 20 waiting");
  await page.setViewportSize({ width: 1280, height: 500 });
  await page.goto(story.origin + "/review/draft19?by=nothing");
  await place("19 of 20 waiting");
  const rows = () => page.evaluate(() => {
    const box = (e) => e.getBoundingClientRect();
    const list = document.querySelector(".queue");
    const at = box(list.querySelector("[aria-current]"));
    return { above: at.top - box(list).top, below: box(list).bottom - at.bottom, over: list.scrollHeight - list.clientHeight };
  });
  const at = await rows();
  assert.ok(at.over > 0 && at.above >= 0 && at.below >= 0, `the card's row is out of sight: ${JSON.stringify(at)}`);

  // The buttons are in sight however long the card is, and no row is wider than a phone.
  const bar = () => page.evaluate(() => {
    const b = document.querySelector(".acts.bar").getBoundingClientRect();
    return b.top >= 0 && b.bottom <= innerHeight + 1;
  });
  await page.evaluate(() => { document.querySelector(".sheet .body").append(Object.assign(document.createElement("div"), { className: "tall" })); document.querySelector(".tall").style.height = "3000px"; });
  assert.ok(await bar(), "the buttons are out of sight beside a long card");
  await page.setViewportSize({ width: 360, height: 740 });
  assert.ok(await bar(), "the buttons are out of sight on a phone");
  await page.goto(story.origin + "/review?by=nothing");
  const wide = await page.locator(".rows a").evaluateAll((all) => all.map((a) => a.getBoundingClientRect()).filter((r) => r.width < 250 || r.left < 0 || r.right > 360).length);
  assert.equal(wide, 0, "rows do not fit a phone");
  await page.setViewportSize({ width: 1280, height: 900 });
  await press("j");
  await place("1 of 20 waiting");

  // Approve and reject in turn; the next card opens by itself.
  for (let i = 1; i <= 9; i++) {
    const was = await topic();
    await press(i % 3 === 0 ? "r" : "a");
    await done(`${i % 3 === 0 ? "Rejected" : "Approved"}: ${was}`);
    await place(`1 of ${20 - i} waiting`);
  }

  // The last one was too quick.
  const rejected = "lesson 9";
  await press("u");
  await done(`Taken back: Rejected: ${rejected}`);
  assert.equal(await topic(), rejected);
  await place("1 of 12 waiting");
  await press("a");
  await done(`Approved: ${rejected}`);

  // Edit one: the text is where the focus is; Ctrl+Enter saves.
  await press("e");
  const text = page.getByLabel("What it says");
  await text.waitFor();
  assert.ok(await text.evaluate((e) => e === document.activeElement), "the text is not focused");
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("half a word");
  await page.keyboard.press("Control+Enter");
  await page.getByText('Not saved: the Issue is missing').waitFor();
  assert.match(await text.inputValue(), /^half a word- \*\*Issue/);
  await text.focus();
  await page.keyboard.press("Control+Home");
  for (const _ of "half a word") await page.keyboard.press("Delete");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("- **Solution**: seen at once");
  await page.locator("#preview", { hasText: "seen at once" }).waitFor();
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("End");
  await page.keyboard.type(", corrected by hand");
  await story.accessible(page, "a card being edited");
  await press("Control+Enter");
  await done("Changed: lesson 10, corrected by hand");
  await place("1 of 11 waiting");

  // The evidence and the nearest cards stand beside it.
  await page.getByRole("heading", { name: "Nearest cards" }).waitFor();
  assert.equal(await page.getByRole("region", { name: "Nearest cards" }).getByRole("listitem").count(), 5);
  await page.getByText("The card names no operations").waitFor();
  await story.accessible(page, "a card in review");

  await page.keyboard.press("?");
  assert.equal(await page.evaluate(() => document.activeElement.id), "keys-on", "? does not lead to the list of keys");

  // Keys turned off do nothing; a key held down decides once.
  await page.getByLabel("Single keys").uncheck();
  await page.keyboard.press("a");
  await page.getByLabel("Single keys").check();
  await place("1 of 11 waiting");
  const first = page.url();
  await page.keyboard.down("a");
  await page.keyboard.down("a");
  await page.keyboard.down("a");
  await page.keyboard.up("a");
  await page.waitForURL((u) => u.href !== first);
  await place("1 of 10 waiting");

  for (let left = 10; left > 0; left--) {
    await place(`1 of ${left} waiting`);
    await press("a");
  }
  await page.getByText("No card waits for a review.").waitFor();

  // By Tab alone: the skip link, then into the page.
  await page.goto(story.origin + "/cards/" + args.card);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.activeElement.closest("main") !== null), "Tab does not lead into the page");
});
