#!/usr/bin/env python3
"""Hardware counters on a GPU: how long they take, and whether Nsight Compute tells the same.

    counters.py WARPGAUGE CONTRACTS OUT [--rounds N] [--ncu N]

WARPGAUGE is the program, CONTRACTS a folder of contracts as JSON, OUT a folder for what it finds.
Needs Python 3 alone. The contract `vector_add_16m` is the one that is timed, if there is one.
"""
import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

# Metrics that are compared.
SHARED = [
    "duration",
    "elapsed_cycles",
    "compute_memory_throughput",
    "sm_throughput",
    "gpu_dram_throughput",
    "dram_throughput",
    "dram_bytes",
    "l1_hit_rate",
    "l2_hit_rate",
    "achieved_occupancy",
    "sm_active_cycles",
    "instructions_per_cycle",
    "l2_throughput",
    "warp_instructions",
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "fadd_instructions",
    "fmul_instructions",
    "ffma_instructions",
    "thread_instructions",
    "threads_per_instruction",
]
# And those that theory tells.
EXTRA = ["sectors_per_global_load", "sectors_per_global_store", "shared_load_conflicts",
         "shared_store_conflicts", "flop_count", "flop_count_single", "flop_count_tensor",
         "tensor_pipe_active", "arithmetic_intensity"]


class Server:
    def __init__(self, program, out):
        self.port = 8791
        env = dict(os.environ, WARPGAUGE_DATA_DIR=os.path.join(out, "..", "data"), LOG_LEVEL="debug")
        self.log = open(os.path.join(out, "server.log"), "w")
        self.process = subprocess.Popen([program, "serve", "--port", str(self.port)],
                                        env=env, stdout=self.log, stderr=self.log)

    def call(self, path, body=None, timeout=120):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data,
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def wait(self):
        for _ in range(300):
            try:
                health = self.call("/health", timeout=5)
                if any(d["state"] in ("ready", "busy") for d in self.call("/devices")["devices"]):
                    return health
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit("the server ended; see server.log")
            time.sleep(0.2)
        sys.exit("the server does not become ready")

    def stop(self):
        self.process.terminate()
        self.process.wait(15)


def metrics_of(report):
    return (report.get("kernel_exec_result", {}).get("metadata", {}).get("device_metrics")) or {}


def profiled(server, contract, tools, metrics):
    body = dict(contract, profile={"tools": tools, "metrics": metrics})
    started = time.monotonic()
    report = server.call("/evaluate", body)
    return report, (time.monotonic() - started) * 1e3


def timings(server, contract, rounds):
    plain = []
    for _ in range(rounds):
        plain.append(server.call("/evaluate", contract)["timings"]["total"])
    print(f"without profile: p50 {statistics.median(plain):.1f} ms in all")
    for name in ["speed_of_light", "core", "full"]:
        beyond, total, passes = [], [], None
        for index in range(rounds + 1):
            report, _ = profiled(server, contract, ["cupti"], [name])
            if "timings" not in report:
                sys.exit(json.dumps(report)[:2000])
            beyond.append(report["timings"].get("profile"))
            total.append(report["timings"]["total"])
            passes = (metrics_of(report).get("conditions") or {}).get("passes")
        if not metrics_of(report).get("source") == "cupti":
            print(name, "not by cupti:", json.dumps(report.get("profile")))
            continue
        warm = sorted(beyond[1:])
        print(f"{name}: {passes} passes, first {beyond[0]:.1f} ms, then p50 {statistics.median(warm):.1f} "
              f"min {warm[0]:.1f} max {warm[-1]:.1f} ms of profile; {statistics.median(total[1:]):.1f} ms in all")


def undisturbed(server, contract, rounds):
    with_profile, without = [], []
    for _ in range(rounds):
        mean = lambda report: report["kernel_exec_result"]["runtime_stats"]["mean"]
        without.append(mean(server.call("/evaluate", contract)))
        with_profile.append(mean(profiled(server, contract, ["cupti"], ["speed_of_light"])[0]))
    print(f"runtime without profile {statistics.median(without):.6f} ms, "
          f"with {statistics.median(with_profile):.6f} ms (medians of {rounds} means)")


def side_by_side(server, contract):
    """The same metrics of the same kernel, by CUPTI and by Nsight Compute."""
    for tool in ["cupti", "cupti", "ncu", "ncu"]:
        report, _ = profiled(server, contract, [tool], ["speed_of_light"])
        found = metrics_of(report)
        passes = (found.get("conditions") or {}).get("passes")
        print(f"speed_of_light by {found.get('source')}: {report['timings'].get('profile'):.0f} ms, {passes} passes"
              + (f"; {report['profile'].get('reason')}" if found.get("source") != tool else ""))


def agreement(server, contracts, out, ncus):
    ids = SHARED + EXTRA
    own, ncu, table, worst = {}, {}, [], {}
    for tool, values, names in [("cupti", own, list(contracts)), ("ncu", ncu, list(contracts)[:ncus])]:
        for name in names:
            report, _ = profiled(server, contracts[name], [tool], ids)
            found = metrics_of(report)
            if found.get("source") != tool:
                print(name, f"not by {tool}:", json.dumps(report.get("profile"))[:500])
                continue
            values[name] = found
    for name, found in own.items():
        value = lambda key: found["metrics"][key].get("value")
        print(f"{name}: {found['conditions']['passes']} passes, {(value('duration') or 0) * 1e6:.2f} us; "
              + " ".join(f"{key}={value(key):.6g}" for key in EXTRA if value(key)))
        for key in ids:
            a = value(key)
            b = ncu[name]["metrics"][key].get("value") if name in ncu else None
            reason = found["metrics"][key].get("reason") or ""
            if a is None or b is None:
                table.append((name, key, a, b, "", reason))
                continue
            apart = abs(a - b) / abs(b) if b else abs(a)
            table.append((name, key, a, b, f"{apart:.5f}", ""))
            worst.setdefault(key, []).append((apart, name, a, b))
    with open(os.path.join(out, "agreement.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("kernel", "metric", "cupti", "ncu", "apart", "reason"), *table])
    for key, found in worst.items():
        within = sum(apart <= 0.02 for apart, *_ in found)
        apart, name, a, b = max(found)
        print(f"{key:28} within 2 %: {within}/{len(found)}, most apart {apart * 100:.2f} % ({name}: {a:.6g}, {b:.6g})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("contracts")
    parser.add_argument("out")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ncu", type=int, default=1000, help="kernels that ncu profiles too")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    contracts = {}
    for file in sorted(os.listdir(args.contracts)):
        path = os.path.join(args.contracts, file)
        with open(path) as content:
            contracts[file.removesuffix(".json")] = json.load(content)
    server = Server(os.path.abspath(args.program), args.out)
    try:
        server.wait()
        timed = contracts.get("vector_add_16m") or next(iter(contracts.values()))
        timings(server, timed, args.rounds)
        undisturbed(server, timed, max(3, args.rounds // 2))
        with_ncu = shutil.which("ncu") and args.ncu
        if with_ncu:
            side_by_side(server, timed)
        agreement(server, contracts, args.out, args.ncu if with_ncu else 0)
    finally:
        server.stop()


main()
