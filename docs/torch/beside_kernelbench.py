#!/usr/bin/env python3
"""Thirty problems in KernelBench's form: a running server with a GPU beside KernelBench's own harness.

    beside_kernelbench.py [--server URL] [--kernelbench DIR] [--out FILE] [--only NAME] [PART …]

bench        `triton.testing.do_bench` of both models in this process
server       POST /compare of the right candidate (`--times` times) and of the wrong one, and
             POST /evaluate of the right one alone (`--times` times)
kernelbench  `eval_kernel_against_ref` in a process for each problem: the right candidate, then the wrong one
table        what FILE has, as Markdown
check        both candidates beside the reference in this process, by KernelBench's tolerances; needs no GPU

Without a PART: bench, server, kernelbench and table. What FILE has of other parts stays, so that parts can be
run one by one. Each file of problems/ has a head, the reference, a right and a wrong candidate; a source that
is sent is the head and one of these, and both candidates are called `ModelNew`.

DIR has KernelBench's package `kernelbench`; `DIR/stubs` is searched last, if it is there. Needs PyTorch and,
for `bench`, Triton.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("bench", "server", "kernelbench", "table", "check")
# KernelBench's tolerances, relative and absolute, by the type of what a problem computes with.
TOLERANCE = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 1e-2}
SIDES = ("reference", "right")
MARK = "# == "


def quarter(number):
    return str(max(int(number) // 4, 64))


class Problem:
    """A file of problems/, in its parts."""

    def __init__(self, path, small=False):
        self.path = path
        self.name = os.path.basename(path)[:-len(".py")]
        with open(path) as file:
            head, *parts = file.read().split("\n" + MARK)
        self.parts = {}
        for part in parts:
            title, _, body = part.partition("\n")
            kind, _, self.parts[kind + " means"] = title.partition(": ")
            self.parts[kind] = body
        if small:
            # Sizes are the numbers of assignments in capitals.
            head = re.sub(r"^[A-Z, ]+=.*$", lambda line: re.sub(r"\d{3,}", lambda n: quarter(n[0]), line[0]),
                          head, flags=re.M)
        self.head = head
        suffix = self.name.rsplit("_", 1)[1]
        self.precision = suffix if suffix in TOLERANCE else "fp32"
        self.tolerance = TOLERANCE[self.precision]

    def source(self, *kinds):
        """The head and these parts: what is sent."""
        return "\n".join([self.head, *(self.parts[kind] for kind in kinds)]).replace("ModelWrong", "ModelNew")

    def models(self, device, kinds, by_name=True):
        """Modules of these parts, made from the same seed, and a function that makes inputs."""
        import torch
        torch.backends.cudnn.allow_tf32 = True
        spaces = {}
        for kind in dict.fromkeys(["reference", *kinds]):
            spaces[kind] = {}
            exec(compile(self.source(kind), f"{self.name} {kind}", "exec"), spaces[kind])
        given = spaces["reference"]["get_init_inputs"]()
        made = {}
        for kind, space in spaces.items():
            torch.manual_seed(42)
            made[kind] = space["Model" if kind == "reference" else "ModelNew"](*given)
            if by_name:
                made[kind].load_state_dict(made["reference"].state_dict())
            made[kind].to(device)

        def inputs(seed):
            torch.manual_seed(seed)
            with torch.device(device):
                return spaces["reference"]["get_inputs"]()
        return [made[kind] for kind in kinds], inputs


def problems(only, small=False):
    found = [Problem(path, small) for path in sorted(glob.glob(os.path.join(HERE, "problems", "*.py")))]
    return [problem for problem in found if only in problem.name]


# --- in this process ----------------------------------------------------------------------------------------

def do_bench(problem):
    """Medians, µs."""
    import torch
    import triton
    modules, inputs = problem.models("cuda", SIDES)
    tensors = inputs(7)
    with torch.no_grad():
        return {side: 1e3 * triton.testing.do_bench(
            lambda module=module: module(*tensors), warmup=100, rep=300, return_mode="median")
            for side, module in zip(SIDES, modules)}


def bench(problem, _options):
    import torch
    import triton
    medians = do_bench(problem)
    # The server needs the memory.
    torch.cuda.empty_cache()
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__,
            **medians}


def check(problem, _options):
    """How far both candidates are from the reference: one is as far as the tolerance allows."""
    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out = {}
    for by_name in (True, False):
        modules, inputs = problem.models(device, ("reference", "right", "wrong"), by_name)
        if not by_name and not modules[0].state_dict():
            continue
        far = {"right": [], "wrong": []}
        with torch.no_grad():
            for seed in (1, 2):
                tensors = inputs(seed)
                kept = [tensor.clone() for tensor in tensors]
                wanted, *given = [module(*tensors) for module in modules]
                if not all(torch.equal(*pair) for pair in zip(tensors, kept)):
                    raise AssertionError("an input was changed")
                for kind, value in zip(far, given):
                    if (value.shape, value.dtype) != (wanted.shape, wanted.dtype):
                        far[kind].append(float("inf"))
                        continue
                    allowed = problem.tolerance * (1.0 + wanted.double().abs())
                    far[kind].append(((value.double() - wanted.double()).abs() / allowed).max().item())
        # A wrong candidate may be right once, a right one may not be wrong once.
        found = {kind: max(values) for kind, values in far.items()}
        if not (found["right"] < 1 < found["wrong"]):
            raise AssertionError(f"parameters by {'name' if by_name else 'seed'}: {found}")
        out["by name" if by_name else "by seed"] = found
    return out


# --- the server ---------------------------------------------------------------------------------------------

def post(options, path, body):
    """The answer, and the seconds it took."""
    request = urllib.request.Request(options.server + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            report = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path}: {error.code}: {error.read()[:1000]}") from None
    return report, time.perf_counter() - began


def kernel(source, name=None):
    metadata = {"metadata": {"class_name": name}} if name else {}
    return {"kernel_type": "torch", "source_code": source, **metadata}


def clocks(report):
    """Of an evaluation: its clock's median and both clocks, µs, and where its time went, ms."""
    torch = report.get("torch") or {}
    both = torch.get("clocks") or {}
    out = {"clock": torch.get("clock"), "agree": both.get("agree"), "calls": both.get("calls"), "waits": both.get("waits"),
           "verdict": (report.get("validation") or {}).get("status"), "failure": report.get("failure"),
           "not_on_gpu": torch.get("not_on_gpu"), "timings_ms": report.get("timings")}
    summary = (report.get("measurement") or {}).get("summary") or {}
    for name, value in (("median", summary.get("median")), ("events", both.get("events_ms")),
                        ("judge", both.get("judge_ms")), ("overhead", both.get("overhead_ms"))):
        out[name] = None if value is None else 1e3 * value
    return out


def server(problem, options):
    measured = {"num_trials": options.trials, "timeout": 60.0, "measure": {"preset": options.preset}}
    out = {"compare": [], "evaluate": []}
    for kind, times in (("right", options.times), ("wrong", 1)):
        body = {"ref_kernel": kernel(problem.source("reference")),
                "custom_kernel": kernel(problem.source(kind)),
                "atol": problem.tolerance, "rtol": problem.tolerance, **measured}
        for _ in range(times):
            report, seconds = post(options, "/compare", body)
            told = report.get("kernel_exec_result") or {}
            row = {"kind": kind, "seconds": seconds, "correct": told.get("correctness"),
                   "why": told.get("validation_error") or told.get("compilation_error"),
                   "gpu": report.get("gpu_type"), "reference": clocks(report.get("reference") or {}),
                   kind: clocks((report.get("candidates") or [{}])[0].get("evaluation") or {}),
                   "comparison": {name: value for name, value in (report.get("comparison") or {}).items()
                                  if name != "blocks"} or None,
                   "not_compared": report.get("not_compared"), "timings_ms": report.get("timings")}
            out["compare"].append(row)
    body = {"kernel": kernel(problem.source("reference", "right"), "ModelNew"), **measured}
    for _ in range(options.times):
        report, seconds = post(options, "/evaluate", body)
        if report.get("failure"):
            raise RuntimeError(f"/evaluate: {report['failure']}")
        out["evaluate"].append({"seconds": seconds, "gpu": report.get("gpu_type"), **clocks(report)})
    return out


# --- KernelBench --------------------------------------------------------------------------------------------

def harness(problem, options):
    """In a process of its own: its harness on both candidates, as one line of JSON."""
    began = time.perf_counter()
    sys.path.insert(0, options.kernelbench)
    sys.path.append(os.path.join(options.kernelbench, "stubs"))
    import torch
    from kernelbench import eval as harness_of
    imported = time.perf_counter()
    precision = harness_of.get_torch_dtype_from_string(problem.precision)

    def evaluated(kind, measure):
        start = time.perf_counter()
        result = harness_of.eval_kernel_against_ref(
            problem.source("reference"), problem.source(kind), num_correct_trials=5,
            num_perf_trials=options.trials, measure_performance=measure, device=torch.device("cuda:0"),
            precision=precision)
        seconds = time.perf_counter() - start
        told = {name: str(value)[:300] for name, value in result.metadata.items() if "traceback" not in name}
        # Milliseconds, whatever its comments say; -1 where nothing was timed.
        means = {name: 1e3 * value if value > 0.0 else None
                 for name, value in (("mean", result.runtime), ("reference_mean", result.ref_runtime))}
        return {"seconds": seconds, "compiled": result.compiled, "correct": result.correctness, **means,
                "metadata": told}
    out = {"import_s": imported - began, "right": evaluated("right", True)}
    out["wrong"] = evaluated("wrong", False)
    print("\n" + json.dumps(out))


def kernelbench(problem, options):
    """Seconds are those of a process with the right candidate alone."""
    command = [sys.executable, os.path.abspath(__file__), "--harness", problem.path, "--kernelbench",
               options.kernelbench, "--trials", str(options.trials), *(["--small"] if options.small else [])]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    out = json.loads(done.stdout.strip().splitlines()[-1])
    return {"process_s": seconds - out["wrong"]["seconds"], **out}


# --- tables -------------------------------------------------------------------------------------------------

def number(value, form="{:.2f}"):
    return "–" if value is None else form.format(value)


def word(correct):
    return {True: "right", False: "wrong", None: "–"}[correct]


def last(rows, kind):
    found = [row for row in rows if row["kind"] == kind]
    return found[-1] if found else {}


def verdicts(row):
    """What both harnesses say of the right and of the wrong candidate, or None."""
    compared = row.get("server", {}).get("compare", [])
    theirs = row.get("kernelbench", {})
    return {kind: (last(compared, kind).get("correct"), theirs.get(kind, {}).get("correct"))
            for kind in ("right", "wrong")}


def seconds_of(row):
    """Seconds by name; those of requests that were sent before are the median of all but the first."""
    ours, theirs = row.get("server", {}), row.get("kernelbench", {})
    compared = [one["seconds"] for one in ours.get("compare", []) if one["kind"] == "right"]
    alone = [one["seconds"] for one in ours.get("evaluate", [])]
    return {
        "compare, first": compared[0] if compared else None,
        "compare, again": statistics.median(compared[1:]) if compared[1:] else None,
        "compare, wrong": last(ours.get("compare", []), "wrong").get("seconds"),
        "evaluate, first": alone[0] if alone else None,
        "evaluate, again": statistics.median(alone[1:]) if alone[1:] else None,
        "KernelBench, process": theirs.get("process_s"),
        "… evaluate": theirs.get("right", {}).get("seconds"),
    }


def medians_of(row, side):
    """Of one side, µs."""
    ours = last(row.get("server", {}).get("compare", []), "right").get(side, {})
    theirs = row.get("kernelbench", {}).get("right", {})
    return {"do_bench": row.get("bench", {}).get(side), "events": ours.get("events"),
            "judge": ours.get("judge"), "counted": ours.get("median"), "clock": ours.get("clock"),
            "KernelBench": theirs.get("reference_mean" if side == "reference" else "mean")}


def ratio(told, name):
    return told[name] / told["do_bench"] if told["do_bench"] and told[name] else None


def table(rows):
    names = list(seconds_of({}))
    print("\n| problem | right candidate: here, KernelBench | wrong candidate: here, KernelBench | "
          + " | ".join(f"{name}, s" for name in names) + " |\n|---|---|---|" + "---:|" * len(names))
    for name, row in rows.items():
        told = verdicts(row)
        cells = [f"{word(told[kind][0])}, {word(told[kind][1])}" for kind in ("right", "wrong")]
        cells += [number(value) for value in seconds_of(row).values()]
        print(f"| {name} | " + " | ".join(cells) + " |")
    heads = [f"{side}: `do_bench` | events | judge | counts | KernelBench | events, counted over `do_bench`"
             for side in SIDES]
    print("\nMedians in µs (KernelBench's: means):\n\n| problem | " + " | ".join(heads) + " |\n|---|"
          + ("---:|" * 3 + "---|---:|---:|") * 2)
    for name, row in rows.items():
        cells = []
        for side in SIDES:
            told = medians_of(row, side)
            cells += [number(told[kind], "{:.1f}") for kind in ("do_bench", "events", "judge")]
            cells += [told["clock"] or "–", number(told["KernelBench"], "{:.1f}")]
            cells.append(", ".join(number(ratio(told, kind), "{:.3f}") for kind in ("events", "counted")))
        print(f"| {name} | " + " | ".join(cells) + " |")
    failed = [(name, part, row[part]["error"]) for name, row in rows.items() for part in PARTS
              if "error" in row.get(part, {})]
    if failed:
        print("\n| problem | part | error |\n|---|---|---|")
        for name, part, error in failed:
            print(f"| {name} | {part} | {' '.join(error.split())[-300:].replace('|', '/')} |")
    summary(rows)


def summary(rows):
    both = [pair for row in rows.values() for pair in verdicts(row).values() if None not in pair]
    print(f"\n- Verdicts: {sum(ours == theirs for ours, theirs in both)} of {len(both)} agree; "
          f"{2 * len(rows) - len(both)} are missing on a side.")
    for side, wanted in (("here", True), ("KernelBench", True), ("here", False), ("KernelBench", False)):
        kind = "right" if wanted else "wrong"
        found = [verdicts(row)[kind][side != "here"] for row in rows.values()]
        print(f"- {kind} candidates, {side}: {sum(one is wanted for one in found)} of {len(rows)} {kind}.")
    for name in seconds_of({}):
        values = [value for value in (seconds_of(row)[name] for row in rows.values()) if value is not None]
        if values:
            print(f"- {name}: median {statistics.median(values):.2f} s, "
                  f"{min(values):.2f}–{max(values):.2f} s ({len(values)} problems).")
    told = {(name, side): medians_of(row, side) for name, row in rows.items() for side in SIDES}
    for kind in ("events", "counted", "KernelBench"):
        ratios = {which: ratio(medians, kind) for which, medians in told.items()
                  if (medians["do_bench"] or 0.0) >= 20.0 and medians[kind]}
        if ratios:
            beyond = [f"{name} {side} {one:.3f}" for (name, side), one in ratios.items()
                      if abs(one - 1.0) > 0.02]
            print(f"- {kind} over `do_bench`, from 20 µs on: {len(ratios) - len(beyond)} of {len(ratios)} "
                  f"within 2 %; median {statistics.median(ratios.values()):.3f}, {min(ratios.values()):.3f}–"
                  f"{max(ratios.values()):.3f}. Beyond: {', '.join(beyond) or 'none'}.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="http://127.0.0.1:8000")
    parser.add_argument("--kernelbench", metavar="DIR", help="directory with its package `kernelbench`")
    parser.add_argument("--out", metavar="FILE", help="keep what was measured, as JSON")
    parser.add_argument("--only", default="", metavar="NAME", help="problems whose names have this in them")
    parser.add_argument("--trials", type=int, default=100, help="timed calls in both harnesses (100)")
    parser.add_argument("--times", type=int, default=2, help="how often a request is sent (2)")
    parser.add_argument("--preset", default="quick", help="of the server's measurement (quick)")
    parser.add_argument("--small", action="store_true", help="a quarter of large sizes, to try it on a CPU")
    parser.add_argument("--harness", help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    options = parser.parse_args()
    if options.harness:
        harness(Problem(options.harness, options.small), options)
        return
    parts = options.parts or list(PARTS[:4])
    if "kernelbench" in parts and not options.kernelbench:
        parser.error("the part kernelbench needs --kernelbench DIR")
    rows = {}
    if options.out and os.path.exists(options.out):
        with open(options.out) as file:
            rows = json.load(file)
    work = {"bench": bench, "server": server, "kernelbench": kernelbench, "check": check}
    for part in (one for one in parts if one in work):
        began = time.perf_counter()
        for problem in problems(options.only, options.small):
            start = time.perf_counter()
            try:
                found = work[part](problem, options)
            # Whatever goes wrong with one problem is its row.
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                found = {"error": f"{type(error).__name__}: {error}"}
            rows.setdefault(problem.name, {})[part] = found
            told = found.get("error") or (json.dumps(found) if part == "check" else "done")
            print(f"{part} {problem.name}: {told[:300]} ({time.perf_counter() - start:.1f} s)",
                  file=sys.stderr, flush=True)
            if options.out:
                with open(options.out, "w") as file:
                    json.dump(rows, file, indent=1)
        print(f"{part}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    rows = dict(sorted(rows.items()))
    if "table" in parts:
        gpus = {last(row.get("server", {}).get("compare", []), "right").get("gpu") for row in rows.values()}
        gpus |= {row.get("bench", {}).get("gpu") for row in rows.values()}
        print(f"{', '.join(sorted(gpus - {None})) or 'no GPU'}; {len(rows)} problems")
        table(rows)
    if "check" in parts and any("error" in row.get("check", {}) for row in rows.values()):
        raise SystemExit("not every candidate is what it should be")


if __name__ == "__main__":
    main()
