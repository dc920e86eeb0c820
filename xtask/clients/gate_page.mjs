// Opens the gate's page in a browser, from a file: it must show what it has without fetching anything.
//
//   node gate_page.mjs PAGE CHROMIUM        (in a directory whose node_modules has playwright-core)

import process from "node:process";
import { pathToFileURL } from "node:url";

import { finish, launch } from "./chromium.mjs";

const [path, executablePath] = process.argv.slice(2);
if (!path || !executablePath) {
  console.error("usage: node gate_page.mjs PAGE CHROMIUM");
  process.exit(2);
}
const url = pathToFileURL(path).href;
const problems = [];
const browser = await launch(executablePath);
try {
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 900 } });
    // Violations of the page's own policy are errors of the console.
    page.on("console", (message) => problems.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("dialog", (dialog) => problems.push(`a dialog: ${dialog.message()}`));
    page.on("request", (request) => {
      if (request.url() !== url) problems.push(`the page asked for ${request.url()}`);
    });
    await page.goto(url);
    const seen = await page.evaluate(() => {
      const inside = (inner, outer) =>
        inner.width > 0 && inner.left >= outer.left && inner.right <= outer.right;
      const drawing = document.querySelector("svg").getBoundingClientRect();
      const points = [...document.querySelectorAll("svg circle, svg path.point")];
      return {
        mode: document.compatMode,
        rows: document.querySelectorAll("tbody tr").length,
        points: points.length,
        pointsInside: points.every((point) => inside(point.getBoundingClientRect(), drawing)),
        wide: document.documentElement.scrollWidth > window.innerWidth,
        text: getComputedStyle(document.body).color,
        border: getComputedStyle(document.querySelector("td")).borderBottomStyle,
      };
    });
    const expect = (holds, what) => holds || problems.push(`${colorScheme}: ${what} ${JSON.stringify(seen)}`);
    expect(seen.mode === "CSS1Compat", "the page is read as an old one");
    expect(seen.rows === 6, "a case has no row");
    expect(seen.points >= 4 && seen.pointsInside, "points are missing, or outside of the drawing");
    expect(!seen.wide, "the page is wider than the window");
    expect(seen.border === "solid", "the style was not applied");
    const light = seen.text === "rgb(0, 0, 0)";
    expect(light === (colorScheme === "light"), "the text does not follow the colour scheme");
    await page.close();
  }
} catch (error) {
  problems.push(String(error));
} finally {
  await browser.close();
}
finish(problems, "the page shows every case, in light and dark, and fetches nothing");
