// Chromium, as the checks start it.

import { createRequire } from "node:module";
import process from "node:process";

const { chromium } = createRequire(`${process.cwd()}/`)("playwright-core");

// Playwright gives every launch a fresh profile directory.
export const launch = (executablePath) =>
  chromium.launch({
    executablePath,
    headless: true,
    chromiumSandbox: false,
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });

// Shows the problems, or that there are none, and ends with the status that says the same.
export function finish(problems, success) {
  for (const problem of problems) console.error(problem);
  if (problems.length === 0) console.log(success);
  process.exit(problems.length === 0 ? 0 : 1);
}
