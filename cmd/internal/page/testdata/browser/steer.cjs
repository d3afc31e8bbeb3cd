// A task is steered from its page: its question is answered, its agent is told something, it jumps after the plan of
// the jump was shown, and its turn is ended. What the page shows of it comes by itself.
"use strict";
const assert = require("node:assert/strict");
const { run, wait } = require("./harness.cjs");

const done = (page, text) => page.locator("#status", { hasText: text }).waitFor();

run(async (story, args) => {
  const page = await story.open();
  await page.getByRole("link", { name: "Tasks" }).click();
  const task = page.getByRole("link", { name: args.task });
  for (const end = Date.now() + wait; (await task.count()) === 0 && Date.now() < end;) await page.reload(); // it is only beginning
  await task.click();
  const question = page.getByRole("form", { name: "What the task asks" });
  await question.locator("pre", { hasText: "touch '<b>asked</b>'" }).waitFor();
  await story.accessible(page, "a question");

  // The Enter key says no, with the reason.
  await question.getByLabel("Why, with a no").fill("use another name");
  await question.getByLabel("Why, with a no").press("Enter");
  await question.locator("pre", { hasText: "touch other" }).waitFor();
  await page.getByLabel("To the agent").fill("half a th");
  await page.evaluate(() => { window.sameDocument = true; });
  await question.evaluate((form) => fetch(form.action, { method: "POST", body: new URLSearchParams({ op: form.op.value, answer: "yes" }) })); // from another browser
  await question.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => window.sameDocument), true, "the page was loaded again");
  assert.equal(await page.getByLabel("To the agent").inputValue(), "half a th", "what was typed is lost with the question");
  await page.locator(".ops .what", { hasText: "tail -f notes.txt" }).last().waitFor();
  assert.equal(await question.count(), 0, "a question that was answered is still shown");

  await page.getByLabel("To the agent").fill("Mind the gap.");
  await page.getByRole("button", { name: "Send" }).click();
  await done(page, "Sent.");

  await page.locator("#step-1").click();
  await page.locator("#detail").getByRole("link", { name: "jump here…" }).click();
  await page.locator("pre", { hasText: "is running and would jump when its present step is complete" }).waitFor();
  await story.accessible(page, "the plan of a jump");
  await page.getByLabel("Reason").fill("not that way");
  await page.getByRole("button", { name: "Jump" }).click();
  await done(page, "The task jumps when its present step is complete.");

  await page.getByRole("button", { name: "End the turn" }).click();
  await done(page, "The turn ends");
  await page.locator("#standing", { hasText: "interrupted" }).waitFor();
});
