#!/usr/bin/env python3
"""Measures what docs/gate.md promises.

    figures.py [--warpgauge PROGRAM] [--device D] [--runs N] [--seconds S] [--out DIR] [aa] [slower] [counts]

aa       N runs of a suite of unchanged kernels: none may fail
slower   N runs of the same suite with one kernel 2 % slower, in turn: 95 of 100 must fail
counts   N runs on the emulated device, with different numbers of cores: counts must be the same

Every run goes through `warpgauge gate run` with the report as JSON. One server is started for all of
them; between it and the gate stands a proxy that keeps the times of each kernel on its own, so that
the same runs can be judged by other rules: nvbench's (the difference exceeds the smaller relative
standard deviation), Welch's t and Mann and Whitney's U at 5 %, and a fixed 5 %. A part ends after S
seconds, and says how far it came. Raw results go to DIR as JSON lines, tables are printed as Markdown.
"""
import argparse
import http.server
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

COMPUTE = """extern "C" __global__ void k(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = x * 0.5f + 1.0f;
    #pragma unroll 1
    for (int l = 0; l < LOOPS; l++) y = fmaf(y, 0.999f, x);
    c[i] = y * 0.0f + x;
}"""
# Reads LOOPS rows of n floats.
MEMORY = """extern "C" __global__ void k(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    #pragma unroll 5
    for (int l = 0; l < LOOPS; l++) s += a[(size_t)l * n + i];
    c[i] = s;
}"""
# Name, source, elements, loops of the baseline, loops of the 2 % slower one, rows of input.
CASES = [
    ("compute-40us", COMPUTE, 1 << 20, 500, 510, 1),
    ("compute-150us", COMPUTE, 1 << 20, 2000, 2040, 1),
    ("compute-1.5ms", COMPUTE, 1 << 22, 5000, 5100, 1),
    ("memory-60us", MEMORY, 1 << 20, 50, 51, 51),
    ("memory-220us", MEMORY, 1 << 21, 100, 102, 102),
    ("few-blocks", COMPUTE, 1 << 12, 1000, 1020, 1),
]


def contract(source, elements, rows):
    tensor = {"shape": [rows * elements], "dtype": "float32", "init": {"kind": "uniform", "seed": 1}}
    return {
        "num_trials": 50,
        "kernel": {
            "kernel_type": "cuda", "source_file": source, "metadata": {"kernel_name": "k"},
            "io": {
                "args": [
                    {"name": "a", "type": "tensor", "role": "input", "tensor_spec": tensor},
                    {"name": "c", "type": "tensor", "role": "output",
                     "tensor_spec": {"shape": [elements], "dtype": "float32"}},
                    {"name": "n", "type": "int", "value": elements},
                ],
                "launch": {"grid": {"x": (elements + 255) // 256}, "block": {"x": 256}},
            },
        },
        # A sum of more rows is another sum: what is measured here is time.
        "tolerance": {"atol": 1e30, "rtol": 0.0},
    }


def write_tree(directory, slower=None, scale=1):
    """A suite in a directory; `slower` names the case that does 2 % more."""
    os.makedirs(directory)
    suite = {"version": 1, "cases": []}
    for name, source, elements, loops, more, rows in CASES:
        used = more if name == slower else loops
        elements = max(elements // scale, 256)
        used = max(used // scale, 2) + (1 if scale > 1 and name == slower else 0)
        with open(os.path.join(directory, name + ".cu"), "w") as file:
            file.write(source.replace("LOOPS", str(used)))
        with open(os.path.join(directory, name + ".json"), "w") as file:
            json.dump(contract(name + ".cu", elements, rows), file)
        suite["cases"].append({"name": name, "contract": name + ".json"})
    with open(os.path.join(directory, "suite.yaml"), "w") as file:
        json.dump(suite, file)
    return os.path.join(directory, "suite.yaml")


class Proxy:
    """Passes requests on, and keeps the samples of each kernel on its own."""

    def __init__(self, target):
        self.pairs = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = urllib.request.Request(target + self.path, body,
                                                 {"Content-Type": "application/json"})
                try:
                    with urllib.request.urlopen(request, timeout=600) as answer:
                        status, text = answer.status, answer.read()
                except urllib.error.HTTPError as error:
                    status, text = error.code, error.read()
                if status == 200:
                    proxy.keep(json.loads(text))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def keep(self, answer):
        def samples(report):
            return report.get("measurement", {}).get("samples_ms", [])
        self.pairs.append((samples(answer["reference"]),
                           samples(answer["candidates"][0]["evaluation"])))


def start_server(program, device):
    child = subprocess.Popen(
        [program, "--device", device, "serve", "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in child.stdout:
        words = [word for word in line.split() if word.startswith("http://127.0.0.1:")]
        if words:
            threading.Thread(target=lambda: child.stdout.read(), daemon=True).start()
            return child, words[0].rstrip("/,.")
        sys.stderr.write(line)
    raise SystemExit("the server does not start")


def gate(program, suite, baseline, server=None, device=None, before=()):
    command = list(before) + [program]
    command += ["--device", device] if device else []
    command += ["gate", "run", suite, "--baseline", baseline, "--json", "--quiet"]
    command += ["--server", server] if server else []
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit("gate run failed (%d): %s" % (done.returncode, done.stderr))
    return done.returncode, json.loads(done.stdout), time.monotonic() - began


def betacf(a, b, x):
    """Continued fraction of the incomplete beta function (Lentz)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(abs(1.0 - (a + b) * x / (a + 1.0)), tiny)
    h = d
    for m in range(1, 300):
        for numerator in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                          -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            h *= d * c
        if abs(d * c - 1.0) < 1e-12:
            break
    return h


def t_upper(t, freedom):
    """P(T > t) of Student's t."""
    x = freedom / (freedom + t * t)
    a, b = freedom / 2.0, 0.5
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
                     + a * math.log(x) + b * math.log1p(-x)) if 0 < x < 1 else 0.0
    if x >= 1:
        two = 1.0
    elif x < (a + 1) / (a + b + 2):
        two = front * betacf(a, b, x) / a
    else:
        two = 1.0 - front * betacf(b, a, 1 - x) / b
    return two / 2 if t > 0 else 1 - two / 2


def others(a, b):
    """Which other rules call b slower than a."""
    if len(a) < 3 or len(b) < 3:
        return {}
    mean_a, mean_b = statistics.fmean(a), statistics.fmean(b)
    sd_a, sd_b = statistics.stdev(a), statistics.stdev(b)
    noise = min(sd_a / mean_a, sd_b / mean_b)
    variance = sd_a ** 2 / len(a) + sd_b ** 2 / len(b)
    if variance > 0:
        freedom = variance ** 2 / ((sd_a ** 2 / len(a)) ** 2 / (len(a) - 1)
                                   + (sd_b ** 2 / len(b)) ** 2 / (len(b) - 1))
        welch = t_upper((mean_b - mean_a) / math.sqrt(variance), freedom)
    else:
        welch = 0.0 if mean_b > mean_a else 1.0
    ranked = sorted([(x, 0) for x in a] + [(x, 1) for x in b])
    ranks, ties, index = 0.0, 0.0, 0
    while index < len(ranked):
        end = index
        while end < len(ranked) and ranked[end][0] == ranked[index][0]:
            end += 1
        rank, count = (index + 1 + end) / 2, end - index
        ranks += rank * sum(which for _, which in ranked[index:end])
        ties += count ** 3 - count
        index = end
    n, total = len(a) * len(b), len(ranked)
    u = ranks - len(b) * (len(b) + 1) / 2
    spread = math.sqrt(n / 12 * (total + 1 - ties / (total * (total - 1))))
    z = (u - n / 2 - 0.5) / spread if spread > 0 else 0.0
    return {
        "nvbench legacy": (mean_b - mean_a) / min(mean_a, mean_b) > noise,
        "Welch 5 %": welch < 0.05,
        "Mann-Whitney 5 %": math.erfc(z / math.sqrt(2)) / 2 < 0.05,
        "static 5 %": mean_b > 1.05 * mean_a,
    }


def runs(arguments, what, trees, out):
    """Runs the gate; yields nothing, prints a table of who called what."""
    server, address = start_server(arguments.warpgauge, arguments.device)
    verdicts, seconds, rules, judged, caught, tried = {}, [], {}, 0, 0, 0
    suites = {}
    outcomes = {}
    try:
        began = time.monotonic()
        for run in range(arguments.runs):
            if time.monotonic() - began > arguments.seconds:
                break
            slower, suite = trees[run % len(trees)]
            proxy = Proxy(address)
            code, report, took = gate(arguments.warpgauge, suite, os.path.join(out, "base"), proxy.url)
            proxy.server.shutdown()
            seconds.append(took)
            verdicts[code] = verdicts.get(code, 0) + 1
            called = {}
            for index, case in enumerate(report["cases"]):
                is_slower = case["name"] == slower
                pair = proxy.pairs[index] if index < len(proxy.pairs) else ([], [])
                found = dict(others(*pair), warpgauge=case["outcome"] == "REGRESSION")
                for rule, yes in found.items():
                    if is_slower or slower is None:
                        rules[rule] = rules.get(rule, 0) + yes
                    called[rule] = called.get(rule, False) or yes
                judged += is_slower or slower is None
                key = (case["name"], "2 %" if is_slower else "0 %", case["outcome"])
                outcomes[key] = outcomes.get(key, 0) + 1
                for field in ("comparison", "confirmation"):
                    case.get(field, {}).pop("blocks", None)
            for rule, yes in called.items():
                suites[rule] = suites.get(rule, 0) + yes
            with open(os.path.join(out, what + ".jsonl"), "a") as file:
                file.write(json.dumps({"slower": slower, "seconds": took, "report": report}) + "\n")
    finally:
        server.terminate()
        server.wait()
    print("\n### %s: %d runs of %d cases, %.2f s each (median)\n"
          % (what, len(seconds), len(CASES), statistics.median(seconds)))
    print("Exit codes: %s\n" % ", ".join("%d: %d" % pair for pair in sorted(verdicts.items())))
    print("| rule | cases called slower, of %d | suites with any called, of %d |\n| --- | --- | --- |"
          % (judged, len(seconds)))
    for rule in sorted(rules):
        print("| %s | %d | %d |" % (rule, rules[rule], suites[rule]))
    print("\n| case | slowdown | outcome | times |\n| --- | --- | --- | --- |")
    for key in sorted(outcomes):
        print("| %s | %s | %s | %d |" % (*key, outcomes[key]))
    sys.stdout.flush()


def counts(arguments, out):
    suite = write_tree(os.path.join(out, "counted"), slower="compute-40us", scale=64)
    base = os.path.join(out, "counted-base")
    write_tree(base, scale=64)
    seen, codes = {}, {}
    cores = [[], ["taskset", "--cpu-list", "0"]]
    began, done = time.monotonic(), 0
    for run in range(arguments.runs):
        if time.monotonic() - began > arguments.seconds:
            break
        code, report, _ = gate(arguments.warpgauge, suite, base, device="emulator",
                               before=cores[run % 2])
        done += 1
        codes[code] = codes.get(code, 0) + 1
        text = json.dumps([(case["name"], case["counts"]) for case in report["cases"]])
        seen[text] = seen.get(text, 0) + 1
    print("\n### counts: %d runs, every second one on one core: %d different results, exit codes %s"
          % (done, len(seen), codes))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warpgauge", default="warpgauge")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out", default="gate-figures")
    parser.add_argument("parts", nargs="*")
    arguments = parser.parse_args()
    arguments.warpgauge = shutil.which(arguments.warpgauge) or os.path.abspath(arguments.warpgauge)
    os.makedirs(arguments.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as trees:
        for part in arguments.parts or ["aa", "slower", "counts"]:
            out = os.path.join(trees, part)
            base = write_tree(os.path.join(out, "base"))
            if part == "counts":
                counts(arguments, out)
                continue
            if part == "aa":
                suites = [(None, base)]
            elif part == "slower":
                names = [case[0] for case in CASES]
                suites = [(name, write_tree(os.path.join(out, name), name)) for name in names]
            else:
                raise SystemExit("unknown part %s" % part)
            runs(arguments, part, suites, out)
            raw = os.path.join(out, part + ".jsonl")
            if os.path.exists(raw):
                shutil.copy(raw, arguments.out)


if __name__ == "__main__":
    main()
