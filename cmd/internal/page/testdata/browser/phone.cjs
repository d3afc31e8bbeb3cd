// A phone opens the page through a proxy, by an address that only reads. The desk sees it among the browsers with
// access and ends its session; the phone is told what to do, and its address is worth nothing any more.
"use strict";
const assert = require("node:assert/strict");
const { run } = require("./harness.cjs");

run(async (story, args) => {
  const desk = await story.open();
  await desk.getByRole("link", { name: "Access" }).click();
  await desk.getByRole("heading", { level: 1, name: "Access" }).waitFor();
  const addresses = (await desk.locator("dd").allInnerTexts()).filter((a) => a.startsWith(args.proxy));
  assert.equal(addresses.length, 3, `addresses: ${addresses}`);
  assert.equal(new Set(addresses).size, 3, "two rights have one address");

  const touch = { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 }, ignoreHTTPSErrors: true };
  const phone = await story.open("phone", touch, addresses[0]);
  const [cookie] = await phone.context().cookies();
  assert.deepEqual([cookie.secure, cookie.httpOnly, cookie.sameSite], [true, true, "Strict"]);
  await phone.getByText("1 card waits for you").waitFor();
  await story.accessible(phone, "the review on a phone that reads");
  await phone.getByRole("link", { name: "the lesson" }).click();
  await phone.getByText("build it anew").waitFor();
  const buttons = await phone.locator("main button, main a[href*='/edit']").evaluateAll((all) => all.filter((e) => e.checkVisibility()).map((e) => e.textContent));
  assert.deepEqual(buttons, [], "a browser that may only read is offered to change something");
  assert.equal(await phone.getByRole("link", { name: "Access" }).count(), 0);
  const refused = await phone.evaluate(async (card) => (await fetch(`/cards/${card}/decide`, { method: "POST", body: new URLSearchParams({ act: "approve" }) })).status, args.card);
  assert.equal(refused, 403);
  await phone.goto(args.proxy + "/sessions");
  await phone.getByRole("alert").getByText("This browser may read only").waitFor();

  // With the right to answer, the same phone decides, and its earlier session is gone.
  await phone.goto(addresses[1]);
  await phone.getByRole("link", { name: "the lesson" }).click();
  await phone.getByRole("button", { name: "Approve", exact: true }).click();
  await phone.locator(".banner").getByText("Approved: the lesson").waitFor();
  await phone.getByRole("button", { name: "Take back" }).click();
  await phone.locator(".banner").getByText("Taken back").waitFor();

  await desk.reload();
  await desk.getByText("2 browsers have access").waitFor();
  const row = desk.locator(".sessions li", { hasText: "decides and answers" });
  await row.getByText(`by the name ${new URL(args.proxy).host}`).waitFor();
  await story.accessible(desk, "the browsers with access");
  await row.getByRole("button", { name: /^End session/ }).click();
  await desk.getByText("1 browser has access").waitFor();

  const turnedAway = await phone.reload();
  assert.equal(turnedAway.status(), 401);
  await phone.getByRole("alert").getByText("Open the address that 'anamnesis serve' printed").waitFor();
  for (const address of addresses) assert.equal((await phone.goto(address)).status(), 401, "an earlier address still opens the page");
  await desk.getByRole("link", { name: "Review" }).click();
  await desk.getByText("1 card waits for you").waitFor();
});
