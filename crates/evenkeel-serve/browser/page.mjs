// The page in a real browser: the built-in pair is told apart and repaired, sliders answer live, keyboard, alt texts, phone, dark mode, no error in the console.
//
//     cargo build --release && apt-get install chromium
//     cd crates/evenkeel-serve/browser && npm install && node page.mjs [--shots FOLDER] [--program ../../../target/release/evenkeel] [--chromium /usr/bin/chromium]
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const flag = (name, usual) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : usual);
const shots = flag("--shots", "shots");
const patience = Number(flag("--patience", "120")) * 1000;

async function serve() {
  const program = flag("--program", new URL("../../../target/release/evenkeel", import.meta.url).pathname);
  const server = spawn(program, ["serve", "--port", "0", "--quiet", "--request-time", "300"]);
  server.stderr.pipe(process.stderr);
  const line = await new Promise((resolve, reject) => {
    server.stdout.on("data", (data) => resolve(String(data)));
    server.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return { server, address: line.match(/http:\S+/)[0] };
}

// Waits until the answer to what was asked last is shown.
async function settled(page) {
  await page.waitForTimeout(400); // sliders wait a quarter of a second before they ask
  await page.waitForFunction(() => !document.querySelector("#frames").classList.contains("busy")
    && !document.querySelector("#verdict").textContent.startsWith("Looking"), null, { timeout: patience });
  const verdict = page.locator("#verdict");
  return { state: await verdict.getAttribute("data-state"), text: await verdict.textContent() };
}

const words = (page, which) => page.locator(`#${which}-words`).textContent();

async function pair(page, model) {
  await page.selectOption("#model", model);
  await page.locator("#pair").waitFor();
  await page.locator("#clean").click();
  const clean = await settled(page);
  assert.equal(clean.state, "quiet", clean.text);
  assert.match(clean.text, /^No alarm: .* \d+\.\d+, below the threshold \d+\.\d+/);
  const truth = await words(page, "plain");
  await page.locator("#attacked").click();
  const attacked = await settled(page);
  assert.equal(attacked.state, "alarm", attacked.text);
  assert.match(attacked.text, /^Alarm: .* \d+\.\d+, above the threshold \d+\.\d+/);
  const [plain, defended] = [await words(page, "plain"), await words(page, "defended")];
  assert.notEqual(plain, truth, "the attack changes the answer");
  console.log(`${model}\n  clean    ${clean.text}\n  attacked ${attacked.text}\n  clean says ${truth}\n  attacked   ${plain}\n  defended   ${defended}`);
  return { truth, plain, defended };
}

async function controls(page) {
  for (const [name, value] of [["steps", "3"], ["epsilon", "2"]]) {
    const before = await page.locator("#defended").getAttribute("src");
    await page.locator(`#${name}`).fill(value);
    await settled(page);
    assert.notEqual(await page.locator("#defended").getAttribute("src"), before, `${name} changes the defended answer`);
    assert.match(await page.locator("#curl").textContent(), name === "steps" ? /-F steps=3/ : /-F epsilon=2\/255/);
  }
  const disagreement = page.locator("#heat");
  await page.locator("#opacity").fill("30");
  assert.equal(await disagreement.evaluate((image) => image.style.opacity), "0.3");
  await page.locator("summary", { hasText: "The views" }).click();
  assert.ok((await page.locator("#views img").count()) >= 8, "views unfold");
}

async function accessibility(page) {
  const bare = await page.evaluate(() => [...document.querySelectorAll("main img")]
    .filter((image) => image.checkVisibility() && image.id !== "under" && !image.alt && !image.closest("button")).map((image) => image.id));
  assert.deepEqual(bare, [], "every picture has an alternative text");
  const unnamed = await page.evaluate(() => [...document.querySelectorAll("input, select, button")]
    .filter((one) => one.checkVisibility() && !one.labels?.length && !one.textContent.trim() && !one.ariaLabel).map((one) => one.id));
  assert.deepEqual(unnamed, [], "every control has a name");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px wider than the screen`);
}

// Everything by keyboard alone: Tab reaches the pair, Enter asks.
async function keyboard(page) {
  await page.locator("#model").focus();
  for (let presses = 0; presses < 10; presses++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.id === "attacked")) break;
  }
  assert.equal(await page.evaluate(() => document.activeElement.id), "attacked");
  await page.keyboard.press("Enter");
  assert.equal((await settled(page)).state, "alarm");
}

const { server, address } = await serve();
const browser = await chromium.launch({
  executablePath: flag("--chromium", "/usr/bin/chromium"),
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  mkdirSync(shots, { recursive: true });
  for (const [width, height, colorScheme] of [[1440, 1000, "light"], [390, 844, "light"], [1440, 1000, "dark"]]) {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme });
    const faults = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("request", (request) => /^(data:|blob:)/.test(request.url()) || request.url().startsWith(address) || faults.push(request.url()));
    await page.goto(address, { waitUntil: "networkidle", timeout: patience });
    const shot = (name) => page.screenshot({ path: `${shots}/${width}-${colorScheme}-${name}.png`, fullPage: true });
    if (colorScheme === "dark") {
      await keyboard(page);
    } else {
      await pair(page, "segmenter");
      await accessibility(page);
      await shot("segmenter");
      const crop = await pair(page, "classifier");
      assert.equal(crop.defended.split(" ")[0], crop.truth.split(" ")[0], "the defence brings the class back");
      await shot("classifier");
      if (width > 1000) {
        await pair(page, "instances");
        await page.selectOption("#model", "segmenter");
        await page.locator("#attacked").click();
        await settled(page);
        await controls(page);
      }
    }
    await accessibility(page);
    await shot("last");
    assert.deepEqual(faults, [], "no error in the console, nothing loaded from elsewhere");
    await page.close();
  }
  console.log(`pictures are in ${shots}`);
} finally {
  await browser.close();
  server.kill("SIGTERM");
}
