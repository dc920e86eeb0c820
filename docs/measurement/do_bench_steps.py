"""From the loop of `triton.testing.do_bench` to that of warpgauge, one step at a time.

All steps launch the same compiled kernel on the same tensors in one process. Each differs from the step
before it in one thing, so that the differences between neighbours add up to the whole.
"""
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile

import torch

from driver_loop import LAUNCHES, ROUNDS, WARM_UP, DriverEvent, Gate, Launch, fill, scalars

STEPS = [
    "the loop of `do_bench`",
    "launched by `cuLaunchKernel`",
    "on a stream of its own, events of the driver",
    "L2 flushed by a memset of twice its size",
    "each launch waited for",
    "inputs and outputs written anew before the flush",
    "a blocking kernel before the first event",
    "in a process without PyTorch",
]

class Rig:
    """What the steps share."""

    def __init__(self):
        torch.zeros(1, device="cuda")
        self.gate = Gate()
        self.flush = torch.empty(64 << 20, dtype=torch.int, device="cuda")
        self.l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.stream = torch.cuda.Stream()
        self.torch_events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(LAUNCHES)]
        self.driver_events = [[DriverEvent() for _ in range(2)] for _ in range(LAUNCHES)]
        for pair in self.driver_events:
            for event in pair:
                event.record(self.stream.cuda_stream)
        torch.cuda.synchronize()

    def loop(self, step, by_triton, by_driver, inputs, outputs):
        """Median of one step, µs."""
        own = step >= 2
        stream = self.stream.cuda_stream if own else 0
        events = self.driver_events if own else self.torch_events
        spare = [tensor.clone() for tensor in inputs] if step >= 5 else []
        torch.cuda.synchronize()
        with torch.cuda.stream(self.stream if own else torch.cuda.default_stream()):
            for turn in range(-WARM_UP, LAUNCHES):
                start, end = events[max(turn, 0)]
                if step >= 5:
                    for tensor, kept in zip(inputs, spare):
                        tensor.copy_(kept)
                    for tensor in outputs:
                        tensor.fill_(turn)
                if step >= 3:
                    fill(self.flush.data_ptr(), 2 * self.l2, 0, stream)
                else:
                    self.flush.zero_()
                if step >= 6:
                    self.gate.close(stream)
                start.record(stream) if own else start.record()
                by_driver(stream) if step >= 1 else by_triton()
                end.record(stream) if own else end.record()
                if step >= 6:
                    self.gate.open()
                if step >= 4:
                    end.synchronize()
            torch.cuda.synchronize()
        return 1e3 * statistics.median(start.elapsed_time(end) for start, end in events)


def alone(compiled, grid, inputs, output, given):
    """Medians in a process that has only the driver in it, µs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        def kept(name, data):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            return path
        task = {
            "cubin": kept("cubin", compiled.asm["cubin"]), "name": compiled.metadata.name, "grid": list(grid),
            "threads": 32 * compiled.metadata.num_warps, "shared": compiled.metadata.shared, "scalars": list(given),
            "inputs": [kept(f"in{i}", tensor.flatten().view(torch.uint8).cpu().numpy().tobytes())
                       for i, tensor in enumerate(inputs)],
            "output_bytes": output.numel() * output.element_size(),
        }
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver_loop.py")
        ended = subprocess.run([sys.executable, script], input=json.dumps(task), capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(ended.stderr)
        return json.loads(ended.stdout)


def steps(rig, by_triton, compiled, grid, inputs, output, given):
    """Medians of each step in each round, µs: steps take turns, so that a drift is in all of them."""
    if compiled.metadata.global_scratch_size or compiled.metadata.num_ctas != 1:
        raise SystemExit(f"{compiled.metadata.name}: scratch memory or clusters, which this script does not launch")
    values = [ctypes.c_uint64(tensor.data_ptr()) for tensor in (*inputs, output)]
    by_driver = Launch(compiled.function, grid, 32 * compiled.metadata.num_warps, compiled.metadata.shared,
                       scalars(values, given))
    # Both ways of launching leave the same.
    left = []
    for launch in (by_triton, lambda: by_driver(0)):
        output.zero_()
        launch()
        torch.cuda.synchronize()
        left.append(output.clone())
    if not torch.equal(*left):
        raise SystemExit(f"{compiled.metadata.name}: launched by the driver it leaves something else")
    del left
    within = len(STEPS) - 1
    rounds = [[rig.loop(step, by_triton, by_driver, inputs, [output]) for step in range(within)]
              for _ in range(ROUNDS)]
    return [*zip(*rounds), alone(compiled, grid, inputs, output, given)]
