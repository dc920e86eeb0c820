#!/usr/bin/env python3
"""The driver's monitoring (GPM) of kernels beside hardware counters, and the rest of a profile.

    monitoring.py WARPGAUGE OUT [STEP…]     steps: table plan import busy plain
    launches both repeat; default: all

Needs a GPU (Hopper or later), and Python 3 alone. `import` needs Nsight Compute.
"""
import base64
import csv
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

REPORTS = []
PROGRAM, OUT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class Server:
    def __init__(self, port, name, prefix=(), wait=True):
        self.url = f"http://127.0.0.1:{port}"
        data = os.path.join(OUT, f"data-{name}")
        os.makedirs(data, exist_ok=True)
        os.chmod(data, 0o777)
        env = dict(os.environ, WARPGAUGE_DATA_DIR=data, LOG_LEVEL="debug", HOME=data)
        self.log = open(os.path.join(OUT, f"{name}.log"), "w")
        command = [*prefix, PROGRAM, "serve", "--port", str(port)]
        self.process = subprocess.Popen(command, env=env, stdout=self.log, stderr=self.log)
        if wait:
            self.wait()

    def raw(self, path, body=None, timeout=120):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            return error.read()

    def call(self, path, body=None, timeout=120):
        return json.loads(self.raw(path, body, timeout))

    def wait(self):
        for _ in range(300):
            try:
                if all(d["state"] in ("ready", "busy") for d in self.call("/devices")["devices"]):
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit("the server ended; see its log")
            time.sleep(0.1)
        self.stop()
        sys.exit("the server does not become ready")

    def evaluate(self, contract, tools=None, metrics=(), **more):
        profile = {"metrics": list(metrics)}
        if tools is not None:
            profile["tools"] = tools
        report = self.call("/evaluate", dict(contract, profile=profile, **more))
        REPORTS.append(report)
        return report

    def stop(self):
        self.process.terminate()
        self.process.wait(15)


def tensor(name, role, shape, dtype="float32", kind="ones"):
    spec = {"shape": shape, "dtype": dtype}
    if role != "output":
        spec["init"] = {"kind": kind}
    return {"name": name, "type": "tensor", "role": role, "tensor_spec": spec}


def integer(name, value):
    return {"name": name, "type": "int", "value": value}


def contract(name, source, args, grid, block, kernel=None):
    kernel = kernel or {"kernel_type": "cuda", "source_code": source}
    kernel = dict(kernel, metadata={"kernel_name": name},
                  io={"args": args, "launch": {"grid": grid, "block": block}})
    return {"kernel": kernel, "num_trials": 10, "measure": {"cache": "hot"}, "timeout": 20}


def flat(name, body, args, n, threads=256, prologue=""):
    parameters = {"float32": "float*", "float64": "double*", "float16": "__half*",
                  "bfloat16": "__nv_bfloat16*", "int32": "int*"}
    parts = []
    for arg in args:
        kind = "int" if arg["type"] == "int" else parameters[arg["tensor_spec"]["dtype"]]
        constant = "const " if arg.get("role") == "input" else ""
        parts.append(f"{constant}{kind} {arg['name']}")
    source = (f"{prologue}extern \"C\" __global__ void {name}({', '.join(parts)}) "
              f"{{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}")
    return contract(name, source, args, {"x": n // threads}, {"x": threads})


def loop(name, dtype, step, prologue="", n=132 * 8 * 256, rounds=4000):
    body = f"auto x = a[i], y = x; \n#pragma unroll 1\n for (int k = 0; k < {rounds}; k++) {{ {step} }} b[i] = x + y;"
    args = [tensor("a", "input", [n], dtype), tensor("b", "output", [n], dtype)]
    return flat(name, body, args, n, prologue=prologue)


def contracts():
    m = 1 << 24
    add = lambda n: flat("vector_add", "c[i] = a[i] + b[i];",
                         [tensor("a", "input", [n]), tensor("b", "input", [n]),
                          tensor("c", "output", [n])], n)
    product = ("extern \"C\" __global__ void product(const float* a, const float* b, float* c, int n) "
               "{ int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x; float s = 0; "
               "for (int k = 0; k < n; k++) s = fmaf(a[i * n + k], b[k * n + j], s); c[i * n + j] = s; }")
    size = 1024
    wmma = ("#include <cuda_bf16.h>\n#include <mma.h>\nusing namespace nvcuda;\n"
            "extern \"C\" __global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int n) "
            "{ int w = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, t = n / 16, i = w / t, j = w % t; "
            "wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> x; "
            "wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> y; "
            "wmma::fragment<wmma::accumulator, 16, 16, 16, float> s; wmma::fill_fragment(s, 0.0f); "
            "for (int k = 0; k < n; k += 16) { wmma::load_matrix_sync(x, a + i * 16 * n + k, n); "
            "wmma::load_matrix_sync(y, b + k * n + j * 16, n); wmma::mma_sync(s, x, y, s); } "
            "wmma::store_matrix_sync(c + i * 16 * n + j * 16, s, n, wmma::mem_row_major); }")
    fma = "x = fmaf(x, 0.999f, 0.5f); y = fmaf(y, 1.001f, 0.25f);"
    square = lambda name, role, dtype="float32": tensor(name, role, [size, size], dtype)
    return {
        "vector_add_16m": add(m),
        "vector_add_4m": add(1 << 22),
        "vector_add_1m": add(1 << 20),
        "fp32_loop_250": loop("fp32_loop", "float32", fma, rounds=250),
        "fp32_loop_1000": loop("fp32_loop", "float32", fma, rounds=1000),
        "matmul_1024": contract("product", product,
                                [square("a", "input"), square("b", "input"), square("c", "output"),
                                 integer("n", size)],
                                {"x": size // 16, "y": size // 16}, {"x": 16, "y": 16}),
        "wmma_bf16_1024": contract("wmma_bf16", wmma,
                                   [square("a", "input", "bfloat16"), square("b", "input", "bfloat16"),
                                    square("c", "output"), integer("n", size)],
                                   {"x": (size // 16) ** 2 // 8}, {"x": 256}),
        "strided_copy": flat("strided_copy", "b[i] = a[i * 8];",
                             [tensor("a", "input", [8 << 22]), tensor("b", "output", [1 << 22])], 1 << 22),
        "fp32_loop": loop("fp32_loop", "float32", fma),
        "fp64_loop": loop("fp64_loop", "float64", "x = fma(x, 0.999, 0.5); y = fma(y, 1.001, 0.25);", rounds=1000),
        "fp16_loop": loop("fp16_loop", "float16", "x = __hfma(x, x, y); y = __hfma(y, y, x);",
                          "#include <cuda_fp16.h>\n"),
        "int_loop": loop("int_loop", "int32", "x = (x ^ k) + y; y = (y << 1) ^ x;"),
        "increment_16m": flat("increment", "a[i] += 1.0f;", [tensor("a", "inout", [m])], m),
    }


IDS = ["duration", "sm_active_cycles", "achieved_occupancy", "dram_throughput", "gpu_dram_throughput",
       "dram_active_cycles", "tensor_pipe_active", "tensor_half_pipe_active", "tensor_integer_pipe_active",
       "tensor_double_pipe_active", "tensor_pipe_utilization", "fp64_pipe_active", "fp64_pipe_utilization",
       "fma_pipe_active", "fma_pipe_utilization", "alu_pipe_active", "alu_pipe_utilization",
       "fp16_pipe_utilization", "sm_issue_active"]


SHOWN = ["sm_active_cycles", "achieved_occupancy", "dram_throughput", "tensor_pipe_active", "fp64_pipe_active"]


def metrics_of(report):
    return report.get("kernel_exec_result", {}).get("metadata", {}).get("device_metrics") or {}


def values(report):
    found = metrics_of(report).get("metrics") or {}
    return {name: metric["value"] for name, metric in found.items() if "value" in metric}


def table(server):
    """Monitoring beside counters."""
    rows = []
    for name, one in contracts().items():
        counted, watched = server.evaluate(one, ["cupti"], IDS), server.evaluate(one, ["gpm"], IDS)
        found = metrics_of(watched)
        if metrics_of(counted).get("source") != "cupti" or found.get("source") != "gpm":
            print(name, json.dumps(counted.get("profile")), json.dumps(watched.get("profile")),
                  counted.get("error"), watched.get("error"),
                  counted.get("kernel_exec_result", {}).get("compilation_error"))
        if "timings" not in watched:
            continue
        own, other = values(counted), values(watched)
        conditions = found.get("conditions") or {}
        shown = [f"{key} {own.get(key, float('nan')):.2f}/{other[key]:.2f}" for key in SHOWN if key in other]
        activity = other.get("gpm__graphics_util", float("nan"))
        print(f"{name}: {(own.get('duration') or 0) * 1e6:.1f} us, {watched['timings']['profile']:.0f} ms, "
              f"{conditions.get('launches')} in {conditions.get('window_ms')} ms, active {activity:.2f};", "; ".join(shown))
        notes = {m.get("note") for m in (found.get("metrics") or {}).values() if m.get("source") == "gpm"}
        print("   ", min((note for note in notes if note), key=len, default="no note")[60:230])
        for key in sorted(set(own) | set(other)):
            rows.append((name, key, own.get(key), other.get(key)))
    with open(os.path.join(OUT, "monitoring.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("kernel", "metric", "cupti", "gpm"), *rows])


def plan(server):
    """What a plan says, and what it takes."""
    one = contracts()["vector_add_16m"]
    for tools, name in [(["cupti"], "speed_of_light"), (["cupti"], "core"), (["cupti"], "full"),
                        (["gpm"], "speed_of_light"), (["ncu"], "speed_of_light")]:
        ask = dict(one, profile={"tools": tools, "metrics": [name]})
        took = []
        cold = server.call("/profile/plan", ask)
        for _ in range(4 if tools == ["cupti"] else 2):
            took.append(server.evaluate(one, tools, [name]).get("timings", {}).get("profile"))
        told = server.call("/profile/plan", ask)
        print(f"{tools[0]} {name}: planned {cold.get('estimated_ms')} before, {told.get('estimated_ms')} after, "
              f"{told.get('passes')} passes, source {told.get('source')}; took {took} ms, median of the later "
              f"{statistics.median(took[1:])}", json.dumps(told.get("unavailable")))


def imported(server):
    """A report of Nsight Compute, downloaded and read again."""
    report = server.evaluate(contracts()["matmul_1024"], ["ncu"], ["core"])
    own = values(report)
    print("ncu:", metrics_of(report).get("source"), metrics_of(report).get("tool"), len(own), "values,",
          report.get("timings", {}).get("profile"), "ms", json.dumps(report.get("profile")))
    file = os.path.join(OUT, "kernel.ncu-rep")
    with open(file, "wb") as target:
        target.write(server.raw(f"/jobs/{report['job_id']}/artifacts/ncu-rep"))
    print("downloaded", os.path.getsize(file), "bytes")
    run = subprocess.run([PROGRAM, "import", file, "--json"], capture_output=True, text=True, timeout=60)
    if run.returncode:
        print("import failed:", run.returncode, run.stderr[-500:])
        return
    again = {name: metric["value"] for name, metric in
             json.loads(run.stdout)["device_metrics"]["metrics"].items() if "value" in metric}
    by_tool = {key for key, metric in metrics_of(report)["metrics"].items() if metric.get("source") == "ncu"}
    differ = {key: (own[key], again.get(key)) for key in by_tool if own[key] != again.get(key)}
    print(f"{len(by_tool)} values of ncu, {len(by_tool) - len(differ)} of them again the same; differ: {differ}")
    run = subprocess.run([PROGRAM, "import", file], capture_output=True, text=True, timeout=60)
    print(run.stdout[:300])


def busy(server):
    """The ladder while another process keeps the counters."""
    other, one = Server(8793, "other"), contracts()["matmul_1024"]
    over = threading.Event()

    def keep():
        while not over.is_set():
            other.evaluate(one, ["cupti"], ["speed_of_light"])
            over.wait(2)

    first = other.evaluate(one, ["cupti"], ["speed_of_light"])
    print("the other:", metrics_of(first).get("source"))
    keeper = threading.Thread(target=keep)
    keeper.start()
    started = time.monotonic()
    report = server.evaluate(one, None, ["speed_of_light", "achieved_occupancy"])
    over.set()
    keeper.join()
    other.stop()
    found = metrics_of(report)
    print(f"busy: {report.get('profile')} after {time.monotonic() - started:.1f} s; source {found.get('source')}, "
          f"correct {report.get('kernel_exec_result', {}).get('correctness')}")
    print("   ", json.dumps(found.get("unavailable")))
    print("   ", {key: metric["value"] for key, metric in (found.get("metrics") or {}).items()
                  if metric.get("source") == "gpm"})


def plain(_):
    """A user without rights."""
    setpriv = shutil.which("setpriv")
    with open("/proc/driver/nvidia/params") as file:
        print([line.strip() for line in file if "Profiling" in line])
    for name, prefix in [("without-capability", [setpriv, "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]),
                         ("nobody", [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"])]:
        try:
            server = Server(8794, name, prefix)
        except SystemExit as error:
            print(name, error)
            continue
        device = server.call("/capabilities")["devices"][0]
        print(f"{name}: counters", device["counters"]["reason"], [(s["name"], s["available"]) for s in device["profile"]])
        for tools in (["cupti"], ["gpm"]):
            report = server.evaluate(contracts()["vector_add_16m"], tools)
            found = metrics_of(report)
            print("   ", tools, found.get("source"), {k: round(v, 2) for k, v in values(report).items()
                                                     if k in ("dram_throughput", "achieved_occupancy")},
                  json.dumps(found.get("unavailable")), report.get("error"))
        server.stop()


def linked(source):
    """The source as machine code with the device's runtime; it takes nvcc."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        print("no nvcc: machine code with device-side launches not tried")
        return None
    file = os.path.join(OUT, "launches.cu")
    with open(file, "w") as target:
        target.write(source)
    cubin = file.replace(".cu", ".cubin")
    for command in ([nvcc, "-arch=sm_90", "-rdc=true", "-dc", file, "-o", file + ".o"],
                    [nvcc, "-arch=sm_90", "-dlink", "-cubin", file + ".o", "-lcudadevrt", "-o", cubin]):
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if run.returncode:
            print("nvcc:", run.stderr[-500:])
            return None
    return cubin


def launches(server):
    """A kernel that launches others."""
    source = ("__global__ void child(float* a) { a[blockIdx.x * 256 + threadIdx.x] += 1.0f; }\n"
              "extern \"C\" __global__ void parent(float* a) { if (threadIdx.x == 0) child<<<64, 256>>>(a); }\n")
    args = [tensor("a", "inout", [64 * 256])]
    by_source = contract("parent", source, args, {"x": 1}, {"x": 32})
    report = server.evaluate(by_source, ["cupti"], ["duration"])
    print("from source:", json.dumps(report.get("kernel_exec_result"))[:300])
    cubin = os.environ.get("LAUNCHES_CUBIN") or linked(source)
    if not cubin:
        return
    with open(cubin, "rb") as content:
        kernel = {"kernel_type": "cubin", "binary_b64": base64.b64encode(content.read()).decode()}
    by_code = contract("parent", "", args, {"x": 1}, {"x": 32}, kernel)
    ids = ["duration", "global_store_sectors", "grid_size", "fadd_instructions", "achieved_occupancy"]
    for tools in (["cupti"], ["ncu"], ["gpm"]):
        report = server.evaluate(by_code, tools, ids)
        found = metrics_of(report)
        print(f"{tools}: {report.get('error')} {found.get('source')} {values(report)}",
              json.dumps(found.get("unavailable")), report["kernel_exec_result"].get("correctness"),
              report["kernel_exec_result"].get("error"))


def both(server):
    """Profiles on two devices at once: right, and one of them at a time has the counters."""
    one = contracts()["vector_add_16m"]
    one["expected"] = {"c": {"kernel": dict(contracts()["vector_add_16m"]["kernel"])}}
    one["expected"]["c"]["kernel"].pop("io")
    if len(server.call("/devices")["devices"]) < 2:
        print("there is one device only")
        return
    for tools in (["cupti"], ["gpm"], ["ncu"], ["cupti"]):
        told = {}

        def run(index):
            begun = time.monotonic()
            told[index] = (server.evaluate(one, tools, ["speed_of_light"]), begun, time.monotonic())

        threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        first = min(begun for _, begun, _ in told.values())
        for report, begun, ended in told.values():
            found, result = metrics_of(report), report.get("kernel_exec_result", {})
            print(f"{tools[0]}: device {report.get('device', {}).get('id')} from {begun - first:.2f} to {ended - first:.2f} s, "
                  f"source {found.get('source')}, correct {result.get('correctness')}, "
                  f"{values(report).get('dram_throughput', float('nan')):.2f} % of memory,",
                  json.dumps(found.get("unavailable")), report.get("error") or "")


def repeat(server):
    """How far monitoring differs from itself."""
    for name in ("vector_add_16m", "increment_16m", "matmul_1024"):
        told = [values(server.evaluate(contracts()[name], ["gpm"])) for _ in range(5)]
        print(name, {key: [round(one.get(key, float("nan")), 2) for one in told] for key in SHOWN[:3]})


def main():
    os.makedirs(OUT, exist_ok=True)
    steps = {"table": table, "plan": plan, "import": imported, "busy": busy, "plain": plain,
             "launches": launches, "both": both, "repeat": repeat}
    server = Server(8792, "server")
    try:
        for name in sys.argv[3:] or list(steps):
            started = time.monotonic()
            print(f"== {name}", flush=True)
            try:
                steps[name](server)
            except Exception as error:  # the others are worth having
                print(f"{name} failed: {error!r}")
            print(f"-- {time.monotonic() - started:.1f} s", flush=True)
    finally:
        server.stop()
        with gzip.open(os.path.join(OUT, "reports.json.gz"), "at") as file:
            json.dump(REPORTS, file)


main()
