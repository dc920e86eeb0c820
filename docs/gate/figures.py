#!/usr/bin/env python3
"""Measures what docs/gate.md promises.

    figures.py [--warpgauge PROGRAM] [--device D] [--runs N] [--seconds S] [--scale K] [--out DIR]
               [aa] [slower] [ten] [identical] [counts]
    figures.py --join DIR [DIR ...]

aa       N runs of a suite of unchanged kernels: none may fail
slower   N runs of the same suite with one kernel 2 % slower, in turn: 95 of 100 must fail
ten      a suite of ten cases as a repository would have it, unchanged and with one slower kernel
identical  a suite of unchanged kernels that are not measured, because their images are the same
counts   N runs on the emulated device, with different numbers of cores: counts must be the same

Every other run goes through `warpgauge gate run --measure-identical` with the report as JSON. One server is
started for all of them; between it and the gate stands a proxy that keeps the times of each kernel on
its own, so that the same runs can be judged by other rules: nvbench's (the difference exceeds the
smaller relative standard deviation), Welch's t and Mann and Whitney's U at 5 %, and a fixed 5 %.

A regression is more turns of a kernel's loop. How many make 2 % of its time is measured first, from
its times with two lengths of the loop: a launch costs something that no loop is part of.

A part ends after S seconds, and says how far it came. Raw results go to DIR as JSON lines; tables are
printed as Markdown, and --join prints them of several such directories together. With --scale K
kernels are K times smaller: to try the script on the emulated device.
"""
import argparse
import gzip
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
import urllib.error
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
# Name, source, elements, turns of the loop, rows of input.
CASES = [
    ("compute-20us", COMPUTE, 1 << 20, 250, 1),
    ("compute-40us", COMPUTE, 1 << 20, 500, 1),
    ("compute-150us", COMPUTE, 1 << 20, 2000, 1),
    ("memory-60us", MEMORY, 1 << 18, 200, 256),
    ("few-blocks", COMPUTE, 1 << 12, 1000, 1),
]
TEN = CASES + [
    ("compute-300us", COMPUTE, 1 << 21, 2000, 1),
    ("compute-1.5ms", COMPUTE, 1 << 22, 5000, 1),
    ("memory-120us", MEMORY, 1 << 19, 200, 256),
    ("memory-250us", MEMORY, 1 << 20, 200, 256),
    ("one-block", COMPUTE, 1 << 8, 2000, 1),
]
# What is injected.
SLOWDOWN = 0.02


def contract(source, elements, rows, hurried):
    tensor = {"shape": [rows * elements], "dtype": "float32", "init": {"kind": "uniform", "seed": 1}}
    whole = {
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
    if hurried:
        # Of each kernel on its own; what decides is measured in the preset's blocks.
        whole.update(num_trials=50, measure={"min_warmup_time": 0.02})
    return whole


def turns_of(cases, scale):
    return {name: max(loops // scale, 4) for name, _, _, loops, _ in cases}


def write_tree(directory, cases, turns, scale=1, hurried=True):
    """A suite in a directory, each case with so many turns of its loop."""
    os.makedirs(directory)
    suite = {"version": 1, "cases": []}
    for name, source, elements, _, rows in cases:
        elements = max(elements // scale, 256)
        with open(os.path.join(directory, name + ".cu"), "w") as file:
            file.write(source.replace("LOOPS", str(turns[name])))
        with open(os.path.join(directory, name + ".json"), "w") as file:
            json.dump(contract(name + ".cu", elements, rows, hurried), file)
        suite["cases"].append({"name": name, "contract": name + ".json"})
    with open(os.path.join(directory, "suite.yaml"), "w") as file:
        json.dump(suite, file)
    return os.path.join(directory, "suite.yaml")


def median_ms(address, case, turns, scale):
    name, source, elements, _, rows = case
    elements = max(elements // scale, 256)
    body = contract("", elements, rows, True)
    body["num_trials"] = 300
    del body["kernel"]["source_file"]
    body["kernel"]["source_code"] = source.replace("LOOPS", str(turns))
    request = urllib.request.Request(address + "/evaluate", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.loads(answer.read())["kernel_exec_result"]["runtime_stats"]["median"]


def calibrate_slowdown(address, cases, turns, scale):
    """Turns of the loop that make each kernel slower by SLOWDOWN at least, and by how much."""
    more, nominal = {}, {}
    for case in cases:
        base = turns[case[0]]
        longer = base + max(base // 4, 1)
        times = [(median_ms(address, case, base, scale), median_ms(address, case, longer, scale))
                 for _ in range(3)]
        short = statistics.median(time[0] for time in times)
        slope = (statistics.median(time[1] for time in times) - short) / (longer - base)
        extra = max(1, math.ceil(SLOWDOWN * short / slope)) if slope > 0 else 1
        more[case[0]] = base + extra
        nominal[case[0]] = extra * slope / short
    return more, nominal


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


def gate(program, suite, baseline, server=None, device=None, before=(), measure=True):
    command = list(before) + [program]
    command += ["--device", device] if device else []
    command += ["gate", "run", suite, "--baseline", baseline, "--json", "--quiet"]
    command += ["--measure-identical"] if measure else []
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


def runs(arguments, address, what, trees, base, keep):
    """Runs the gate until the runs or the time are done; every run is a line of `keep`."""
    began = time.monotonic()
    for run in range(arguments.runs):
        if time.monotonic() - began > arguments.seconds:
            break
        slower, nominal, suite = trees[run % len(trees)]
        proxy = Proxy(address)
        code, report, took = gate(arguments.warpgauge, suite, base, proxy.url,
                                  measure=what != "identical")
        proxy.server.shutdown()
        proxy.server.server_close()
        cases = []
        for index, case in enumerate(report["cases"]):
            pair = proxy.pairs[index] if index < len(proxy.pairs) else ([], [])
            comparison = case.get("comparison", {})
            cases.append({
                "name": case["name"], "outcome": case["outcome"], "reason": case["reason"],
                "p": case.get("adjusted_p"), "ratio": comparison.get("time", {}).get("ratio"),
                "block_sd": comparison.get("time", {}).get("block_sd"),
                "blocks": comparison.get("blocks_used"),
                "finds": comparison.get("minimum_detectable_effect"),
                "ms": [case.get("baseline_ms"), case.get("candidate_ms")],
                "confirmed": case.get("confirmation", {}).get("time", {}).get("ratio"),
                "rules": dict(others(*pair), warpgauge=case["outcome"] == "REGRESSION"),
            })
        line = {"part": what, "slower": slower, "nominal": nominal, "seconds": took, "code": code,
                "device": report.get("device", {}).get("name"),
                "driver": report.get("method", {}).get("driver"), "cases": cases}
        keep.write(json.dumps(line) + "\n")
        keep.flush()


def tables(lines):
    """Prints who called what, by part."""
    for what in sorted({line["part"] for line in lines}):
        part = [line for line in lines if line["part"] == what]
        seconds = [line["seconds"] for line in part]
        print("\n### %s: %d runs of %d cases, %.2f s each (median), %.2f s the longest\n"
              % (what, len(part), len(part[0]["cases"]), statistics.median(seconds), max(seconds)))
        codes = {}
        for line in part:
            codes[line["code"]] = codes.get(line["code"], 0) + 1
        print("Exit codes: %s\n" % ", ".join("%d: %d" % pair for pair in sorted(codes.items())))
        rules, suites = {}, {}
        same = changed = suites_same = 0
        for line in part:
            for case in line["cases"]:
                is_slower = case["name"] == line["slower"]
                same += not is_slower
                changed += is_slower
                for rule, yes in case["rules"].items():
                    counts = rules.setdefault(rule, [0, 0])
                    counts[is_slower] += yes
            if line["slower"] is None:
                suites_same += 1
                for rule in rules:
                    called = any(case["rules"].get(rule) for case in line["cases"])
                    suites[rule] = suites.get(rule, 0) + called
        print("| rule | unchanged: cases called slower, of %d | unchanged suites with any called, of "
              "%d | slower: found, of %d |\n| --- | ---: | ---: | ---: |"
              % (same, suites_same, changed))
        for rule in sorted(rules):
            print("| %s | %d | %d | %d |" % (rule, rules[rule][0], suites.get(rule, 0), rules[rule][1]))
        print("\n| case | slowdown | outcome | times | blocks (median) | block SD % (median) |"
              "\n| --- | --- | --- | ---: | ---: | ---: |")
        groups = {}
        for line in part:
            for case in line["cases"]:
                is_slower = case["name"] == line["slower"]
                slowdown = "%.2f %%" % (100 * line["nominal"]) if is_slower else "0"
                outcome = "%s (%s)" % (case["outcome"], case["reason"])
                groups.setdefault((case["name"], slowdown, outcome), []).append(case)
        for key, cases in sorted(groups.items()):
            blocks = [case["blocks"] for case in cases if case["blocks"]]
            sds = [case["block_sd"] for case in cases if case["block_sd"]]
            print("| %s | %s | %s | %d | %s | %s |" % (
                *key, len(cases), statistics.median(blocks) if blocks else "",
                "%.3f" % (100 * statistics.median(sds)) if sds else ""))
    sys.stdout.flush()


def joined(directories):
    lines = []
    for directory in directories:
        for name in ("aa", "slower", "ten", "identical"):
            for ending, opened in ((".jsonl", open), (".jsonl.gz", gzip.open)):
                path = os.path.join(directory, name + ending)
                if os.path.exists(path):
                    with opened(path, "rt") as file:
                        lines += [json.loads(line) for line in file]
    return lines


def counts(arguments, out):
    scale = 512
    turns = turns_of(CASES, scale)
    os.makedirs(out)
    base = os.path.join(out, "base")
    write_tree(base, CASES, turns, scale)
    turns["compute-40us"] += 1
    suite = write_tree(os.path.join(out, "counted"), CASES, turns, scale)
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
    # The candidate does more work by a turn of a loop: every run must say so, by the same numbers.
    if len(seen) != 1 or set(codes) != {2}:
        raise SystemExit("counts differ between runs, or a regression was not caught")


def measured(arguments, parts, trees):
    server, address = start_server(arguments.warpgauge, arguments.device)
    try:
        scale = arguments.scale
        turns = turns_of(TEN, scale)
        more, nominal = calibrate_slowdown(address, CASES, turns, scale)
        for what in parts:
            cases, hurried = (TEN, False) if what == "ten" else (CASES, True)
            directory = os.path.join(trees, what)
            base = write_tree(os.path.join(directory, "base"), cases, turns, scale, hurried)
            suites = [(None, None, base)] if what != "slower" else []
            names = [case[0] for case in CASES][:1 if what == "ten" else None]
            for name in names if what in ("slower", "ten") else []:
                changed = dict(turns, **{name: more[name]})
                suite = write_tree(os.path.join(directory, name), cases, changed, scale, hurried)
                suites.append((name, nominal[name], suite))
            with open(os.path.join(arguments.out, what + ".jsonl"), "a") as keep:
                runs(arguments, address, what, suites, os.path.dirname(base), keep)
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warpgauge", default="warpgauge")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--out", default="gate-figures")
    parser.add_argument("--join", nargs="+", default=[], metavar="DIR")
    parser.add_argument("parts", nargs="*")
    arguments = parser.parse_args()
    if arguments.join:
        return tables(joined(arguments.join))
    arguments.warpgauge = shutil.which(arguments.warpgauge) or os.path.abspath(arguments.warpgauge)
    os.makedirs(arguments.out, exist_ok=True)
    parts = arguments.parts or ["aa", "slower", "ten", "identical", "counts"]
    unknown = set(parts) - {"aa", "slower", "ten", "identical", "counts"}
    if unknown:
        raise SystemExit("unknown parts: %s" % ", ".join(sorted(unknown)))
    with tempfile.TemporaryDirectory() as trees:
        timed = [part for part in parts if part != "counts"]
        if timed:
            measured(arguments, timed, trees)
            tables(joined([arguments.out]))
        if "counts" in parts:
            counts(arguments, os.path.join(trees, "counts"))


if __name__ == "__main__":
    main()
