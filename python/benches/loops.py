"""Loops on one GPU and on two: how much faster, and what a call costs.

    python python/benches/loops.py path/to/warpgauge

Needs a machine with two GPUs, and PyTorch for the server. Each loop runs on one GPU and on both, in turns, three
times; medians count. Iterations are those of the reference's example with matrices of real size; in `uneven` one in ten
takes ten times as long as the others. `long` runs once.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import warpgauge
from warpgauge import cluster, configure


@cluster
def nothing() -> int:
    return 1


@cluster
def products(size: int, repeats: list[int]) -> list[float]:
    import torch

    results = []
    for count in repeats:
        x = torch.randn(size, size, device="cuda")
        y = torch.mm(x, x.t())
        for _ in range(count):
            y = torch.mm(x, x.t())
        results.append(y.trace().item())
    return results


# Sizes of the matrices, how often each iteration repeats its product, and how often all of it is timed.
LOOPS = {
    "even": (4096, [20] * 100, 3),
    "uneven": (4096, [100 if i % 10 == 3 else 10 for i in range(100)], 3),
    "long": (8192, [10] * 100, 1),
}


def timed(what: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    value = what()
    return time.perf_counter() - began, value


def main() -> None:
    with warpgauge.serve(device="0,1", program_path=sys.argv[1]) as server:
        configure(server=server.url)
        first = timed(nothing)[0]
        later = [1e3 * timed(nothing)[0] for _ in range(20)]
        print(f"first call {first:.2f} s, later {statistics.median(later):.0f} ms (fastest {min(later):.0f})")
        print("| loop | one GPU, s | two GPUs, s | times as fast | same results |\n| --- | ---: | ---: | ---: | --- |")
        for name, (size, repeats, rounds) in LOOPS.items():
            taken: dict[int, list[float]] = {1: [], 2: []}
            values = []
            for _ in range(rounds):
                for places in (1, 2):
                    configure(server=server.url, max_gpu_parallel_jobs=places)
                    took, value = timed(partial(products, size, repeats))
                    taken[places].append(took)
                    values.append(value)
            one, two = (statistics.median(taken[places]) for places in (1, 2))
            same = "yes" if all(value == values[0] for value in values) else "NO"
            print(f"| {name} | {one:.2f} | {two:.2f} | {one / two:.2f} | {same} |", flush=True)
        print(products.explain())


if __name__ == "__main__":
    main()
