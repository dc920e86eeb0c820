// Generates types with openapi-typescript, compiles a typed program against them, and evaluates a
// kernel with it.
//
//     node eval_typescript.mjs SPEC SERVER [API_KEY]
//
// SPEC is what `warpgauge openapi --client` prints, SERVER a URL. Run it in a folder where
// `npm install openapi-typescript@7 openapi-fetch@0.15 typescript@5` has been run.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [spec, server, key = "none"] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const tools = resolve("node_modules", ".bin");
// Inside the folder with node_modules, where modules are looked up.
const work = mkdtempSync(join(process.cwd(), "typescript-client-"));
const run = (tool, ...args) => execFileSync(join(tools, tool), args, { stdio: "inherit" });
try {
  run("openapi-typescript", resolve(spec), "-o", join(work, "schema.d.ts"));
  copyFileSync(join(here, "eval_typescript.ts"), join(work, "client.mts"));
  run("tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--outDir", work,
    "--skipLibCheck", "false", join(work, "client.mts"));
  const { evaluate } = await import(pathToFileURL(join(work, "client.mjs")).href);
  await evaluate(resolve(spec), server, key);
} finally {
  rmSync(work, { recursive: true });
}
