// A browser with the printed address comes in; one without it does not, and
// can read what to do.
"use strict";
const assert = require("node:assert/strict");
const { run } = require("./harness.cjs");

run(async (story) => {
  const page = await story.open();
  await page.getByRole("heading", { level: 1, name: "Review" }).waitFor();
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
  assert.equal(await page.evaluate(() => document.cookie), "", "a script can read the cookie");

  const stranger = await story.browser.newPage();
  const turnedAway = await stranger.goto(story.origin + "/review");
  assert.equal(turnedAway.status(), 401);
  await stranger.getByRole("alert").getByText("Open the address that 'anamnesis serve' printed").waitFor();
  await story.accessible(stranger, "turned away");
});
