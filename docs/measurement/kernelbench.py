#!/usr/bin/env python3
"""KernelBench's problems, unchanged, each beside itself and, if asked for, beside zeros.

    kernelbench.py PROGRAM PROBLEMS [--every N] [--from N] [--seconds S] [--zeros] [--again]

Starts `PROGRAM serve` on this machine and sends each N-th problem of `PROBLEMS/level1` to `level3` to `POST /compare`, as
the reference and as a candidate that is a subclass of it. `--zeros` also sends a candidate that returns zeros, and
`--again` the first candidate a second time, for which the server has evaluated the reference already. One line for each
comparison has the verdicts, the seconds that the caller waited, and the stages that took 20 ms and more.

Needs nothing but Python; PyTorch is the server's.
"""
import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import time
import urllib.error
import urllib.request

PORT = 8777
SAME = "\nclass ModelNew(Model):\n    pass\n"
ZEROS = """
class ModelNew(Model):
    def forward(self, *a, **k):
        y = super().forward(*a, **k)
        return torch.zeros_like(y) if torch.is_tensor(y) else y
"""


def post(path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def wait_for_server(server):
    while server.poll() is None:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health").close()
        except urllib.error.URLError:
            time.sleep(0.05)
    raise SystemExit("the server has ended; its reason is above")


@contextlib.contextmanager
def serving(program):
    """Runs `program serve` on this machine while the caller measures."""
    server = subprocess.Popen([program, "serve", "--port", str(PORT)], stdout=subprocess.DEVNULL)
    try:
        wait_for_server(server)
        yield
    finally:
        server.terminate()
        server.wait()


def compare(reference, candidate, trials=10):
    torch = lambda source: {"kernel_type": "torch", "source_code": source}
    body = {"ref_kernel": torch(reference), "custom_kernel": torch(candidate), "num_trials": trials, "timeout": 120.0}
    began = time.monotonic()
    report = post("/compare", body)
    return report, time.monotonic() - began


def stages(report):
    """The stages that took 20 ms and more, in milliseconds."""
    return {stage: round(ms) for stage, ms in (report.get("timings") or {}).items() if ms >= 20}


def line(name, kind, report, took):
    candidate = (report.get("candidates") or [{}])[0]
    comparison = candidate.get("comparison") or {}
    ratio = (comparison.get("time") or {}).get("ratio")
    compared = comparison.get("verdict") if ratio is None else f"{comparison.get('verdict')} ({ratio:.4f})"
    why = report.get("error") or candidate.get("not_compared") or ""
    return f"{name:44} {kind:6} {report.get('verdict')} {compared} {took:.2f} s {stages(report)} {why[:160]}"


def problems_in(folder):
    number = lambda path: int(path.name.split("_")[0])
    levels = [folder / f"level{level}" for level in (1, 2, 3)]
    problems = [path for level in levels for path in sorted(level.glob("*.py"), key=number)]
    if not problems:
        raise SystemExit(f"{folder} has no level1 to level3 with problems: name KernelBench's own folder of them")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("problems", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--zeros", action="store_true")
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    problems = problems_in(asked.problems)
    kinds = [("same", SAME)] + [("zeros", ZEROS)] * asked.zeros + [("again", SAME)] * asked.again
    seconds = {kind: [] for kind, _ in kinds}
    with serving(asked.program):
        until = time.monotonic() + asked.seconds
        for path in problems[asked.first :: asked.every]:
            if time.monotonic() > until:
                break
            source = path.read_text()
            for kind, candidate in kinds:
                report, took = compare(source, source + candidate)
                seconds[kind].append(took)
                print(line(f"{path.parent.name}/{path.name}"[:44], kind, report, took), flush=True)
    for kind, took in seconds.items():
        if took:
            print(f"{kind}: {len(took)} problems, mean {statistics.mean(took):.2f} s, "
                  f"median {statistics.median(took):.2f} s, {min(took):.2f} to {max(took):.2f} s")


if __name__ == "__main__":
    main()
