// Opens /docs in a browser and evaluates the example that Swagger UI offers, as a new user would; then finds the job in
// the list at / and reads its report, visits the other lists, submits an example at /submit, watches the list and a job
// that waits, and imports a report at /import. axe checks each page for barriers.
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

// Number of jobs before the one whose page is watched.
const AHEAD = 2;

// A kernel that never ends.
const ENDLESS = {
  kernel: {
    kernel_type: "cuda",
    source_code: 'extern "C" __global__ void k(volatile int* out) { while (*out != 12345) {} }',
    metadata: { kernel_name: "k" },
    io: {
      args: [
        {
          name: "out",
          type: "tensor",
          role: "inout",
          tensor_spec: { shape: [1], dtype: "int32", init: { kind: "zeros" } },
        },
      ],
      launch: { grid: { x: 1 }, block: { x: 1 } },
    },
  },
  num_trials: 1,
  timeout: 300,
};

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
  await page.locator(".verdict .word", { hasText: /^correct/i }).waitFor({ timeout: ANSWER_TIMEOUT_MS });

  // The page of a job behind others that do not end by themselves. Its label is no markup.
  const ask = async (path, method, body) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
    if (!answer.ok) problems.push(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const hostile = "<img src=x onerror=globalThis.ran=1>";
  const { devices } = await ask("/devices", "GET");
  // The server takes two jobs for each device from its queue.
  const before = Array(2 * devices.length + AHEAD).fill({ kind: "evaluate", label: hostile, request: ENDLESS });
  const { jobs } = await ask("/jobs", "POST", { jobs: before });
  const cancel = (job) => ask(`/jobs/${job.job_id}`, "DELETE");
  // The list of jobs counts a new job, and shows its end, without a reload. It copies a label as text.
  await page.goto(url);
  await page.locator("#jobs tbody tr").first().waitFor();
  await page.evaluate(() => (globalThis.kept = true));
  const { jobs: extra } = await ask("/jobs", "POST", { jobs: [{ kind: "evaluate", label: hostile, request: ENDLESS }] });
  const added = page.locator("#new-jobs", { hasText: /^1 new job$/ });
  await added.waitFor({ timeout: ANSWER_TIMEOUT_MS });
  if (!(await page.evaluate(() => globalThis.kept))) problems.push("the list of jobs was loaded again");
  await look("the list with a new job");
  await added.click();
  const listed = page.locator(`tr[data-job="${extra[0].job_id}"]`);
  await listed.waitFor();
  await page.evaluate(() => (globalThis.kept = true));
  const focus = listed.locator("a").first();
  await focus.focus();
  await cancel(extra[0]);
  await listed.locator(".tag", { hasText: "cancelled" }).waitFor({ timeout: ANSWER_TIMEOUT_MS });
  if (!(await page.evaluate(() => globalThis.kept))) problems.push("the list of jobs was loaded again");
  if (!(await focus.evaluate((one) => one === document.activeElement))) problems.push("the list lost the focus");

  await page.goto(`${url}/submit?example=vector_add`);
  await page.getByLabel("Label").fill(hostile);
  const loads = [];
  page.on("framenavigated", (frame) => loads.push(frame.url()));
  await page.getByRole("button", { name: "Evaluate" }).click();
  await page.waitForURL(/\/jobs\/[^/]+$/);
  await page.evaluate(() => (globalThis.kept = true));
  const place = (text) => page.locator('[data-live="queue"]', { hasText: text }).waitFor({ timeout: ANSWER_TIMEOUT_MS });
  await place(`${AHEAD} jobs of the same caller before it`);
  await look("the page of a waiting job");
  // The place changes in the page that is there.
  await cancel(jobs.pop());
  await place("1 job of the same caller before it");
  await cancel(jobs.pop());
  await place("no job of the same caller is before it");
  if (!(await page.evaluate(() => globalThis.kept))) problems.push("the page of a waiting job was loaded again");
  for (const job of jobs) await cancel(job);
  await page.locator(".verdict .word", { hasText: /^correct/i }).waitFor({ timeout: ANSWER_TIMEOUT_MS });
  // The first load, and the one after the end.
  const own = loads.filter((address) => address === page.url());
  if (own.length !== 2) problems.push(`the page of the job was loaded ${own.length} times, not twice`);
  const scripts = await page.locator("script").count();
  if (scripts !== 0) problems.push(`the page of an ended job has ${scripts} scripts`);
  if (await page.evaluate(() => globalThis.ran !== undefined)) problems.push("a label ran as a script");

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
