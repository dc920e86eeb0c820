// Opens /docs in a browser and evaluates the example that Swagger UI offers, as a new user would; then finds the job in
// the list at / and reads its report, visits the other lists, submits an example at /submit, and imports a report at
// /import. axe checks each page for barriers.
//
//   node browser.mjs SERVER_URL CHROMIUM REPORT   (in a directory whose node_modules has playwright-core and axe-core)

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";

import { finish, launch } from "./chromium.mjs";

const [url, executablePath, report] = process.argv.slice(2);
if (!url || !executablePath || !report) {
  console.error("usage: node browser.mjs SERVER_URL CHROMIUM REPORT");
  process.exit(2);
}

const PAGE_TIMEOUT_MS = 30_000;
// A first evaluation on an emulated device includes a compilation and minutes of patience in CI.
const ANSWER_TIMEOUT_MS = 120_000;

const axe = readFileSync(createRequire(`${process.cwd()}/`).resolve("axe-core/axe.min.js"), "utf8");

const browser = await launch(executablePath);

const problems = [];
const elsewhere = [];
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(PAGE_TIMEOUT_MS);
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) problems.push(message.text());
  });
  page.on("request", (request) => {
    const target = request.url();
    if (!target.startsWith(url) && !target.startsWith("data:")) elsewhere.push(target);
  });

  await page.goto(`${url}/docs`);
  const tryOut = async (path) => {
    const operation = page.locator(".opblock-post", {
      has: page.locator(`.opblock-summary-path[data-path="${path}"]`),
    });
    // Some versions open every operation, some open none.
    if ((await operation.locator(".try-out__btn").count()) === 0) {
      await operation.locator(".opblock-summary").click();
    }
    await operation.locator(".try-out__btn").click();
    return operation;
  };
  const paths = page.locator(".opblock-summary-path");
  await paths.first().waitFor();
  const first = await paths.first().getAttribute("data-path");
  if (first !== "/evaluate") problems.push(`the first operation is ${first}, not /evaluate`);
  const cleanup = await tryOut("/admin/cleanup-jobs");
  const age = await cleanup.locator('tr[data-param-name="older_than_s"] input').inputValue();
  if (age !== "2592000") problems.push(`the clean-up is filled in with an age of ${age} s, not 30 days`);

  const operation = await tryOut("/evaluate");
  await operation.locator("button.execute").click();
  const response = operation.locator(".live-responses-table");
  await response.waitFor({ timeout: ANSWER_TIMEOUT_MS });
  const text = await response.innerText();
  const compiled = /"compiled":\s*true/.test(text);
  if (!compiled) problems.push(`the answer does not say "compiled": true:\n${text.slice(0, 4000)}`);

  await page.goto(url);
  await page.locator("table a").first().click();
  await page.waitForURL(/\/jobs\/[^/]+$/);
  const verdict = page.locator(".verdict .word");
  if (!/correct/i.test(await verdict.innerText())) problems.push(`the report says ${await verdict.innerText()}`);
  // Narrow and wide, light and dark: nothing is wider than the screen, and axe finds no barrier.
  const look = async (what) => {
    for (const width of [360, 1280]) {
      for (const colorScheme of ["light", "dark"]) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        if (beyond > 0) problems.push(`${what} is ${beyond} px wider than a screen of ${width} px`);
        await page.evaluate(axe);
        const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
        if (passes.length < 5) problems.push(`axe checked only ${passes.length} rules of ${what}`);
        for (const { id, help, nodes } of violations) {
          problems.push(`${what}, ${width} px, ${colorScheme}: ${id}: ${help}: ${nodes[0].html}`);
        }
      }
    }
  };
  await look("the report");
  for (const name of ["Jobs", "Devices", "History"]) {
    await page.locator("header nav a", { hasText: name }).click();
    await page.locator("h1").waitFor();
    await look(page.url());
  }
  await page.goto(url);
  await page.locator("nav.filters a", { hasText: "evaluate" }).click();
  if ((await page.locator("table a").count()) === 0) problems.push("the filter by kind shows no evaluation");
  await page.locator("table a").first().click();
  // Without its style sheet the verdict has no edge.
  const edge = await page.locator(".verdict").evaluate((box) => getComputedStyle(box).borderLeftWidth);
  if (edge === "0px") problems.push("the report has no style");
  // Every part folds out by the keyboard alone.
  const folded = page.locator("details:not([open]) > summary").first();
  await folded.focus();
  await page.keyboard.press("Enter");
  if ((await page.locator("details[open] > summary:focus").count()) !== 1) problems.push("a part does not fold out");

  await page.goto(url);
  await look("the list of jobs");
  await page.getByRole("link", { name: "Submit" }).click();
  await page.getByRole("link", { name: "vector_add" }).click();
  await look("the form for kernels");
  await page.getByLabel("Kernel", { exact: true }).fill("__global__ void k(float* x");
  await page.getByRole("button", { name: "Evaluate" }).click();
  await page.getByText("not accepted").or(page.getByText("not compiled")).first().waitFor();
  await page.goto(`${url}/submit?example=vector_add`);
  await page.getByLabel("Label").fill("from a browser");
  await page.getByRole("button", { name: "Evaluate" }).click();
  await page.waitForURL(/\/jobs\/[^/]+$/);
  // The page of a job reloads itself until the job has ended.
  await page.locator(".verdict .word", { hasText: /^correct/i }).waitFor({ timeout: ANSWER_TIMEOUT_MS });

  await page.getByRole("link", { name: "Import" }).click();
  await look("the form for reports");
  await page.getByLabel("Report", { exact: true }).setInputFiles(report);
  await page.getByRole("button", { name: "Import" }).click();
  await page.waitForURL(/\/import$/);
  await page.locator(".verdict").waitFor();
  await look("the imported report");
} catch (error) {
  problems.push(String(error));
} finally {
  await browser.close();
}
// The page must work without a network.
if (elsewhere.length > 0) problems.push(`the page asked others: ${elsewhere.join(" ")}`);
finish(problems, 'the page shows "compiled": true, and the report of the job');
