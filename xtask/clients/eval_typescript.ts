// Compiled by eval_typescript.mjs against the generated schema: what does not fit fails to compile.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { getBuiltinModule(name: "fs"): { readFileSync(path: string, as: "utf8"): string } };

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

  const later = await client.POST("/evaluate", { params: { query: { wait: false } }, body: contract });
  ensure(later.response.status === 202 && later.data !== undefined, later.error);
  const job = await client.GET("/jobs/{job_id}", { params: { path: { job_id: later.data.job_id } } });
  ensure(job.data !== undefined && job.data.job_id === later.data.job_id, job.error);

  const refused = await client.POST("/evaluate", { body: { kernel: { kernel_type: "cuda" } } });
  ensure(refused.error !== undefined && refused.response.status === 400, refused.data);
  const problems: Schemas["ValidationError"][] = refused.error.validation_errors ?? [];
  ensure(problems.length > 0, refused.error);

  const health = await client.GET("/health");
  ensure(health.data !== undefined, health.error);
  console.log(`openapi-typescript: median ${result.runtime_stats?.median} ms`);
}
