// Twenty-six drafts of a night: groups are rejected and approved at once, and one is taken back. What was
// selected stays selected while cards are decided one by one.
"use strict";
const assert = require("node:assert/strict");
const { run } = require("./harness.cjs");

run(async (story) => {
  const page = await story.open();
  const group = (name) => page.locator("form.group", { has: page.getByRole("heading", { name, exact: true }) });
  const waiting = (n) => page.getByText(`${n} cards wait for you`).waitFor();

  // Titles say what to do. A row is one line, so that many are in sight.
  await waiting(26);
  const alike = group("6 say nearly the same");
  assert.equal(await alike.getByRole("checkbox", { checked: true }).count(), 6);
  await alike.getByText("Run bin/test sympy/tests/test_0.py – after “No module named pytest”").first().waitFor();
  const heights = await page.locator(".compact li").evaluateAll((all) => all.map((e) => e.getBoundingClientRect().height));
  assert.ok(Math.max(...heights) <= 40, `rows are ${Math.max(...heights)} pixels high`);
  await story.accessible(page, "the review in groups");

  // A group without the card that is wanted, by keyboard.
  await alike.getByRole("checkbox").first().focus();
  await page.keyboard.press("Space");
  await alike.getByRole("button", { name: "Reject ticked" }).focus();
  await page.keyboard.press("Enter");
  const banner = page.locator(".banner");
  await banner.getByText("Rejected 5 cards, the first: Run bin/test").waitFor();
  await waiting(21);
  await story.accessible(page, "after a decision");
  await banner.getByRole("button", { name: "Take back" }).click();
  await banner.getByText("Taken back: Rejected 5 cards").waitFor();
  await story.goto(page, "/review");
  await waiting(26);

  // By task, and of one project.
  await page.getByText("Filter and group").click();
  await page.getByLabel("Group by").selectOption("task");
  await page.getByLabel("Project").selectOption("shop");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.getByText("26 cards wait for you, 20 of them fit the filter").waitFor();
  await group("5 of task night-2").getByRole("button", { name: "Approve ticked" }).click();
  await banner.getByText("Approved 5 cards, the first: the lesson about").waitFor();
  await page.getByText("21 cards wait for you, 15 of them fit the filter").waitFor();

  // Nothing ticked is nothing decided.
  for (const box of await group("5 of task night-1").getByRole("checkbox").all()) await box.uncheck();
  await group("5 of task night-1").getByRole("button", { name: "Reject ticked" }).click();
  await page.getByRole("alert").getByText("No card was ticked, and nothing was decided").waitFor();
  await page.goBack();

  // One by one, within what was selected.
  await page.getByRole("link", { name: "Begin" }).click();
  await page.getByText("1 of 15 waiting", { exact: true }).waitFor();
  assert.equal(await page.locator(".queue li").count(), 15);
  await page.keyboard.press("a");
  await page.getByText("1 of 14 waiting", { exact: true }).waitFor();
  await banner.getByText("Approved: the lesson about").waitFor();
  await page.keyboard.press("u");
  await page.getByText("1 of 15 waiting", { exact: true }).waitFor();
  await banner.getByText("Taken back: Approved: the lesson about").waitFor();

  // The queue beside a card shows twenty, without scrolling.
  await story.goto(page, "/review?by=nothing");
  await page.getByRole("link", { name: "Begin" }).click();
  await page.locator(".queue li").nth(19).waitFor();
  const below = await page.locator(".queue li").nth(19).evaluate((e) => e.getBoundingClientRect().bottom - innerHeight);
  assert.ok(below <= 0, `the twentieth card is ${below} pixels below the window`);

  // A touch screen has no keys.
  const phone = await story.open("phone", { hasTouch: true, isMobile: true });
  for (const path of ["/review", "/review?repo=shop", new URL(page.url()).pathname]) {
    await story.goto(phone, path);
    const hints = await phone.locator("kbd, .keys, .hint").evaluateAll((all) => all.filter((e) => e.checkVisibility()).length);
    assert.equal(hints, 0, `${path} shows keys on a touch screen`);
    await story.accessible(phone, `${path} by touch`);
  }
});
