#!/usr/bin/env python3
"""Kernels in Triton beside Triton's own tools, on a running server with a GPU.

    beside_triton.py [--server URL] [--out DIR] [code] [bench] [clocks] [tune]

bench    medians of twelve kernels beside `triton.testing.do_bench`, in both regimes, and cuBLAS's
         product beside the largest; results of each are checked against PyTorch's first
clocks   from the loop of `do_bench` to ours, one step at a time (do_bench_steps.py)
code     whether PTX is what `kernel[grid](…)` compiled on this GPU
tune     16 configurations of a product of matrices beside Triton's own autotuner

Needs PyTorch and Triton. Answers go to DIR as JSON lines; tables are printed as Markdown.
"""
import argparse
import json
import os
import re
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
# Triton's own launches find nothing that was compiled before.
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-cache-")
sys.path.insert(0, HERE)

import torch  # noqa: E402
import triton  # noqa: E402
import do_bench_steps  # noqa: E402
import triton_kernels as kernels  # noqa: E402

with open(os.path.join(HERE, "triton_kernels.py")) as file:
    SOURCE = file.read()
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
F = torch.nn.functional


class Case:
    """A kernel with its arguments: inputs, outputs, scalars and constants, in order."""

    def __init__(self, label, name, inputs, output, scalars, constants, grid, warps=4, stages=3, expected=None):
        self.label, self.name = label, name
        self.inputs, self.output, self.scalars = inputs, output, scalars
        self.constants, self.grid, self.warps, self.stages = constants, grid, warps, stages
        self.expected = expected

    def request(self, regime="isolated", source=SOURCE):
        def tensor(name, spec, role, seed=None):
            shape, dtype = spec
            out = {"shape": list(shape), "dtype": dtype}
            if seed is not None:
                out["init"] = {"kind": "randn", "seed": seed}
            return {"name": name, "type": "tensor", "role": role, "tensor_spec": out}
        args = [tensor(f"in{i}", spec, "input", i + 1) for i, spec in enumerate(self.inputs)]
        args.append(tensor("out", self.output, "output"))
        for i, value in enumerate(self.scalars):
            args.append({"name": f"s{i}", "type": "int" if isinstance(value, int) else "float", "value": value})
        for name, value in self.constants.items():
            args.append({"name": name, "type": "int", "value": value, "is_meta": True})
        grid = dict(zip("xyz", self.grid))
        launch = {"grid": grid, "num_warps": self.warps, "num_stages": self.stages}
        return {
            "kernel": {"kernel_type": "triton", "source_code": source,
                       "metadata": {"kernel_name": self.name}, "io": {"args": args, "launch": launch}},
            "measure": {"preset": "ci", "regime": regime, "max_time": 5.0}, "num_trials": 100, "timeout": 120,
        }

    def tensors(self):
        made = [torch.randn(shape, device="cuda", dtype=torch.float32).to(DTYPES[dtype])
                for shape, dtype in self.inputs]
        shape, dtype = self.output
        return made, torch.empty(shape, device="cuda", dtype=DTYPES[dtype])

    def launch(self, inputs, output):
        return getattr(kernels, self.name)[self.grid](
            *inputs, output, *self.scalars, **self.constants, num_warps=self.warps, num_stages=self.stages)


def vector(n, dtype="float32"):
    return ((n,), dtype)


def product(size, m, n, k, warps, stages):
    tiles = triton.cdiv(size, m) * triton.cdiv(size, n)
    half = ((size, size), "float16")
    return Case(f"matmul {size}³ fp16", "matmul", [half, half], half, [size] * 3,
                {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}, (tiles,), warps, stages,
                lambda a, b: a @ b)


def cases():
    def rows(label, name, shape, dtype, given, scalars, expected, warps):
        block = triton.next_power_of_2(shape[1])
        return Case(label, name, given, (shape, dtype), [shape[1], *scalars], {"BLOCK": block}, (shape[0],), warps,
                    expected=expected)

    n, tall, square = 1 << 24, (8192, 2048), (4096, 4096)
    heads, length, dim = 16, 4096, 64
    qkv = ((heads, length, dim), "float16")
    return [
        Case("add 4 Mi fp32", "add", [vector(n >> 2)] * 2, vector(n >> 2), [n >> 2], {"BLOCK": 1024},
             (triton.cdiv(n >> 2, 1024),), expected=torch.add),
        Case("add 16 Mi fp32", "add", [vector(n)] * 2, vector(n), [n], {"BLOCK": 1024},
             (triton.cdiv(n, 1024),), expected=torch.add),
        Case("gelu 32 Mi bf16", "gelu", [vector(2 * n, "bfloat16")], vector(2 * n, "bfloat16"), [2 * n],
             {"BLOCK": 1024}, (triton.cdiv(2 * n, 1024),), expected=F.gelu),
        rows("softmax 4096 × 1000 fp32", "softmax", (4096, 1000), "float32", [((4096, 1000), "float32")], [],
             lambda x: torch.softmax(x, 1), 4),
        rows("softmax 8192² fp32", "softmax", (8192, 8192), "float32", [((8192, 8192), "float32")], [],
             lambda x: torch.softmax(x, 1), 16),
        rows("layer norm 4096² fp16", "layernorm", square, "float16",
             [(square, "float16"), vector(4096, "float16"), vector(4096, "float16")], [1e-5],
             lambda x, g, b: F.layer_norm(x, (4096,), g, b), 8),
        rows("RMS norm 8192 × 2048 bf16", "rmsnorm", tall, "bfloat16",
             [(tall, "bfloat16"), vector(2048, "bfloat16")], [1e-5],
             lambda x, g: F.rms_norm(x, (2048,), g, 1e-5), 4),
        Case("row sums 8192² fp32", "row_sum", [((8192, 8192), "float32")], vector(8192), [8192], {"BLOCK": 2048},
             (8192,), 8, expected=lambda x: x.sum(1)),
        Case("transpose 4096² fp32", "transpose", [(square, "float32")], (square, "float32"), [4096, 4096],
             {"BLOCK": 64}, (64, 64), expected=lambda x: x.T),
        product(1024, 64, 128, 64, 4, 4),
        product(4096, 128, 256, 64, 8, 3),
        Case("attention 16 × 4096 × 64 fp16", "attention", [qkv] * 3, qkv, [length, dim ** -0.5],
             {"BLOCK_M": 128, "BLOCK_N": 64, "HEAD": dim}, (length // 128, heads), 4, 3,
             lambda q, k, v: F.scaled_dot_product_attention(q, k, v)),
    ]


class Server:
    def __init__(self, url, out):
        self.url, self.out = url, out
        os.makedirs(out, exist_ok=True)

    def fetch(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path}: {error.code}: {error.read()[:2000]}") from None

    def evaluate(self, body):
        report = json.loads(self.fetch("/evaluate", body))
        if not report.get("measurement"):
            raise SystemExit(f"not measured: {json.dumps(report)[:3000]}")
        return report

    def keep(self, name, record):
        with open(os.path.join(self.out, name + ".jsonl"), "a") as file:
            file.write(json.dumps(record) + "\n")


def do_bench(run):
    """Median of Triton's own clock, µs: L2 flushed before each launch, launches back to back."""
    return 1e3 * triton.testing.do_bench(run, warmup=200, rep=500, return_mode="median")


def bench(server):
    print("| kernel | `do_bench` before, after, µs | isolated, µs (95 % CI) | difference | sustained, µs (95 % CI) "
          "| difference | load: share, median, µs | clock isolated, sustained, MHz |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    for case in cases():
        inputs, output = case.tensors()
        case.launch(inputs, output)
        wanted = case.expected(*inputs)
        error = ((output.double() - wanted.double()).norm() / wanted.double().norm()).item()
        if not error < 2e-2:
            raise SystemExit(f"{case.label}: Triton's own launch is wrong, by {error}")
        del wanted
        before = do_bench(lambda: case.launch(inputs, output))
        own = {regime: server.evaluate(case.request(regime))["measurement"] for regime in ("isolated", "sustained")}
        after = do_bench(lambda: case.launch(inputs, output))
        theirs = (before + after) / 2

        def told(regime):
            summary = own[regime]["summary"]
            low, high = summary.get("median_ci_low"), summary.get("median_ci_high")
            interval = f" ({1e3 * low:.2f}–{1e3 * high:.2f})" if low else ""
            return (f"{1e3 * summary['median']:.2f}{interval} "
                    f"| {100 * (1e3 * summary['median'] / theirs - 1):+.2f} %")

        def clock(regime):
            hz = (own[regime].get("sm_clock") or {}).get("mean_hz")
            return f"{hz / 1e6:.0f}" if hz else "–"

        load = own["sustained"].get("load") or {}
        server.keep("bench", {"case": case.label, "do_bench_us": [before, after], "load": load,
                              **{r: {k: own[r].get(k) for k in ("summary", "sm_clock", "stopped", "notes", "sealed")}
                                 for r in own}})
        print(f"| {case.label} | {before:.2f}, {after:.2f} | {told('isolated')} | {told('sustained')} "
              f"| {load.get('share', 0):.3f}, {1e3 * (load.get('median_ms') or 0):.2f} "
              f"| {clock('isolated')}, {clock('sustained')} |", flush=True)
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.float16) for _ in range(2))
    print(f"\ncuBLAS, 4096³, `do_bench`: {do_bench(lambda: torch.mm(a, b)):.2f} µs", flush=True)


def clocks(server):
    rig = do_bench_steps.Rig()
    names = do_bench_steps.STEPS
    print("| kernel | `do_bench` |" + "".join(f" {name} |" for name in names) + " warpgauge | rest |")
    print("|---|" + "---:|" * (len(names) + 3))

    def row(case, request):
        inputs, output = case.tensors()
        compiled = case.launch(inputs, output)

        def run():
            case.launch(inputs, output)
        own = [1e3 * server.evaluate(request)["measurement"]["summary"]["median"]]
        theirs = do_bench(run)
        rounds = do_bench_steps.steps(rig, run, compiled, case.grid, inputs, output, case.scalars)
        own.append(1e3 * server.evaluate(request)["measurement"]["summary"]["median"])
        server.keep("clocks", {"case": case.label, "do_bench_us": theirs, "steps_us": rounds, "warpgauge_us": own})
        medians = [sorted(step)[len(step) // 2] for step in rounds]
        mean = sum(own) / len(own)
        told = " | ".join(f"{value:.2f}" for value in (theirs, *medians))
        print(f"| {case.label} | {told} | {own[0]:.2f}, {own[1]:.2f} | {100 * (mean / medians[-1] - 1):+.2f} % |",
              flush=True)

    for case in cases():
        row(case, case.request())
    case = Case("one block that does nothing", "add", [vector(256)] * 2, vector(256), [0], {"BLOCK": 256}, (1,))
    request = case.request()
    request["kernel"]["io"]["args"][2]["role"] = "inout"
    request["kernel"]["io"]["args"][2]["tensor_spec"]["init"] = {"kind": "zeros"}
    row(case, request)


def plain(ptx):
    """Less what says where sources lie."""
    kept = (line for line in ptx.splitlines() if not re.match(r"\s*(//|\.loc|\.file)", line))
    return "\n".join(kept).split("\t.section")[0].strip()


def code(server):
    print("| kernel | PTX lines | same |\n|---|---:|---|")
    for case in cases():
        inputs, output = case.tensors()
        theirs = plain(case.launch(inputs, output).asm["ptx"])
        report = server.evaluate(case.request() | {"measure": {"preset": "quick"}})
        path = f"/jobs/{report['job_id']}/artifacts/ptx"
        own = plain(server.fetch(path).decode())
        same = own == theirs
        for name, text in (("theirs", theirs), ("ours", own)) if not same else ():
            with open(os.path.join(server.out, f"{case.label.split()[0]}-{name}.ptx"), "w") as file:
                file.write(text)
        print(f"| {case.label} | {len(theirs.splitlines())} | {'yes' if same else 'NO'} |", flush=True)


CONFIGS = [(m, n, k, warps, stages) for m, n in ((64, 64), (64, 128), (128, 128), (128, 256))
           for k, stages in ((32, 4), (64, 3)) for warps in (4, 8)]


def tune(server):
    size = 2048
    base = product(size, 64, 64, 32, 4, 3)
    listed = ",\n        ".join(
        f"triton.Config({{'BLOCK_M': {m}, 'BLOCK_N': {n}, 'BLOCK_K': {k}, 'GROUP': 8}}, num_warps={w}, num_stages={s})"
        for m, n, k, w, s in CONFIGS)
    print("| | compiled and chosen, s | winner | its median, isolated, µs |\n|---|---:|---|---:|")
    for round in range(3):
        # A new function each time: neither side has compiled it.
        head, body = "@triton.jit\ndef matmul(", "    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M)"
        tuned = SOURCE.replace(head, f"@triton.autotune(configs=[\n        {listed}], key=['m', 'n', 'k'])\n{head}")
        tuned = tuned.replace(body, f"    # {round} {time.time()}\n{body}")
        request = base.request(source=tuned)
        request["kernel"]["io"]["args"] = [a for a in request["kernel"]["io"]["args"] if not a.get("is_meta")]
        request["kernel"]["io"]["launch"] = {"grid": {"x": f"cdiv({size}, BLOCK_M) * cdiv({size}, BLOCK_N)"}}
        request["measure"] = {"preset": "quick"}
        began = time.time()
        report = server.evaluate(request)
        whole = time.time() - began
        chosen = report["kernel_exec_result"]["metadata"]["configuration"]
        server.keep("tune", {"tuning": report["tuning"], "whole_s": whole, "configuration": chosen})

        with tempfile.NamedTemporaryFile("w", suffix=".py", prefix=f"tuned{round}_", delete=False) as file:
            file.write(tuned)
        module = __import__("importlib.util").util
        spec = module.spec_from_file_location(f"tuned{round}", file.name)
        loaded = module.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        inputs, output = base.tensors()
        grid = lambda meta: (triton.cdiv(size, meta["BLOCK_M"]) * triton.cdiv(size, meta["BLOCK_N"]),)  # noqa: E731
        torch.cuda.synchronize()
        began = time.time()
        loaded.matmul[grid](*inputs, output, size, size, size)
        torch.cuda.synchronize()
        theirs_s = time.time() - began
        best = loaded.matmul.best_config
        theirs = (best.kwargs["BLOCK_M"], best.kwargs["BLOCK_N"], best.kwargs["BLOCK_K"], best.num_warps, best.num_stages)

        def timed(config):
            case = product(size, config[0], config[1], config[2], config[3], config[4])
            return 1e3 * server.evaluate(case.request())["measurement"]["summary"]["median"]

        own = CONFIGS[report["tuning"]["chosen"]]
        total = report["tuning"]["total_ms"] / 1e3
        print(f"| warpgauge | {total:.2f} (answer after {whole:.2f}) | {own} | {timed(own):.2f} |")
        print(f"| Triton's autotuner | {theirs_s:.2f} | {theirs} | {timed(theirs):.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="http://127.0.0.1:8000")
    parser.add_argument("--out", default="figures")
    parser.add_argument("what", nargs="*", default=[])
    args = parser.parse_args()
    server = Server(args.server, args.out)
    properties = torch.cuda.get_device_properties(0)
    print(f"{properties.name}, torch {torch.__version__}, triton {triton.__version__}")
    for what in args.what or ["code", "bench", "clocks", "tune"]:
        print(f"\n## {what}\n", flush=True)
        {"bench": bench, "clocks": clocks, "code": code, "tune": tune}[what](server)


if __name__ == "__main__":
    main()
