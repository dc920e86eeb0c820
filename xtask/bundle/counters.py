#!/usr/bin/env python3
"""Hardware counters on a GPU: how long they take, and whether Nsight Compute tells the same.

    counters.py WARPGAUGE CONTRACTS OUT [--rounds N] [--ncu N]

WARPGAUGE is the program, CONTRACTS a folder of contracts as JSON, OUT a folder for what it finds.
Needs Python 3 alone. The contract `vector_add_16m` is the one that is timed, if there is one.
"""
import argparse, csv, io, json, os, shutil, statistics, subprocess, sys, time, urllib.request

# Catalogue id, NVIDIA's metric, factor from NVIDIA's base unit (ns, byte, Hz) to the catalogue's.
SHARED = [
    ("duration", "gpu__time_duration.sum", 1e-9),
    ("elapsed_cycles", "gpc__cycles_elapsed.max", 1),
    ("compute_memory_throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 1),
    ("sm_throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed", 1),
    ("gpu_dram_throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 1),
    ("dram_throughput", "dram__throughput.avg.pct_of_peak_sustained_elapsed", 1),
    ("dram_bytes", "dram__bytes.sum", 1),
    ("l1_hit_rate", "l1tex__t_sector_hit_rate.pct", 1),
    ("l2_hit_rate", "lts__t_sector_hit_rate.pct", 1),
    ("achieved_occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 1),
    ("sm_active_cycles", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 1),
    ("instructions_per_cycle", "sm__inst_executed.avg.per_cycle_active", 1),
    ("l2_throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed", 1),
    ("warp_instructions", "smsp__inst_executed.sum", 1),
    ("global_load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 1),
    ("global_load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1),
    ("global_store_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 1),
    ("global_store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 1),
    ("shared_load_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 1),
    ("shared_store_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", 1),
    ("fadd_instructions", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 1),
    ("fmul_instructions", "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 1),
    ("ffma_instructions", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 1),
    ("thread_instructions", "smsp__thread_inst_executed_pred_on.sum", 1),
    ("threads_per_instruction", "smsp__thread_inst_executed_per_inst_executed.ratio", 1),
]
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


def by_ncu(program, path, contract, out):
    """NVIDIA's metric -> value, from Nsight Compute round the same program and contract."""
    names = ",".join(nvidia for _, nvidia, _ in SHARED)
    kernel = contract["kernel"]["metadata"]["kernel_name"]
    once = os.path.join(out, "once.json")
    with open(once, "w") as file:
        json.dump(dict(contract, num_trials=1), file)
    command = ["ncu", "--clock-control", "none", "--target-processes", "all", "-k", f"regex:^{kernel}$",
               "-c", "1", "--csv", "--page", "raw", "--print-units", "base", "--metrics", names,
               program, "eval", once]
    env = dict(os.environ, LC_ALL="C", WARPGAUGE_DATA_DIR=os.path.join(out, "..", "data"))
    started = time.monotonic()
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    took = time.monotonic() - started
    lines = ran.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        print("ncu told nothing:", ran.stdout[-400:], ran.stderr[-200:])
        return {}, took
    rows = list(csv.reader(io.StringIO("\n".join(lines[start:start + 3]))))
    values = {}
    for name, value in zip(rows[0], rows[-1]):
        try:
            values[name] = float(value)
        except ValueError:
            pass
    return values, took


def agreement(server, program, contracts, out, ncus):
    ids = [own for own, _, _ in SHARED] + EXTRA
    table, worst = [], {}
    for index, (name, (path, contract)) in enumerate(contracts.items()):
        report, _ = profiled(server, contract, ["cupti"], ids)
        found = metrics_of(report)
        if found.get("source") != "cupti":
            print(name, "not by cupti:", json.dumps(report.get("profile"))[:400], json.dumps(report.get("detail"))[:300])
            continue
        own = {key: value.get("value") for key, value in found["metrics"].items()}
        stats = report["kernel_exec_result"]["runtime_stats"] or {}
        ncu, took = by_ncu(program, path, contract, out) if index < ncus else ({}, 0)
        print(f"{name}: {found['conditions']['passes']} passes, runtime {stats.get('mean', 0) * 1e3:.2f} us, "
              f"profiled {(own.get('duration') or 0) * 1e6:.2f} us, ncu took {took:.1f} s; "
              + " ".join(f"{key}={own.get(key)}" for key in EXTRA))
        missing = {key: value.get("reason") for key, value in found["metrics"].items() if value.get("value") is None}
        for key, nvidia, factor in SHARED:
            a, b = own.get(key), ncu.get(nvidia)
            if a is None or b is None:
                table.append((name, key, a, b, "", missing.get(key, "")))
                continue
            b *= factor
            apart = abs(a - b) / abs(b) if b else abs(a)
            table.append((name, key, a, b, f"{apart:.5f}", ""))
            worst.setdefault(key, []).append((apart, name))
    with open(os.path.join(out, "agreement.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("kernel", "metric", "cupti", "ncu", "apart", "reason"), *table])
    for key, found in worst.items():
        within = sum(apart <= 0.02 for apart, _ in found)
        most = max(found)
        print(f"{key:28} within 2 %: {within}/{len(found)}, most apart {most[0] * 100:.2f} % ({most[1]})")


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
        contracts[file.removesuffix(".json")] = (path, json.load(open(path)))
    server = Server(os.path.abspath(args.program), args.out)
    try:
        server.wait()
        timed = contracts.get("vector_add_16m") or next(iter(contracts.values()))
        timings(server, timed[1], args.rounds)
        undisturbed(server, timed[1], max(3, args.rounds // 2))
        agreement(server, os.path.abspath(args.program), contracts, args.out,
                  args.ncu if shutil.which("ncu") else 0)
    finally:
        server.stop()


main()
