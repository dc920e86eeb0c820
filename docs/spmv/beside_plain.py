#!/usr/bin/env python3
"""cuSPARSE through a running server beside the same call in a plain CUDA program (`plain.cu`).

    beside_plain.py --program PLAIN [--server URL] [--runs N] [--rounds N] [--measure JSON] [MATRIX ...]

Both multiply matrices of the same structure, in turns; each round has a mean of N launches of either. A table of
the medians over rounds is printed as Markdown.
"""
import argparse
import json
import statistics
import subprocess
import urllib.error
import urllib.request

MATRICES = [
    "poisson2d:nx=1024",
    "poisson3d:nx=128",
    "banded:n=1000000,half=8",
    "diagonal:n=8000000",
    "banded:n=4000000,half=12",
]


def through(server, name, runs, measure):
    """Mean of the launches at the server, ms."""
    body = {"mtx_filename": name, "method": "cusparse", "num_runs": runs, "options": {"timeout": 300, "measure": measure}}
    request = urllib.request.Request(server + "/execute_spmv_mtx", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            told = json.load(answer)
    except urllib.error.HTTPError as error:
        told = json.load(error)
    if not told.get("success"):
        raise SystemExit(f"{name}: {json.dumps(told)[:2000]}")
    return told["result"]["execution_time_ms"]


def plain(program, name, runs):
    said = subprocess.run([program, str(runs), name], check=True, capture_output=True, text=True).stdout
    _, mean, _, _, nnz = said.split()
    return float(mean), int(nnz)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="http://127.0.0.1:8000")
    parser.add_argument("--program", required=True)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", type=json.loads, default={}, help="as in contracts: {\"regime\": \"sustained\"}")
    parser.add_argument("matrices", nargs="*", default=MATRICES)
    given = parser.parse_args()
    print("| matrix | entries | through the server | plain program | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for name in given.matrices:
        here, there, nnz = [], [], 0
        for _ in range(given.rounds):
            here.append(1e3 * through(given.server, name, given.runs, given.measure))
            mean, nnz = plain(given.program, name, given.runs)
            there.append(1e3 * mean)
        a, b = statistics.median(here), statistics.median(there)
        spread = lambda values: (max(values) - min(values)) / 2
        print(f"| `{name}` | {nnz} | {a:.2f} µs ± {spread(here):.2f} | {b:.2f} µs ± {spread(there):.2f} | {a / b:.3f} |",
              flush=True)


if __name__ == "__main__":
    main()
