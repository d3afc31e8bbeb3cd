// Cards are found as one types, a card's past is shown, and a stale edit is
// refused with both texts. Every page is looked at in light, dark and at the
// width of a phone.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { run } = require("./harness.cjs");

run(async (story, args) => {
  const page = await story.open();
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("/");
  await page.waitForURL("**/cards");
  await page.evaluate(() => { window.count = document.getElementById("count"); });
  await page.keyboard.press("/");
  await page.keyboard.type("money rounds to cents");
  await page.getByText(/^\d+ cards? found\.$/).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "q", "the focus left the question");
  assert.ok(await page.evaluate(() => window.count.isConnected && window.count.role === "status"), "what is announced was put in anew");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("zebra crossing pedestrian umbrella");
  await page.getByText("No card says enough about this.").waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("large amounts of money");
  // Its first words find the card already; the address has what was searched for last.
  await page.waitForURL((url) => url.searchParams.get("q") === "large amounts of money");
  await page.getByRole("link", { name: args.topic }).click();
  await page.waitForURL("**/cards/*");
  await page.goBack();
  await page.getByRole("link", { name: args.topic }).waitFor(); // what was found is still there
  assert.equal(await page.getByLabel("Question or error message").inputValue(), "large amounts of money");
  await page.getByRole("link", { name: args.topic }).click();

  // Where the card came from.
  await page.getByRole("heading", { name: "The jump" }).waitFor();
  await page.locator(".diff ins", { hasText: "func kahan" }).waitFor();
  await page.getByRole("heading", { name: "What the task did instead, from step 2 to step 11" }).waitFor();
  await page.locator(".diff ins", { hasText: "func cents" }).waitFor();
  await page.locator("pre.failed", { hasText: "178 of 240 bookings are wrong" }).waitFor();
  await page.locator("details summary", { hasText: "StrReplaceFile" }).first().click();
  await story.accessible(page, "a card with its evidence");

  // What the README shows: the card in review, its evidence beside it.
  const picture = await story.open("light", { viewport: { width: 1100, height: 720 } });
  await story.goto(picture, `/review/${args.card}`);
  await picture.getByRole("heading", { name: "The jump" }).waitFor();
  await story.shot(picture, "review");
  await picture.context().close();

  // Somebody else changes the card while it is being read here: that nothing was
  // decided is said for as long as the page stands.
  fs.appendFileSync(args.file, "\nA word of theirs.\n");
  await page.keyboard.press("a");
  await page.getByRole("heading", { name: "The jump" }).waitFor();
  await page.getByRole("alert").getByText("Nothing was decided: card").waitFor();
  await page.waitForLoadState("networkidle");
  assert.match(await page.getByRole("alert").innerText(), /has changed since/, "the refusal is gone");
  const leaves = () => page.evaluate(() => window.dispatchEvent(new Event("beforeunload", { cancelable: true })));

  // Somebody else changes the card while it is being edited here.
  await page.keyboard.press("e");
  await page.getByRole("link", { name: "Whole file" }).click();
  const text = page.getByLabel("The card's text");
  await text.waitFor();
  assert.ok(await leaves(), "the page asks although nothing was written");
  const mine = (await text.inputValue()) + "\nMy words.\n";
  await text.fill(mine);
  assert.ok(!(await leaves()), "what was written would be lost without a question");
  fs.appendFileSync(args.file, "\nTheir words.\n");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText("Not saved: the card has changed since").waitFor();
  await page.getByRole("region", { name: "What the card says now" }).getByText("Their words.").waitFor();
  assert.equal(await page.getByLabel("Your text").inputValue(), mine);
  assert.ok(!fs.readFileSync(args.file, "utf8").includes("My words."), "the file was written over");
  await story.accessible(page, "a stale edit");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("status").getByText(`Changed: ${args.topic}`).waitFor();

  await page.keyboard.press("h");
  await page.locator(".diff ins", { hasText: "My words." }).waitFor();
  await page.locator(".diff del", { hasText: "Their words." }).waitFor();

  // One of two cards takes the other's place, and gives it back.
  await story.goto(page, `/review/${args.card}`);
  const near = page.getByRole("region", { name: "Nearest cards" });
  await near.getByText("Merge", { exact: true }).first().click();
  await near.getByRole("button", { name: "This card takes its place" }).first().click();
  await page.getByRole("status").getByText(/^Superseded: /).waitFor();
  await page.getByRole("heading", { level: 1, name: args.topic }).waitFor();
  await page.keyboard.press("u");
  await page.getByRole("status").getByText(/^Taken back: Superseded: /).waitFor();

  await story.accessibleIn(["/sessions", "/review?by=task", "/review", "/cards", `/review/${args.card}`,
    `/cards/${args.card}/edit`, `/cards/${args.card}/history`, `/cards/${args.card}/evidence`, "/nowhere"]);

  // Without script: a search and a decision are plain forms.
  const plain = await story.open("phone", { javaScriptEnabled: false });
  await story.goto(plain, "/cards");
  await plain.getByLabel("Question or error message").fill("money rounds to cents");
  await plain.getByRole("button", { name: "Search" }).click();
  await plain.getByRole("link", { name: args.topic }).click();
  await plain.getByRole("link", { name: "What this card came from" }).click();
  await plain.getByRole("heading", { name: "The jump" }).waitFor();
  await plain.goBack();
  await plain.getByRole("button", { name: "Approve" }).click();
  await plain.getByRole("status").getByText(`Approved: ${args.topic}`).waitFor();
});
