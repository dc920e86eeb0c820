"""Generates a client with openapi-python-client and evaluates a kernel through it.

    python eval_openapi_python_client.py SPEC SERVER [API_KEY]

SPEC is what `warpgauge openapi --client` prints, SERVER a URL. Needs openapi-python-client on the PATH.
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
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "client"
        generated = subprocess.run(
            ["openapi-python-client", "generate", "--path", spec, "--meta", "none",
             "--output-path", str(out / "warpgauge_client"), "--fail-on-warning"],
            capture_output=True, text=True)
        if generated.returncode != 0:
            sys.exit(f"the generator failed:\n{generated.stdout}{generated.stderr}")
        sys.path.insert(0, str(out))
        evaluate_with_client(contract, server, key)


def evaluate_with_client(contract: dict, server: str, key: str) -> None:
    from warpgauge_client import AuthenticatedClient
    from warpgauge_client.api.jobs import get_job, get_job_state, submit_jobs
    from warpgauge_client.api.kernels import compile_, evaluate, execute
    from warpgauge_client.api.machine import capabilities, cuda_info, devices, health, info
    from warpgauge_client.models import (
        Accepted, Batch, BatchItem, CompileRequest, CompileResponse, ErrorBody, EvaluateRequest,
        EvaluateResponse, JobKind, JobState, JobView, LegacyJob)

    client = AuthenticatedClient(base_url=server, token=key, timeout=120, raise_on_unexpected_status=True)
    request = EvaluateRequest.from_dict(contract)
    # As text, since 1.0 == 1 in Python, but not in a contract.
    sent = json.dumps(request.to_dict(), sort_keys=True)
    assert sent == json.dumps(contract, sort_keys=True), f"the model changed the contract: {sent}"

    report = evaluate.sync(client=client, body=request)
    assert isinstance(report, EvaluateResponse), report
    assert report.kernel_exec_result.compiled is True, report
    assert report.kernel_exec_result.correctness is True, report
    assert report.kernel_exec_result.runtime_stats.median > 0, report

    assert report.device.memory_bytes > 0xffffffff, report.device

    item = BatchItem(kind=JobKind.EVALUATE, request=request.to_dict())
    accepted = submit_jobs.sync(client=client, body=Batch(jobs=[item])).jobs[0]
    assert isinstance(accepted, Accepted), accepted
    deadline = time.monotonic() + PATIENCE_S
    while (job := get_job.sync(accepted.job_id, client=client)).state != JobState.COMPLETED:
        assert time.monotonic() < deadline, job
    assert isinstance(job, JobView) and job.result.kernel_exec_result.correctness is True, job
    assert isinstance(get_job_state.sync(accepted.job_id, client=client), LegacyJob)

    once = EvaluateRequest.from_dict({**contract, "return_outputs": ["c"]})
    assert isinstance(execute.sync(client=client, body=once), EvaluateResponse)
    compiled = compile_.sync(
        client=client, body=CompileRequest.from_dict({"kernel": contract["kernel"]}))
    assert isinstance(compiled, CompileResponse) and compiled.compiled is True, compiled

    bad = EvaluateRequest.from_dict({"kernel": {"kernel_type": "cuda"}})
    refused = evaluate.sync(client=client, body=bad)
    assert isinstance(refused, ErrorBody) and refused.validation_errors, refused

    for operation in (capabilities, cuda_info, devices, health, info):
        answer = operation.sync(client=client)
        assert answer is not None and not isinstance(answer, ErrorBody), (operation, answer)
    print(f"openapi-python-client: median {report.kernel_exec_result.runtime_stats.median} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
