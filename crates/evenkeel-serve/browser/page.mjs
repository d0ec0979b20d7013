// The page in a real browser: the built-in pair is told apart and repaired, sliders answer live, keyboard, alt texts, phone, dark mode, no error in the console.
//
//     cargo build --release && apt-get install chromium
//     cd crates/evenkeel-serve/browser && npm install --no-package-lock && node page.mjs [--shots FOLDER] [--program ../../../target/release/evenkeel] [--chromium /usr/bin/chromium]
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
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

// How far two pictures are apart: the share of pixels of another colour.
async function apart(page, one, other) {
  return page.evaluate(async (sources) => {
    const pixels = await Promise.all(sources.map(async (source) => {
      const image = Object.assign(new Image(), { src: source });
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      canvas.getContext("2d").drawImage(image, 0, 0);
      return canvas.getContext("2d").getImageData(0, 0, image.width, image.height).data;
    }));
    let changed = 0;
    for (let i = 0; i < pixels[0].length; i += 4) {
      changed += [0, 1, 2].some((channel) => Math.abs(pixels[0][i + channel] - pixels[1][i + channel]) > 24);
    }
    return changed / (pixels[0].length / 4);
  }, [one, other]);
}

async function pair(page, model) {
  await page.selectOption("#model", model);
  await page.locator("#pair").waitFor();
  await page.locator("#clean").click();
  const clean = await settled(page);
  assert.equal(clean.state, "quiet", clean.text);
  assert.match(clean.text, /^No alarm: .* \d+\.\d+, below the threshold \d+\.\d+/);
  const truth = await words(page, "plain");
  const picture = (which) => page.locator(`#${which}`).getAttribute("src");
  const painted = await picture("plain");
  await page.locator("#attacked").click();
  const attacked = await settled(page);
  assert.equal(attacked.state, "alarm", attacked.text);
  assert.match(attacked.text, /^Alarm: .* \d+\.\d+, above the threshold \d+\.\d+/);
  const [plain, defended] = [await words(page, "plain"), await words(page, "defended")];
  assert.notEqual(plain, truth, "the attack changes the answer");
  const [harmed, left] = [await apart(page, painted, await picture("plain")), await apart(page, painted, await picture("defended"))];
  if (model !== "classifier") assert.ok(left < 0.6 * harmed, `the defence repairs: ${left} of ${harmed} is left`);
  console.log(`${model}\n  clean    ${clean.text}\n  attacked ${attacked.text}\n  clean says ${truth}\n  attacked   ${plain}\n  defended   ${defended}\n  pixels painted otherwise: ${harmed.toFixed(3)} attacked, ${left.toFixed(3)} defended`);
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

// The command of the page, pasted into a shell, gets the verdict of the page.
async function command(page) {
  const told = JSON.parse(execFileSync("bash", ["-c", await page.locator("#curl").textContent()], { stdio: ["ignore", "pipe", "ignore"] }));
  assert.equal(told.sentence, await page.locator("#verdict").textContent());
  console.log(`the command says ${told.sentence}`);
}

// A file of one's own: chosen with the keyboard, then dropped.
async function files(page) {
  await page.selectOption("#model", "classifier");
  const own = new URL("../src/examples/classifier.attacked.png", import.meta.url).pathname;
  const chosen = page.waitForEvent("filechooser"); // before the focus, so that the browser knows of it when the key comes
  await page.locator("#drop").focus();
  await page.waitForTimeout(200);
  await page.keyboard.press("Enter");
  await (await chosen).setFiles(own);
  assert.equal((await settled(page)).state, "alarm");
  assert.equal(await words(page, "input"), "classifier.attacked.png");
  assert.match(await page.locator("#curl").textContent(), /^curl \S+ \\\n  -F image=@classifier.attacked.png /);
  await page.evaluate(async () => {
    const answer = await fetch("/examples/classifier/clean.png");
    const transfer = new DataTransfer();
    transfer.items.add(new File([await answer.blob()], "dropped.png", { type: "image/png" }));
    document.querySelector("#drop").dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
  });
  assert.equal((await settled(page)).state, "quiet");
  assert.equal(await words(page, "input"), "dropped.png");
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
  for (const [width, height, colorScheme] of [[1440, 1000, "light"], [390, 844, "light"], [1440, 1000, "dark"], [390, 844, "dark"]]) {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme });
    const faults = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("request", (request) => /^(data:|blob:)/.test(request.url()) || request.url().startsWith(address) || faults.push(request.url()));
    await page.goto(address, { waitUntil: "networkidle", timeout: patience });
    const shot = (name) => page.screenshot({ path: `${shots}/${width}-${colorScheme}-${name}.png`, fullPage: true });
    if (colorScheme === "dark") {
      await keyboard(page);
      await command(page);
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
        await command(page);
        await files(page);
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
