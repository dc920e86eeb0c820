"""`/execute_spmv` with a large matrix as JSON and as MessagePack: time, and memory of the server.

    python python/benches/bodies.py path/to/warpgauge [ENTRIES] [--device WHICH]

The server is started once for each form, and sends a product of a random matrix (16 entries in each row,
10 million in all) three times: JSON with lists of numbers, JSON with base64 texts, and MessagePack with bytes. The
least of the three counts. Encoding is told apart from what request and answer take; peak memory is the server's
(VmHWM) less that before. Needs NumPy and msgpack.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

import msgpack
import numpy as np
from resident import resident

import warpgauge

KERNEL = """extern "C" __global__ void csr_spmv_kernel(int rows, const float* values, const int* columns,
    const int* row_ptr, const float* x, float* y) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; i++) sum += values[i] * x[columns[i]];
    y[row] = sum;
}"""


def matrix(entries: int, form: str) -> dict[str, Any]:
    rows = entries // 16
    numbers = np.random.default_rng(1)
    arrays = {
        "values": numbers.standard_normal(rows * 16).astype("<f4"),
        "col_indices": np.sort(numbers.integers(0, rows, (rows, 16)), axis=1).astype("<i4").ravel(),
        "row_ptr": np.arange(0, rows * 16 + 1, 16, dtype="<i4"),
        "x": numbers.standard_normal(rows).astype("<f4"),
    }
    shape = {
        "lists": lambda array: array.tolist(),
        "base64": lambda array: base64.b64encode(array.tobytes()).decode(),
        "bytes": lambda array: array.tobytes(),
    }[form]
    return {"num_rows": rows, "num_cols": rows, "nnz": rows * 16} | {name: shape(a) for name, a in arrays.items()}


def sent(url: str, body: bytes, kind: str) -> tuple[float, dict[str, Any]]:
    """Seconds from the request to the answer, and what steps took in the server, ms."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=600)
    began = time.perf_counter()
    connection.request("POST", "/execute_spmv", body, {"Content-Type": f"application/{kind}"})
    text = connection.getresponse().read()
    took = time.perf_counter() - began
    answer = json.loads(text)
    if not answer.get("success"):
        raise SystemExit(str(answer)[:500])
    connection.request("GET", f"/jobs/{answer['job_id']}")
    timings: dict[str, Any] = json.loads(connection.getresponse().read())["result"]["timings"]
    connection.close()
    return took, timings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("entries", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    print(
        "| body | MB | encoding, s | request to answer, s | of it in the server, s | memory more, MiB | by the body |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    steps = []
    forms = [
        ("JSON, lists", "lists", "json"),
        ("JSON, base64", "base64", "json"),
        ("MessagePack, bytes", "bytes", "msgpack"),
    ]
    for label, form, kind in forms:
        request = {
            "kernel": KERNEL,
            "num_runs": 10,
            "options": {"kernel_type": "cuda", "timeout": 300},
            "matrix_data": matrix(options.entries, form),
        }
        began = time.perf_counter()
        body = json.dumps(request).encode() if kind == "json" else msgpack.packb(request)
        encoding = time.perf_counter() - began
        del request
        with warpgauge.serve(device=options.device, program_path=options.program) as server:
            idle = resident(server.pid, "VmRSS")
            answers = [sent(server.url, body, kind) for _ in range(3)]
            more = resident(server.pid, "VmHWM") - idle
        taken = min(took for took, _ in answers)
        inside = min(timings["total"] for _, timings in answers) / 1e3
        size = len(body) / 1e6
        print(
            f"| {label} | {size:.0f} | {encoding:.2f} | {taken:.2f} | {inside:.2f} | {more:.0f} | "
            f"{more * 1.048576 / size:.2f} |",
            flush=True,
        )
        last = answers[-1][1]
        steps.append(f"{label}, the last, ms: " + ", ".join(f"{step} {ms:.0f}" for step, ms in last.items()))
    print("\n" + "\n".join(steps))


if __name__ == "__main__":
    main()
