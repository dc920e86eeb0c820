#!/usr/bin/env python3
"""KernelBench's own harness as a process, and `POST /compare`, in turn on the same problems.

    kernelbench_harness.py PROGRAM REPOSITORY [--every N] [--from N] [--seconds S]

`REPOSITORY` is a checkout of KernelBench, and the Python that runs this script has what its `kernelbench.eval` imports.
For each N-th problem of levels 1 to 3 the harness evaluates a subclass of the problem's model in a separate process,
with 5 correctness and 100 performance trials. Then `PROGRAM serve` compares the same two sources with 100 trials, and a
second candidate with the same reference. One line for each problem has the seconds of all three; the last lines have the
median, the smallest and the largest of the ratios, harness over server.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from kernelbench import SAME, compare, problems_in, serving, stages

HARNESS = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from kernelbench.eval import eval_kernel_against_ref
source, candidate = (pathlib.Path(path).read_text() for path in sys.argv[2:4])
print(eval_kernel_against_ref(source, candidate, num_correct_trials=5, num_perf_trials=100, measure_performance=True))
"""


def harness(repository, problem, scratch):
    candidate = pathlib.Path(scratch, "candidate.py")
    candidate.write_text(problem.read_text() + SAME)
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", HARNESS, repository / "src", problem, candidate], capture_output=True, text=True
    )
    took = time.monotonic() - began
    last = (ran.stdout.strip().splitlines() or ran.stderr.strip().splitlines() or [""])[-1]
    if ran.returncode:
        raise SystemExit(f"KernelBench's harness ended with code {ran.returncode}: {last}")
    return took, last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("repository", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    problems = problems_in(asked.repository / "KernelBench")[asked.first :: asked.every]
    ratios = {"first": [], "second": []}
    with serving(asked.program), tempfile.TemporaryDirectory() as scratch:
        compare(problems[0].read_text(), problems[0].read_text() + SAME)
        until = time.monotonic() + asked.seconds
        for path in problems:
            if time.monotonic() > until:
                break
            theirs, said = harness(asked.repository, path, scratch)
            source = path.read_text()
            first, first_took = compare(source, source + SAME, 100)
            second, second_took = compare(source, source + SAME + "    # another candidate\n", 100)
            ratios["first"].append(theirs / first_took)
            ratios["second"].append(theirs / second_took)
            print(f"{path.parent.name}/{path.name[:32]:32} harness {theirs:.2f} s, first {first_took:.2f} s "
                  f"{first.get('verdict')} {stages(first)}, second {second_took:.2f} s {second.get('verdict')} | "
                  f"{said[:80]}", flush=True)
    for name, all_of in ratios.items():
        if all_of:
            print(f"{name}: {len(all_of)} problems, harness over server: median {statistics.median(all_of):.2f}, "
                  f"{min(all_of):.2f} to {max(all_of):.2f}")


if __name__ == "__main__":
    main()
