// A task is steered from its page: its question is answered, its agent is told something, it jumps after the plan of
// the jump was shown, and its turn is ended. What the page shows of it comes by itself.
"use strict";
const assert = require("node:assert/strict");
const { run, wait } = require("./harness.cjs");

// tabTo presses Tab until what has the focus says that or has that class, as somebody without a pointer does.
async function tabTo(page, text) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((text) => {
      const e = document.activeElement;
      return (e.labels?.[0] ?? e).textContent.trim().startsWith(text) || `.${e.className}` === text;
    }, text)) return;
  }
  assert.fail(`Tab does not lead to ${text}`);
}

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

  // From here on by the keyboard alone.
  await tabTo(page, "To the agent");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("Mind the gap.");
  await page.keyboard.press("Enter");
  await done(page, "Sent.");

  await tabTo(page, ".step");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.id === "opened" && document.activeElement.textContent === "Step 1");
  await tabTo(page, "jump here…");
  await page.keyboard.press("Enter");
  await page.locator("pre", { hasText: "is running and would jump when its present step is complete" }).waitFor();
  await story.accessible(page, "the plan of a jump");
  await tabTo(page, "Reason");
  await page.keyboard.type("not that way");
  await page.keyboard.press("Enter");
  await done(page, "The task jumps when its present step is complete.");

  await tabTo(page, "End the turn");
  await page.keyboard.press("Enter");
  await done(page, "The turn ends");
  await page.locator("#standing", { hasText: "interrupted" }).waitFor();
});
