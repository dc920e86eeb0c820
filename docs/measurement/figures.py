#!/usr/bin/env python3
"""Measures what docs/measurement.md promises, on a running server with a GPU.

    figures.py [--server URL] [--runs N] [--out DIR] [parity] [same] [slower] [repeat]

parity   medians of eleven kernels beside nvbench's (package `cuda-bench`; needs PyTorch)
same     N comparisons of kernels with themselves, over ten cases: none may be faster or slower
slower   N comparisons with a kernel that does 2 % more, and as many with 5 %
repeat   medians of the same kernels, for comparing starts of the server (run it once for each)

Raw answers, less their samples, go to DIR as JSON lines; tables are printed as Markdown.
"""
import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request

ADD = """extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}"""
# LOOPS dependent multiply-adds a thread.
COMPUTE = """extern "C" __global__ void k(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = x * 0.5f + 1.0f;
    for (int l = 0; l < LOOPS; l++) y = fmaf(y, 0.999f, x);
    c[i] = y * 0.0f + 2.0f * x;
}"""
# Reads LOOPS rows of n × 16 bytes.
MEMORY = """extern "C" __global__ void k(const float4* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int l = 0; l < LOOPS; l++) { float4 v = a[(size_t)l * n + i]; s += v.x + v.y + v.z + v.w; }
    c[i] = s * 0.0f + 2.0f * a[i].x;
}"""


def tensor(name, count, role="input", seed=1):
    spec = {"shape": [count], "dtype": "float32"}
    if role == "input":
        spec["init"] = {"kind": "randn", "seed": seed}
    return {"name": name, "type": "tensor", "role": role, "tensor_spec": spec}


def kernel(source, args, n, loops):
    args = args + [{"name": "n", "type": "int", "value": n}]
    return {
        "source_code": source, "kernel_type": "cuda",
        "metadata": {"kernel_name": "k", "compiler_options": [f"-DLOOPS={loops}"]},
        "io": {"args": args, "launch": {"grid": {"x": (n + 255) // 256}, "block": {"x": 256}}},
    }


def add(n):
    return lambda loops: kernel(ADD, [tensor("a", n), tensor("b", n, seed=2), tensor("c", n, "output")], n, loops)


def compute(n):
    return lambda loops: kernel(COMPUTE, [tensor("a", n), tensor("c", n, "output")], n, loops)


def memory(n, rows):
    return lambda loops: kernel(MEMORY, [tensor("a", rows * n * 4), tensor("c", n, "output")], n, loops)


# name: (kernel of LOOPS, LOOPS, LOOPS for 2 % more time, for 5 %, preset). A kernel of a few
# microseconds spends part of its time on the launch, so that it needs more loops than per cent;
# what was injected is measured with `deep` and stands in the table.
CASES = {
    "memory, 60 µs": (memory(1 << 18, 54), 50, 51, 53, "ci"),
    "memory, 220 µs": (memory(1 << 20, 54), 50, 51, 53, "ci"),
    "compute, 39 µs": (compute(1 << 20), 1000, 1025, 1062, "ci"),
    "compute, 150 µs": (compute(1 << 22), 1000, 1023, 1056, "ci"),
    "short, 7 µs": (compute(1 << 18), 300, 318, 344, "ci"),
    "few blocks, 13 µs": (compute(1 << 13), 4000, 4170, 4420, "ci"),
}
SAME_ONLY = {
    "addition, 9 µs": (add(1 << 20), 0, 0, 0, "ci"),
    "addition, 65 µs": (add(1 << 24), 0, 0, 0, "ci"),
    "tiny, 4 µs": (add(256), 0, 0, 0, "ci"),
    "compute, 1.5 ms": (compute(1 << 24), 2500, 0, 0, "ci"),
}


class Server:
    def __init__(self, url, out):
        self.url, self.out = url, out
        os.makedirs(out, exist_ok=True)

    def post(self, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def keep(self, name, record):
        with open(os.path.join(self.out, name + ".jsonl"), "a") as file:
            file.write(json.dumps(record) + "\n")

    def compare(self, name, case, a, b):
        make, preset = case[0], case[4]
        began = time.time()
        answer = self.post("/compare", {
            "ref_kernel": make(a), "custom_kernel": make(b),
            "measure": {"preset": preset, "min_warmup_time": 0.0, "max_time": 5.0}, "num_trials": 20,
        })
        comparison = answer.get("comparison")
        if not comparison:
            raise SystemExit(f"{name}: not compared: {answer.get('not_compared')}")
        record = {"case": name, "a": a, "b": b, "seconds": time.time() - began}
        record.update({k: comparison.get(k) for k in (
            "verdict", "reasons", "speedup", "speedup_ci_low", "speedup_ci_high", "blocks_used",
            "blocks_dropped", "minimum_detectable_effect", "clock_induced", "margin")})
        record["block_sd"] = (comparison.get("time") or {}).get("block_sd")
        record["ref_ms"] = answer["ref_runtime"]["median"]
        record["device"] = answer["device"]["uuid"]
        return record


def upper_bound(hits, runs):
    """Upper 95 % limit of a probability (Clopper and Pearson, Biometrika 26, 1934), by bisection."""
    def tail(p):
        term, total = (1 - p) ** runs, 0.0
        for k in range(hits + 1):
            total += term
            term *= (runs - k) / (k + 1) * p / (1 - p)
        return total
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > 0.05 else (low, middle)
    return high


def same(server, runs):
    cases = {**CASES, **SAME_ONLY}
    total = wrong = 0
    print("| case | runs | faster | slower | same | inconclusive | median block SD |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, case in cases.items():
        count = {"faster": 0, "slower": 0, "same": 0, "inconclusive": 0}
        spreads = []
        for _ in range(max(1, runs // len(cases))):
            record = server.compare(name, case, case[1], case[1])
            server.keep("same", record)
            count[record["verdict"]] += 1
            spreads.append(record["block_sd"] or 0.0)
        total += sum(count.values())
        wrong += count["faster"] + count["slower"]
        spread = sorted(spreads)[len(spreads) // 2]
        print(f"| {name} | {sum(count.values())} | {count['faster']} | {count['slower']} | {count['same']} "
              f"| {count['inconclusive']} | {100 * spread:.2f} % |", flush=True)
    print(f"\n{wrong} of {total} wrong: at most {100 * upper_bound(wrong, total):.2f} % at 95 % confidence")


def slower(server, runs):
    print("| case | injected | runs | slower | blocks, median (largest) | seconds, median |\n|---|---:|---:|---:|---:|---:|")
    for column, label in ((2, "2 %"), (3, "5 %")):
        total = missed = 0
        for name, case in CASES.items():
            records = []
            for _ in range(max(1, runs // len(CASES))):
                record = server.compare(name, case, case[1], case[column])
                server.keep("slower", record)
                records.append(record)
            middle = len(records) // 2
            effects = sorted(1 / record["speedup"] - 1 for record in records)
            blocks = sorted(record["blocks_used"] + record["blocks_dropped"] for record in records)
            seconds = sorted(record["seconds"] for record in records)
            found = sum(record["verdict"] == "slower" for record in records)
            total, missed = total + len(records), missed + len(records) - found
            print(f"| {name} | {100 * effects[middle]:.2f} % | {len(records)} | {found} "
                  f"| {blocks[middle]} ({blocks[-1]}) | {seconds[middle]:.2f} |", flush=True)
        print(f"| all, {label} meant | | {total} | {total - missed} | missed: {missed}, at most "
              f"{100 * upper_bound(missed, total):.1f} % at 95 % confidence | |")


NVBENCH = r"""
import json, sys
import cuda.bench as bench, torch
n, out, inputs = int(sys.argv[1]), sys.argv[2], int(sys.argv[4])
source = open(sys.argv[3]).read()
k = torch.cuda._compile_kernel(source, "k")
def run(state):
    given = tuple(torch.randn(n, device="cuda") for _ in range(inputs))
    c = torch.empty(n, device="cuda")
    def launch(l):
        with torch.cuda.stream(torch.cuda.ExternalStream(l.get_stream().addressof())):
            k(((n + 255) // 256, 1, 1), (256, 1, 1), (*given, c, n))
    state.exec(launch)
bench.register(run)
bench.run_all_benchmarks(["nvbench", "--json", out])
"""

PARITY = [("addition", ADD, add, 1 << bits, 0) for bits in (18, 20, 22, 24, 26, 28)] + [
    ("compute", COMPUTE, compute, n, loops)
    for n, loops in ((1 << 18, 300), (1 << 20, 1000), (1 << 22, 1000), (1 << 24, 2500), (1 << 26, 2500))]


def parity(server):
    source = os.path.join(server.out, "kernel.cu")
    print("| kernel | nvbench, µs | cold s | process s | n | warpgauge, µs (95 % CI) | s | n | difference |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for label, code, make, n, loops in PARITY:
        with open(source, "w") as file:
            file.write(code.replace("LOOPS", str(loops)))
        out = os.path.join(server.out, f"nvbench_{label}_{n}.json")
        inputs = "2" if code is ADD else "1"
        began = time.time()
        subprocess.run([sys.executable, "-c", NVBENCH, str(n), out, source, inputs], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process = time.time() - began
        with open(out) as file:
            state = json.load(file)["benchmarks"][0]["states"][0]
        theirs = {s["tag"]: s["data"][0]["value"] for s in state["summaries"] if s.get("data")}
        median = 1e6 * float(theirs["nv/cold/time/gpu/median"])
        # Once to compile, so that the time to an answer is that of measuring.
        body = {"kernel": make(n)(loops), "measure": {"preset": "quick"}}
        server.post("/evaluate", body)
        began = time.time()
        answer = server.post("/evaluate", body)
        seconds = time.time() - began
        own = answer["measurement"]["summary"]
        low, high = own.get("median_ci_low", 0), own.get("median_ci_high", 0)
        server.keep("parity", {"kernel": label, "n": n, "nvbench": theirs, "process_s": process, "summary": own,
                               "seconds": seconds, "timings": answer["timings"],
                               "empty_launch_ms": answer["measurement"].get("empty_launch_ms")})
        print(f"| {label}, {n} | {median:.2f} | {float(theirs['nv/cold/walltime']):.2f} | {process:.1f} "
              f"| {theirs['nv/cold/sample_size']} | {1e3 * own['median']:.2f} ({1e3 * low:.2f}–{1e3 * high:.2f}) "
              f"| {seconds:.2f} | {own['n']} | {100 * (1e3 * own['median'] / median - 1):+.2f} % |", flush=True)


def repeat(server):
    for name, case in {**CASES, **SAME_ONLY}.items():
        answer = server.post("/evaluate", {"kernel": case[0](case[1]), "measure": {"preset": "ci"}})
        measurement = answer["measurement"]
        server.keep("repeat", {"case": name, "median_ms": measurement["summary"]["median"],
                               "sm_clock_hz": (measurement.get("sm_clock") or {}).get("mean_hz")})
    records = {}
    with open(os.path.join(server.out, "repeat.jsonl")) as file:
        for line in file:
            record = json.loads(line)
            records.setdefault(record["case"], []).append(record["median_ms"])
    print("| case | starts | median, µs | least | greatest |\n|---|---:|---:|---:|---:|")
    for name, values in records.items():
        values.sort()
        middle = values[len(values) // 2]
        print(f"| {name} | {len(values)} | {1e3 * middle:.2f} | {100 * (values[0] / middle - 1):+.2f} % "
              f"| {100 * (values[-1] / middle - 1):+.2f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="http://127.0.0.1:8000")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--out", default="figures")
    parser.add_argument("what", nargs="*", default=[])
    args = parser.parse_args()
    server = Server(args.server, args.out)
    for what in args.what or ["parity", "same", "slower", "repeat"]:
        print(f"\n## {what}\n", flush=True)
        {"parity": lambda: parity(server), "same": lambda: same(server, args.runs),
         "slower": lambda: slower(server, args.runs), "repeat": lambda: repeat(server)}[what]()


if __name__ == "__main__":
    main()
