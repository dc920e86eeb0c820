// Compiled by eval_typescript.mjs against the generated schema: what does not fit fails to compile.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { getBuiltinModule(name: "fs"): { readFileSync(path: string, as: "utf8"): string } };

// Longest wait for the end of a job.
const PATIENCE_MS = 120_000;

type Schemas = components["schemas"];

function ensure(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(`not as expected: ${JSON.stringify(what)}`);
}

export async function evaluate(spec: string, server: string, key: string): Promise<void> {
  const document = JSON.parse(process.getBuiltinModule("fs").readFileSync(spec, "utf8"));
  const contract: Schemas["EvaluateRequest"] =
    document.paths["/evaluate"].post.requestBody.content["application/json"].example;
  const client = createClient<paths>({ baseUrl: server, headers: { "X-API-Key": key } });

  const answer = await client.POST("/evaluate", { body: contract });
  ensure(answer.response.status === 200 && answer.data !== undefined, answer.error);
  ensure("kernel_exec_result" in answer.data, answer.data);
  const result: Schemas["KernelExecResult"] = answer.data.kernel_exec_result;
  ensure(result.compiled && result.correctness === true, result);

  ensure((answer.data.device?.memory_bytes ?? 0) > 0xffffffff, answer.data.device);

  const later = await client.POST("/jobs", { body: { jobs: [{ kind: "evaluate", request: contract }] } });
  ensure(later.response.status === 202 && later.data !== undefined, later.error);
  const job_id = later.data.jobs[0]!.job_id;
  const deadline = Date.now() + PATIENCE_MS;
  let job: Schemas["JobView"] | undefined;
  while (job?.state !== "completed") {
    ensure(Date.now() < deadline, job);
    job = (await client.GET("/jobs/{job_id}", { params: { path: { job_id } } })).data;
  }
  ensure(job.result?.kernel_exec_result.correctness === true, job);

  const refused = await client.POST("/evaluate", { body: { kernel: { kernel_type: "cuda" } } });
  ensure(refused.error !== undefined && refused.response.status === 400, refused.data);
  const problems: Schemas["ValidationError"][] = refused.error.validation_errors ?? [];
  ensure(problems.length > 0, refused.error);

  const health = await client.GET("/health");
  ensure(health.data !== undefined, health.error);
  console.log(`openapi-typescript: median ${result.runtime_stats?.median} ms`);
}
