// A task that runs is followed to its end: its steps, its jump, its block and
// card come by themselves, each operation once. An operation, a step's diff and
// the context are opened by pointer and by key. Nothing the task said acts.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { run, looks, wait } = require("./harness.cjs");

const focused = (page) => page.evaluate(() => document.activeElement.id);

// opened waits until what was opened is shown and has the focus.
async function opened(page, title) {
  await page.locator("#opened", { hasText: title }).waitFor();
  await page.waitForFunction(() => document.activeElement.id === "opened");
}

// expand opens the steps that an operation stands in.
const expand = (page) => page.locator("#ops details").evaluateAll((all) => all.forEach((d) => { d.open = true; }));

async function follow(page, args) {
  await page.getByRole("link", { name: "Tasks" }).click();
  const task = page.getByRole("link", { name: args.task });
  for (const end = Date.now() + wait; (await task.count()) === 0 && Date.now() < end;) await page.reload(); // it is only beginning
  await task.click();
  await page.locator("#standing .chip", { hasText: "running" }).waitFor();
  await page.locator(".ops .what", { hasText: "until [ -e go ]" }).last().waitFor();
  assert.equal(await page.locator(".step", { hasText: "under way" }).count(), 1);
  await page.evaluate(() => { window.sameDocument = true; });

  // What the user reads stays where it is while the page grows.
  await page.locator("#detail", { hasText: "Step 3" }).waitFor(); // the step under way
  await page.locator("summary", { hasText: "step 0" }).click();
  await page.locator("#op-2").focus();
  fs.writeFileSync(args.go, "");
  await page.locator("#standing", { hasText: "the last turn ended with an answer" }).waitFor();
  await page.locator("#auto", { hasText: "jump from step 4 to step 1" }).waitFor();
  await page.locator(".mark", { hasText: "↩ to 1" }).waitFor();
  await page.locator(".mark", { hasText: "block, 1 ✦" }).waitFor();
  assert.equal(await page.evaluate(() => window.sameDocument), true, "the page was loaded again");
  assert.equal(await focused(page), "op-2", "the focus was lost");
  const seqs = await page.locator("#ops a").evaluateAll((all) => all.map((a) => Number(a.id.slice(3))));
  assert.deepEqual(seqs, seqs.map((_, i) => i + 1), "each operation stands there once, in order");
  assert.ok(seqs.length > 30);
}

// tree: the drawing is beside the list, and each branch is a list of its own.
async function tree(page) {
  const left = page.getByRole("list", { name: /^Branch from step 1, left: counting up leads nowhere/ });
  assert.equal(await left.locator(".step").count(), 3);
  const rows = await page.locator(".tree .step").evaluateAll((all) => all.map((a) => Math.round(a.getBoundingClientRect().y + a.getBoundingClientRect().height / 2)));
  const dots = await page.locator(".tree svg .dot").evaluateAll((all) => all.map((d) => Math.round(d.getBoundingClientRect().y + d.getBoundingClientRect().height / 2)));
  assert.equal(rows.length, dots.length);
  rows.forEach((y, i) => assert.ok(Math.abs(y - dots[i]) <= 2, `row ${i}: the text at ${y}, its sign at ${dots[i]}`));
  assert.equal(await page.locator(".tree svg .jump").count(), 1);
  assert.equal(await page.locator(".tree svg .cross").count(), 1, "a failed call is shown by its form");
  assert.equal(await page.locator(".tree .chip, .tree .sign").count(), 0, "the list repeats what the drawing shows");
}

// head: the report comes first, then the jumps with their reasons, the todo list and the cost, then the steps.
async function head(page) {
  await page.locator("#report dt", { hasText: "Ended" }).waitFor();
  const jump = page.locator(".jumps li");
  assert.match(await jump.innerText(), /^↩ 4 back to 1 by the agent\ncounting up leads nowhere/);
  await page.locator("#figures dt", { hasText: "Cost" }).waitFor();
  assert.deepEqual((await page.locator(".todos li").allInnerTexts()).map((t) => t.replaceAll("\n", " ")), ["☑ Look around done", "▸ Write the greeting in progress"]);
  assert.equal(await page.locator("#report dt", { hasText: "Paths left" }).count(), 0, "the jumps are shown twice");
  const order = await page.evaluate(() => ["report", "course", "tree", "oplist"].map((id) => document.getElementById(id))
    .every((e, i, all) => i === 0 || (all[i - 1].compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0));
  assert.ok(order, "the steps come before the report");
  await jump.getByRole("link").click();
  await opened(page, "Operation");
  await page.goBack();
}

async function byPointer(page) {
  await expand(page);
  await page.locator("#ops pre.failed", { hasText: "3000" }).waitFor(); // what a failed command printed
  await page.locator("#ops a", { hasText: "I count" }).click();
  await opened(page, "Operation");
  const text = await page.locator("#detail").innerText();
  assert.ok(text.includes("<script>window.hostile = 1</script>"), "the reader does not see what was said");
  assert.ok(text.includes("\\u202e"), "the reader does not see what would turn the text around");
  await page.locator("#detail").getByRole("link", { name: "the context here" }).click();
  await opened(page, "Context at operation");
  await page.locator("#detail .context pre", { hasText: "Write a greeting." }).waitFor();
  await page.locator("#step-3").click();
  await opened(page, "Step 3");
  // A line of the diff leads to what wrote it, and from there to the call and the step.
  await page.locator("#detail .diff ins a", { hasText: "+wrong" }).click();
  await opened(page, "Line 1 of wrong.txt");
  await page.locator("#detail dd", { hasText: "Write a greeting." }).waitFor();
  await page.locator("#detail dd", { hasText: "echo wrong > wrong.txt" }).waitFor();
  await page.locator("#detail").getByRole("link", { name: "what step 3 changed" }).click();
  await opened(page, "Step 3");
}

async function byKey(page) {
  const here = page.locator('.step[aria-current="step"]');
  await here.focus();
  const last = await focused(page);
  await page.keyboard.press("Home");
  assert.equal(await focused(page), "step-0");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.equal(await focused(page), "step-2", "right goes to a step that goes on from this one");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await focused(page), "step-1", "left goes to the step it goes on from");
  await page.keyboard.press("End");
  assert.equal(await focused(page), last);
  await page.keyboard.press("ArrowUp");
  assert.equal(await focused(page), "step-5");
  await page.keyboard.press("Enter");
  await opened(page, "Step 5");
  await page.locator("#detail .diff ins", { hasText: "+Hello, browser." }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), "step-5", "Escape goes back");
  assert.equal(await page.locator("#tree .step[tabindex='0']").count(), 1, "one step is in the order of Tab");

  await page.locator("#op-1").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await opened(page, "Operation 2");

  // What was opened has an address. Back returns to the task's page as it was, whatever was opened
  // in between, and forward to what was opened.
  const path = () => new URL(page.url()).pathname;
  assert.match(path(), /\/followed\/ops\/2$/);
  await page.goBack();
  await page.locator("#auto", { hasText: "jump from step 4 to step 1" }).waitFor();
  assert.match(path(), /\/tasks\/followed$/);
  assert.equal(await focused(page), "op-2", "Back does not lead to what was opened");
  await page.goForward();
  await opened(page, "Operation 2");
  assert.equal(await page.evaluate(() => window.sameDocument), true, "the page was loaded again");
}

run(async (story, args) => {
  const page = await story.open();
  await follow(page, args);
  await head(page);
  await tree(page);
  await byPointer(page);
  await byKey(page);
  assert.equal(await page.evaluate(() => window.hostile), undefined, "what the task said ran");
  assert.equal(await page.locator("main img, main script, main iframe").count(), 0);

  for (const look of Object.keys(looks)) {
    const other = await story.open(look);
    await story.goto(other, "/tasks");
    await story.accessible(other, `tasks (${look})`);
    await story.goto(other, `/tasks/${args.task}`);
    await story.accessible(other, `the timeline (${look})`);
    await other.locator("#step-3").click();
    await opened(other, "Step 3");
    await story.accessible(other, `a step (${look})`);
    await other.locator("#detail .diff ins a").click();
    await opened(other, "Line 1 of wrong.txt");
    await story.accessible(other, `what wrote a line (${look})`);
    await other.getByRole("button", { name: "Back" }).click();
    assert.equal(await focused(other), "step-3", "Back goes back to where it was opened");
    await story.goto(other, `/tasks/${args.task}/ops/10/context`);
    await story.accessible(other, `a context (${look})`);
    await story.goto(other, "/review");
    await other.getByRole("link", { name: "Begin" }).click();
    await other.locator("blockquote", { hasText: "counting up leads nowhere" }).waitFor();
    await story.accessible(other, `a card with its evidence (${look})`);
    await other.context().close();
  }
  const picture = await story.open("light", { viewport: { width: 1100, height: 560 } });
  await story.goto(picture, `/tasks/${args.task}`);
  await picture.locator("#step-5").click();
  await opened(picture, "Step 5");
  await picture.evaluate(() => { document.activeElement.blur(); document.getElementById("steps-h").scrollIntoView(); });
  await story.shot(picture, "timeline");

  // All tasks are searched from the list, and a result opens its operation.
  for (const look of Object.keys(looks)) {
    const searching = await story.open(look);
    await searching.getByRole("link", { name: "Tasks" }).click();
    await searching.getByLabel("Words of a request, a command, an error").fill("counting leads nowhere");
    await searching.keyboard.press("Enter");
    await searching.getByRole("status").getByText("1 task found.").waitFor();
    await story.accessible(searching, `what a search found (${look})`);
    await searching.getByRole("link", { name: args.task }).click();
    await searching.getByRole("heading", { name: /^Operation \d+$/ }).waitFor();
    await searching.context().close();
  }

  // Without script every link is a page of its own.
  const plain = await story.open("light", { javaScriptEnabled: false });
  await story.goto(plain, `/tasks/${args.task}`);
  await plain.locator("#step-5").click();
  await plain.getByRole("heading", { name: "Step 5" }).waitFor();
  await plain.locator(".diff ins", { hasText: "+Hello, browser." }).waitFor();
});
