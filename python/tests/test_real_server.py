"""The client at a real server, with the emulated device."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from conftest import LAUNCH, VECTOR_ADD

import warpgauge
from warpgauge import ApiError, AsyncClient, Client, JobFailedError, Out, Tensor, progress

N = 1000
SPIN = "__global__ void spin(int* x) { while (atomicAdd(x, 0) == 0) {} }"


def arguments() -> dict[str, Any]:
    a = np.arange(N, dtype="f4")
    return {"a": a, "b": np.full(N, 2, ">f4"), "c": Out(np.empty(N, "f4")), "n": N}


def test_arrays_go_and_come_back(client: Client) -> None:
    want = np.arange(N, dtype="f4") + 2
    report = client.evaluate(VECTOR_ADD, arguments(), launch=LAUNCH, expected={"c": want}, num_trials=3)
    assert report.correct is True and report.median_us and len(report.samples_ms) == 3
    np.testing.assert_array_equal(report.outputs["c"], want)
    wrong = client.evaluate(VECTOR_ADD, arguments(), launch=LAUNCH, expected={"c": want + 1}, num_trials=3)
    assert wrong.correct is False and "expected" in wrong.explain()


def test_a_kernel_that_does_not_compile_is_a_report(client: Client) -> None:
    report = client.evaluate("__global__ void k() { nonsense }", launch={"grid": 1, "block": 1})
    assert report.verdict == "not_compiled" and report.correct is False and "nonsense" in report.explain()


def test_infinities_and_element_types_arrive(client: Client) -> None:
    source = 'extern "C" __global__ void k(float s, unsigned char* y) { y[0] = isinf(s) && s < 0; }'
    args = {"s": -np.inf, "y": Out(np.zeros(1, "u1"))}
    report = client.evaluate(source, args, launch={"grid": 1, "block": 1}, num_trials=1)
    assert report.outputs["y"][0] == 1


def test_comparisons_and_sweeps(client: Client) -> None:
    slower = VECTOR_ADD.replace("a[i] + b[i]", "a[i] + b[i] + a[i] * 0.0f")
    args = {**arguments(), "c": Tensor([N], role="output")}
    report = client.compare(VECTOR_ADD, {"slower": slower}, args, launch=LAUNCH, num_trials=3)
    assert report.verdict == "more_work" and report.correct and list(report.candidates) == ["slower"]
    axes = {"block": [32, 64]}
    launch = {"grid": "ceil_div(n, $block)", "block": "$block"}
    table = client.sweep(VECTOR_ADD, args, launch=launch, axes=axes, num_trials=2)
    assert [row["block"] for row in table.rows()] == [32, 64]


def test_a_job_is_followed_to_its_end(client: Client) -> None:
    job = client.submit(VECTOR_ADD, arguments(), launch=LAUNCH, num_trials=2, label="mine")
    events = list(job.events())
    assert events[-1]["event"] == "end" and events[-1]["state"] == "completed"
    known = set(warpgauge.models.Event.__annotations__)  # type: ignore[attr-defined]
    assert {"job_id", "state", "stage", "attempt", "trials_done", "elapsed_s"} <= set(events[-1]) & known
    report = job.wait(30)
    assert isinstance(report, warpgauge.Report)
    np.testing.assert_array_equal(report.outputs["c"], np.arange(N) + 2)
    assert job.status()["label"] == "mine" and job.cancel()["outcome"] == "ended"


def test_progress_of_a_real_job_reaches_its_bar(server: warpgauge.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(progress, "interactive", lambda: True)
    monkeypatch.setattr(progress, "_tqdm", lambda: lambda **_: MagicMock())
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    monkeypatch.setattr(progress.Bar, "show", lambda _, event: shown.append(event))
    args = {"x": warpgauge.InOut(np.zeros(1, "i4"))}
    with Client(server.url) as client:
        # It runs into its time limit, long after its news have begun to come.
        report = client.evaluate(SPIN, args, launch={"grid": 1, "block": 1}, timeout=2, label="seen")
    assert report.verdict == "failed"
    assert shown and {"stage", "trials_done", "state"} <= shown[0].keys()
    assert len({event["job_id"] for event in shown}) == 1 and shown[0]["job_id"] == report.job_id


def test_a_job_that_spins_is_cancelled(client: Client) -> None:
    args = {"x": warpgauge.InOut(np.zeros(1, "i4"))}
    job = client.submit(SPIN, args, launch={"grid": 1, "block": 1}, timeout=300)
    with pytest.raises(TimeoutError):
        job.wait(0.2)
    assert job.cancel()["outcome"] in ("cancelled", "stopping")
    with pytest.raises(JobFailedError, match="cancelled") as caught:
        job.wait(60)
    assert caught.value.state == "cancelled"


def test_a_cancelled_evaluation_is_cancelled_at_the_server(server: warpgauge.Server) -> None:
    async def main() -> str:
        async with AsyncClient(server.url) as client:
            args = {"x": warpgauge.InOut(np.zeros(1, "i4"))}
            call = client.evaluate(SPIN, args, launch={"grid": 1, "block": 1}, timeout=300, label="spinning")
            task = asyncio.create_task(call)
            jobs: list[Any] = []
            while not jobs or jobs[0]["state"] not in ("profiling", "validating"):
                listed = await client._transport.call("GET", "/jobs", params={"label": "spinning"})
                jobs = listed["jobs"]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            job = client.job(jobs[0]["job_id"])
            async for _ in job.events():
                pass
            return (await job.status())["state"]

    assert asyncio.run(asyncio.wait_for(main(), 120)) == "cancelled"


def test_errors_have_the_servers_words(client: Client) -> None:
    with pytest.raises(ApiError) as caught:
        client.evaluate(VECTOR_ADD, arguments(), launch={"grid": "zz", "block": 1})
    assert caught.value.code == "invalid_contract" and caught.value.path == "kernel.io.launch.grid.x"
    with pytest.raises(ApiError) as caught:
        client.job("no-such-job").wait()
    assert caught.value.status in (400, 404)


def test_many_in_order_through_map(client: Client) -> None:
    kernels = [VECTOR_ADD.replace("a[i] + b[i]", f"a[i] + b[i] + {i}.0f") for i in range(6)]
    reports = list(client.map(kernels, arguments(), launch=LAUNCH, num_trials=1, concurrency=3))
    assert [float(report.outputs["c"][0]) for report in reports] == [2.0 + i for i in range(6)]


def test_a_server_that_restarts_in_the_middle(program: Path, tmp_path: Path, own_data: Callable[[Path], None]) -> None:
    own_data(tmp_path)
    env = {"WARPGAUGE_DATA_DIR": str(tmp_path)}
    with warpgauge.serve(device="emulator", program_path=program, env=env) as first:
        port = int(first.url.rpartition(":")[2])
        with Client(first.url) as client:
            reports = client.map([VECTOR_ADD] * 12, arguments(), launch=LAUNCH, num_trials=1, concurrency=4)
            got = [next(reports)]
            first.kill()
            with warpgauge.serve(device="emulator", program_path=program, env=env, port=port):
                got += list(reports)
    assert [report.correct for report in got] == [None] * 12
    assert all(report.outputs["c"][1] == 3.0 for report in got)


def test_a_program_that_is_no_server_is_told(tmp_path: Path) -> None:
    program = tmp_path / "warpgauge"
    program.write_text("#!/bin/sh\necho something is wrong >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(warpgauge.ServerUnavailableError, match=r"ended with 3(.|\n)*something is wrong"):
        warpgauge.serve(program_path=program)
