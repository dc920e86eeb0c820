#!/usr/bin/env python3
"""Torch kernels beside themselves, and beside themselves with 2 % more work, on either side.

    torch_pairs.py PROGRAM [--kinds same,more,less] [--repeats N] [--seconds S]

Starts `PROGRAM serve` on this machine and sends each pair to `POST /compare`. `same` is a kernel beside itself, `more` a
candidate that repeats its work on a fiftieth of the batch, and `less` a candidate beside such a reference. One line for
each comparison has its verdict, the ratio of the times and the seconds that the caller waited. The last lines count the
verdicts of each kind.

Needs nothing but Python; PyTorch is the server's.
"""
import argparse
import collections
import time

from kernelbench import post, serving

# Operation on `x`, shape of `x`, and further parameters.
PROBLEMS = {
    "relu": ("torch.relu(x) * 2", (1 << 13, 1 << 13), ""),
    "softmax": ("torch.softmax(x, -1)", (1 << 13, 1 << 12), ""),
    "layer_norm": ("torch.nn.functional.layer_norm(x, x.shape[1:])", (1 << 13, 1 << 12), ""),
    "matmul": ("x @ self.w", (1 << 13, 1 << 11), "torch.randn(1 << 11, 1 << 11)"),
    "sum": ("x.sum(-1)", (1 << 14, 1 << 13), ""),
    "convolution": ("torch.conv2d(x, self.w, padding=1)", (100, 64, 64, 64), "torch.randn(64, 64, 3, 3)"),
    "gelu": ("torch.nn.functional.gelu(x)", (400, 1 << 18), ""),
    "cumsum": ("torch.cumsum(x, -1)", (1 << 13, 1 << 12), ""),
}

SOURCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.w = torch.nn.Parameter({weight}, requires_grad=False)

    def of(self, x):
        return {operation}

    def forward(self, x):
        {more}
        return self.of(x)

def get_inputs():
    return [torch.randn({shape})]
"""
MORE = "self.of(x[: len(x) // 50])"


def source(name, more):
    operation, shape, weight = PROBLEMS[name]
    return SOURCE.format(
        operation=operation, shape=shape, weight=weight or "torch.zeros(1)", more=MORE if more else "pass"
    )


def compare(name, kind):
    torch = lambda more: {"kernel_type": "torch", "source_code": source(name, more)}
    body = {"ref_kernel": torch(kind == "less"), "custom_kernel": torch(kind == "more")}
    began = time.monotonic()
    report = post("/compare", body)
    took = time.monotonic() - began
    candidate = (report.get("candidates") or [{}])[0]
    comparison = candidate.get("comparison") or {}
    verdict = comparison.get("verdict") or report.get("verdict") or "error"
    ratio = (comparison.get("time") or {}).get("ratio")
    why = candidate.get("not_compared") or report.get("error") or ""
    print(f"{name:12} {kind:5} {verdict} {ratio and round(ratio, 4)} {took:.2f} s {why[:300]}", flush=True)
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kinds", default="same,more,less")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    verdicts = collections.Counter()
    with serving(asked.program):
        until = time.monotonic() + asked.seconds
        every = [(name, kind) for _ in range(asked.repeats) for name in PROBLEMS for kind in asked.kinds.split(",")]
        for name, kind in every:
            if time.monotonic() > until:
                break
            verdicts[kind, compare(name, kind)] += 1
    for (kind, verdict), count in sorted(verdicts.items()):
        print(f"{kind}: {verdict} {count}")


if __name__ == "__main__":
    main()
