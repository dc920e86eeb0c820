#!/usr/bin/env python3
"""`/execute_spmv` with a large matrix as JSON and as MessagePack: time, and memory of the server.

    bodies.py PROGRAM [ENTRIES] [--device WHICH]

Starts `PROGRAM serve`, once for each form, and sends a product of a random matrix (16 entries in each row,
10 million in all) three times: JSON with lists of numbers, JSON with base64 texts, and MessagePack with bytes. The
least of the three counts. Encoding is told apart from what request and answer take; peak memory is the server's
(VmHWM) less that before. Needs NumPy and msgpack.
"""
import argparse
import base64
import http.client
import json
import re
import subprocess
import threading
import time

import msgpack
import numpy as np

KERNEL = """extern "C" __global__ void csr_spmv_kernel(int rows, const float* values, const int* columns,
    const int* row_ptr, const float* x, float* y) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; i++) sum += values[i] * x[columns[i]];
    y[row] = sum;
}"""


class Server:
    def __init__(self, program, device):
        self.process = subprocess.Popen(
            [program, "serve", "--host", "127.0.0.1", "--port", "0", "--device", device],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        for line in self.process.stdout:
            if "http://" in line:
                self.place = line.split("http://", 1)[1].split("/")[0].split()[0].rstrip(".,;")
                break
        else:
            raise SystemExit("the server did not start")
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()

    def memory(self, field):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(rf"{field}:\s+(\d+) kB", file.read()).group(1)) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


def matrix(entries, form):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("entries", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    print("| body | MB | encoding, s | request to answer, s | of it in the server, s | memory more, MiB | by the body |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    steps = []
    for label, form, kind in (("JSON, lists", "lists", "json"), ("JSON, base64", "base64", "json"),
                              ("MessagePack, bytes", "bytes", "msgpack")):
        request = {"kernel": KERNEL, "num_runs": 10, "options": {"kernel_type": "cuda", "timeout": 300},
                   "matrix_data": matrix(options.entries, form)}
        began = time.perf_counter()
        body = json.dumps(request).encode() if kind == "json" else msgpack.packb(request)
        encoding = time.perf_counter() - began
        del request
        server = Server(options.program, options.device)
        idle, taken, inside = server.memory("VmRSS"), [], []
        for _ in range(3):
            connection = http.client.HTTPConnection(server.place, timeout=600)
            began = time.perf_counter()
            connection.request("POST", "/execute_spmv", body, {"Content-Type": f"application/{kind}"})
            answer = connection.getresponse()
            text = answer.read()
            taken.append(time.perf_counter() - began)
            is_json = "json" in answer.getheader("Content-Type", "")
            result = json.loads(text) if is_json else msgpack.unpackb(text)
            if not result.get("success"):
                raise SystemExit(f"{answer.status}: {text[:500]}")
            inside.append(result["result"]["total_time_ms"] / 1e3)
            connection.request("GET", f"/jobs/{result['job_id']}")
            timings = json.loads(connection.getresponse().read())["result"]["timings"]
        more = server.memory("VmHWM") - idle
        server.stop()
        print(f"| {label} | {len(body) / 1e6:.0f} | {encoding:.2f} | {min(taken):.2f} | {min(inside):.2f} | {more:.0f} | "
              f"{more * 1.048576 / (len(body) / 1e6):.2f} |", flush=True)
        steps.append(f"{label}, the last, ms: " + ", ".join(f"{step} {ms:.0f}" for step, ms in timings.items()))
    print("\n" + "\n".join(steps))


if __name__ == "__main__":
    main()
