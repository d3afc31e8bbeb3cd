// What the browser stories share. A story is a .cjs file that calls run; the
// Go test that starts it gives it its arguments as JSON in BROWSER_ARGS and the
// folder of the npm packages in NODE_PATH. It ends with 0 when all held.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { chromium } = require("playwright-core");

const axeSource = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// wait bounds every wait for a condition. It is liveness only; BROWSER_WAIT
// makes it shorter, in seconds, for who writes a story.
const wait = Number(process.env.BROWSER_WAIT ?? 60) * 1000;

// looks are the ways each page is looked at.
const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 900 } },
  phone: { colorScheme: "light", viewport: { width: 360, height: 740 } },
};

class Story {
  constructor(browser, args) {
    this.browser = browser;
    this.args = args;
    this.origin = new URL(args.url).origin;
    this.faults = [];
  }

  // open opens the site in a new browser context and returns its page. A request
  // elsewhere, a dialog, an error and a violation of the content security policy
  // are recorded as faults.
  async open(look = "light", options = {}, url = this.args.url) {
    const context = await this.browser.newContext({ ...looks[look], reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(wait);
    const page = await context.newPage();
    page.on("request", (r) => {
      if (!r.url().startsWith(new URL(url).origin + "/")) this.faults.push(`a request left: ${r.url()}`);
    });
    page.on("dialog", (d) => { this.faults.push(`a dialog: ${d.message()}`); return d.dismiss(); });
    page.on("pageerror", (e) => this.faults.push(`an error: ${e.message}`));
    page.on("console", (m) => {
      if (m.type() === "error" && !/status of 4\d\d/.test(m.text())) this.faults.push(`the console: ${m.text()}`);
    });
    // Keys work once the page's scripts have run, which is later than its text is there.
    const press = page.keyboard.press.bind(page.keyboard);
    page.keyboard.press = async (...key) => { await page.waitForLoadState("load"); await press(...key); };
    await page.goto(url);
    assert.equal(new URL(page.url()).search, "", "the token is still in the address");
    return page;
  }

  async goto(page, path) { await page.goto(this.origin + path); }

  // accessible checks the page with axe-core (WCAG 2.2 A and AA, or some rules only), and
  // that nothing is wider than the window.
  async accessible(page, what, rules = null) {
    await page.evaluate(axeSource);
    const found = await page.evaluate((rules) => axe.run(document, {
      runOnly: rules ? { type: "rule", values: rules } : ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }), rules);
    assert.ok(found.passes.length > (rules ? 0 : 5), `${what}: axe-core looked at nothing`);
    const serious = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
    for (const v of serious) {
      this.faults.push(`${what}: ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html + " " + n.failureSummary).join("; ")}`);
    }
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) this.faults.push(`${what}: ${over} pixels wider than the window`);
  }

  // shot takes a picture of what a page shows first, where pictures are asked
  // for: those of the README are made this way.
  async shot(page, name) {
    if (!this.args.screenshots) return;
    await page.screenshot({ path: path.join(this.args.screenshots, name + ".png") });
  }

  // accessibleIn looks at some paths in every look.
  async accessibleIn(paths) {
    for (const look of Object.keys(looks)) {
      const page = await this.open(look);
      for (const path of paths) {
        await this.goto(page, path);
        await this.accessible(page, `${path} (${look})`, look === "dark" ? ["color-contrast"] : null); // only colours differ
      }
      await page.context().close();
    }
  }
}

// run tells one story and ends the process.
async function run(story) {
  const args = JSON.parse(process.env.BROWSER_ARGS);
  let browser;
  try {
    browser = await chromium.launch({
      executablePath: args.chromium,
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
    const s = new Story(browser, args);
    await story(s, args);
    assert.deepEqual(s.faults, []);
  } catch (e) {
    console.error(e.stack || e);
    for (const context of browser?.contexts() ?? []) {
      for (const page of context.pages()) {
        console.error(`at ${page.url()}:\n${await page.locator("body").innerText().catch(String)}`);
      }
    }
    process.exitCode = 1;
  } finally {
    if (browser) await browser.close();
  }
}

module.exports = { run, wait, looks };
