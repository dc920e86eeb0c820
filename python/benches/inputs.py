"""Evaluations whose input is a shared tensor on the device: copied there, or through the host.

    python python/benches/inputs.py path/to/warpgauge [MIB ...]

A kernel reads one element, so that what is timed is what comes before it: a request and its answer, three of each kind
in turn, after one of each. A copy goes through the host where the request has an idempotency key. Beside them an input
that the device generates.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from typing import Any

import numpy as np
from resident import resident

import warpgauge
from warpgauge import TensorClient

SOURCE = """extern "C" __global__ void first(const float* x, float* y) {
    if (blockIdx.x == 0 && threadIdx.x == 0) y[0] = x[0];
}"""

KEYS = itertools.count()


def evaluated(url: str, spec: dict[str, Any], key: bool) -> tuple[float, dict[str, Any]]:
    """Seconds until the answer, and the answer."""
    args = [
        {"name": "x", "type": "tensor", "role": "input", "tensor_spec": spec},
        {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [1]}},
    ]
    kernel = {
        "kernel_type": "cuda",
        "source_code": SOURCE,
        "metadata": {"kernel_name": "first"},
        "io": {"args": args, "launch": {"grid": {"x": 1}, "block": {"x": 32}}},
    }
    body = json.dumps({"kernel": kernel, "num_trials": 3}).encode()
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = f"inputs-{next(KEYS)}"
    began = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/evaluate", body, headers)) as answer:
        report = json.load(answer)
    took = time.perf_counter() - began
    assert report["status"] == "success" and report["kernel_exec_result"]["runtime"], report
    return took, report


def main() -> None:
    sizes = [int(mib) for mib in sys.argv[2:]] or [64, 1024]
    with warpgauge.serve(device="0", program_path=sys.argv[1]) as server, TensorClient(url=server.url) as client:
        print("| input | stays on the device, s | through the host, s | generated, s |\n| --- | ---: | ---: | ---: |")
        for mib in sizes:
            count = mib << 18
            with tempfile.NamedTemporaryFile(suffix=".npy", dir="/dev/shm") as file:
                np.save(file, np.ones(count, np.float32))
                file.flush()
                tensor_id = client.upload_file(file.name, cuda_device=0)
            named = {"data": {"tensor_id": tensor_id}}
            ways = [(named, False), (named, True), ({"shape": [count], "init": {"kind": "arange"}}, False)]
            seconds: list[list[float]] = [[], [], []]
            for _ in range(4):
                for of_way, (spec, key) in zip(seconds, ways, strict=True):
                    took, report = evaluated(server.url, spec, key)
                    of_way.append(took)
                    where = [used.get("device") for used in report.get("tensors", [])]
                    assert where == ([] if spec is not named else [None if key else "cuda:0"]), where
            medians = [f"{statistics.median(of_way[1:]):.3f}" for of_way in seconds]
            print(f"| {mib} MiB | {' | '.join(medians)} |", flush=True)
            client.delete_tensor(tensor_id)
        print(f"\nmemory of the server: {resident(server.pid, 'VmHWM'):.0f} MiB at most")


if __name__ == "__main__":
    main()
