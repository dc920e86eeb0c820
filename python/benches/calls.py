"""What a call of a function costs beside what it computes: the first one, later ones, and a loop.

    python python/benches/calls.py path/to/warpgauge

The server is started for it, with two places on the CPU. Medians, in milliseconds, of calls one after the other.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import warpgauge
from warpgauge import cluster, configure


@cluster
def one() -> int:
    return 1


@cluster
def loop() -> list[int]:
    return [i * i for i in range(100)]


def ms(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return 1e3 * (time.perf_counter() - began)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "config.toml")
        config.write_text("[devices]\ntorch_places = 2\n")
        with warpgauge.serve(device="emulator", program_path=sys.argv[1], args=["--config", str(config)]) as server:
            configure(server=server.url)
            first = ms(one)
            later = [ms(one) for _ in range(50)]
            loops = [ms(loop) for _ in range(20)]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"first call {first:.0f}, later calls {statistics.median(later):.0f} (fastest {min(later):.0f})")
    print(f"a loop of 100 that computes nothing {statistics.median(loops):.0f} (fastest {min(loops):.0f})")


if __name__ == "__main__":
    main()
