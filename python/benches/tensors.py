"""Shared tensors on a GPU: what opening one takes, whether it is one memory, and how fast uploads are.

    python python/benches/tensors.py path/to/warpgauge [DIRECTORY]

Needs PyTorch with CUDA and, for one line, CuPy. Files of 1 GiB and 2 GiB are written to DIRECTORY (/dev/shm). Each
tensor is opened in a process of its own, which has imported the library and used the device before. An upload is
compared with reading the same file into page-locked memory and copying that to the device, three times each in turn.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from resident import resident

import warpgauge
from warpgauge import TensorClient

GIB = 1 << 30

OPEN = """
import json, sys, time
import {library}
from warpgauge import TensorClient
url, tensor_id = sys.argv[1:]
{warm}
with TensorClient(url=url) as client:
    client.get_cuda_info()
    took = []
    for turn in range(5):
        began = time.perf_counter()
        shared = client.access_shared_tensor(tensor_id, "{library}")
        took.append(1e3 * (time.perf_counter() - began))
        if turn < 4:
            del shared
    before = float(shared[:1000].sum())
    {change}
    {wait}
    print(json.dumps({{"ms": took, "before": before, "pointer": int({pointer}), "after": float(shared[:1000].sum())}}))
"""


def elsewhere(url: str, tensor_id: str, library: str, change: str) -> dict[str, Any]:
    parts = {
        "torch": {"warm": "torch.zeros(1, device='cuda')", "pointer": "shared.data_ptr()",
                  "wait": "torch.cuda.synchronize()"},
        "cupy": {"warm": "cupy.zeros(1)", "pointer": "shared.data.ptr", "wait": "cupy.cuda.Device().synchronize()"},
    }[library]  # fmt: skip
    code = OPEN.format(library=library, change=change, **parts)
    done = subprocess.run([sys.executable, "-c", code, url, tensor_id], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def plain(path: Path) -> float:
    """Seconds from a file to the device, by way of page-locked memory."""
    size = path.stat().st_size
    began = time.perf_counter()
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    with path.open("rb", buffering=0) as file:
        view, at = memoryview(host.numpy()), 0
        while at < size:
            at += file.readinto(view[at : at + (64 << 20)]) or 0
    device = host.cuda()
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    del device, host
    return took


def uploaded(url: str, path: Path) -> tuple[float, str]:
    """Seconds of an upload by curl, which reads files as fast as anybody."""
    began = time.perf_counter()
    done = subprocess.run(
        ["curl", "-sS", "-F", f"file=@{path}", "-F", "cuda_device=0", f"{url}/tensors"], capture_output=True, text=True
    )
    took = time.perf_counter() - began
    answer = json.loads(done.stdout)
    if "tensor_id" not in answer:
        raise SystemExit(done.stdout)
    return took, answer["tensor_id"]


def main() -> None:
    place = Path(sys.argv[2] if len(sys.argv) > 2 else "/dev/shm")
    with tempfile.TemporaryDirectory(dir=place) as directory, \
            warpgauge.serve(device="0", program_path=sys.argv[1]) as server, \
            TensorClient(url=server.url) as client:  # fmt: skip
        torch.zeros(1, device="cuda")
        idle = resident(server.pid, "VmRSS")
        opened(client, server.url, Path(directory))
        uploads(client, server, Path(directory), idle)


def opened(client: TensorClient, url: str, directory: Path) -> None:
    print("| tensor | opened by | handle to view, ms (first; median of 5) | after a change elsewhere |\n"
          "| --- | --- | ---: | --- |")  # fmt: skip
    for mib in (1, 2048):
        path = directory / "t.npy"
        values = np.lib.format.open_memmap(path, "w+", np.float32, (mib << 18,))
        values[:1000] = np.arange(1000)
        values.flush()
        _, tensor_id = uploaded(url, path)
        expected = float(np.arange(1000).sum())
        for library, change, factor in (
            ("torch", "shared.mul_(2.0)", 2),
            ("cupy", "shared *= 2.0", 2),
            ("torch", "shared.mul_(0.25)", 0.25),
        ):
            try:
                seen = elsewhere(url, tensor_id, library, change)
            except SystemExit as error:
                if "No module named" not in str(error):
                    raise
                print(f"| {mib} MiB | {library} | not installed | |")
                continue
            assert seen["before"] == expected, (seen, expected)
            expected *= factor
            assert seen["after"] == expected, (seen, expected)
            first, median = seen["ms"][0], statistics.median(seen["ms"])
            print(f"| {mib} MiB | {library} | {first:.1f}; {median:.1f} | seen, at {seen['pointer']:#x} |", flush=True)
        if mib == 1:
            content = np.frombuffer(client.get_data(tensor_id, "raw"), np.float32)
            assert float(content.sum()) == expected
        client.delete_tensor(tensor_id)
        path.unlink()


def uploads(client: TensorClient, server: warpgauge.Server, directory: Path, idle: float) -> None:
    path = directory / "g.npy"
    np.save(path, np.zeros(GIB // 4, np.float32))
    ours, theirs = [], []
    for _ in range(4):
        theirs.append(plain(path))
        took, tensor_id = uploaded(server.url, path)
        ours.append(took)
        client.delete_tensor(tensor_id)
    rate = [GIB / 1e9 / statistics.median(seconds[1:]) for seconds in (ours, theirs)]
    print(f"\nupload of 1 GiB: {rate[0]:.2f} GB/s, read and copied {rate[1]:.2f} GB/s, {100 * rate[0] / rate[1]:.0f} %")
    print("seconds of each:", [f"{s:.2f}" for s in ours], "plain:", [f"{s:.2f}" for s in theirs])
    peak = resident(server.pid, "VmHWM")
    print(f"memory of the server: {idle:.0f} MiB before, {peak:.0f} MiB at most")


if __name__ == "__main__":
    main()
