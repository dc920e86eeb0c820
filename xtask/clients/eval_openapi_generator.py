"""Generates a Python client with openapi-generator and evaluates a kernel through it.

    python eval_openapi_generator.py SPEC SERVER [API_KEY]

SPEC is what `warpgauge openapi --client` prints, SERVER a URL. Needs java and openapi-generator-cli on the PATH,
and the packages that generated clients use: pydantic, python-dateutil, urllib3, typing-extensions.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

# Longest wait for the end of a job, seconds.
PATIENCE_S = 120


def main(spec: str, server: str, key: str = "none") -> None:
    contract = json.loads(pathlib.Path(spec).read_text())["paths"]["/evaluate"]["post"]
    contract = contract["requestBody"]["content"]["application/json"]["example"]
    with tempfile.TemporaryDirectory() as out:
        generated = subprocess.run(
            ["openapi-generator-cli", "generate", "-g", "python", "-i", spec, "-o", out,
             "--package-name", "warpgauge_client"],
            capture_output=True, text=True)
        if generated.returncode != 0:
            sys.exit(f"the generator failed:\n{generated.stdout}{generated.stderr}")
        sys.path.insert(0, out)
        evaluate_with_client(contract, server, key)


def evaluate_with_client(contract: dict, server: str, key: str) -> None:
    import warpgauge_client as wg
    from warpgauge_client.exceptions import BadRequestException

    configuration = wg.Configuration(host=server, api_key={"ApiKey": key})
    with wg.ApiClient(configuration) as client:
        kernels, jobs, machine = wg.KernelsApi(client), wg.JobsApi(client), wg.MachineApi(client)
        request = wg.EvaluateRequest.from_dict(contract)
        # As text, since 1.0 == 1 in Python, but not in a contract. What may be any value comes as None
        # where it is left out.
        fields = {name: value for name, value in request.to_dict().items() if value is not None}
        sent = json.dumps(fields, sort_keys=True)
        assert sent == json.dumps(contract, sort_keys=True), f"the model changed the contract: {sent}"

        report = kernels.evaluate(request)
        assert isinstance(report, wg.EvaluateResponse), report
        assert report.kernel_exec_result.compiled is True, report
        assert report.kernel_exec_result.correctness is True, report
        assert report.kernel_exec_result.runtime_stats.median > 0, report

        assert report.device.memory_bytes > 0xffffffff, report.device

        item = wg.BatchItem(kind="evaluate", request=request.to_dict())
        accepted = jobs.submit_jobs(wg.Batch(jobs=[item])).jobs[0]
        assert isinstance(accepted, wg.Accepted), accepted
        deadline = time.monotonic() + PATIENCE_S
        while (job := jobs.get_job(accepted.job_id)).state != wg.JobState.COMPLETED:
            assert time.monotonic() < deadline, job
        assert job.result.kernel_exec_result.correctness is True, job
        assert isinstance(jobs.get_job_state(accepted.job_id), wg.LegacyJob)

        once = wg.EvaluateRequest.from_dict({**contract, "return_outputs": ["c"]})
        assert isinstance(kernels.execute(once), wg.EvaluateResponse)
        compiled = kernels.compile(wg.CompileRequest.from_dict({"kernel": contract["kernel"]}))
        assert compiled.compiled is True, compiled

        try:
            kernels.evaluate(wg.EvaluateRequest.from_dict({"kernel": {"kernel_type": "cuda"}}))
            raise AssertionError("a contract without a kernel was accepted")
        except BadRequestException as refused:
            assert refused.data.validation_errors, refused.data

        for operation in (machine.capabilities, machine.cuda_info, machine.devices, machine.health,
                          machine.info):
            assert operation() is not None, operation
    print(f"openapi-generator: median {report.kernel_exec_result.runtime_stats.median} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
