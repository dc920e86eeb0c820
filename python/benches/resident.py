"""What a process takes of memory, by the kernel's own count."""

from __future__ import annotations

import re
from pathlib import Path


def resident(pid: int, field: str) -> float:
    """MiB of a process: VmRSS now, VmHWM at most."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found.group(1)) / 1024
