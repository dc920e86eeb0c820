"""Puts the program and its emulated device into the wheel.

Without the variable WARPGAUGE_PROGRAM the wheel is the client alone, for every platform.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "WARPGAUGE_PROGRAM"
EMULATOR = "libwarpgauge_emulator.so"

# PyYAML reads contracts that are files; it is imported for the first of them.
# httpcore asks for sniffio in every request, and where it is missing searches the whole path each time.
CLIENT = ["httpx>=0.27", "PyYAML>=6.0", "sniffio>=1.3"]

# The compiler that the program finds beside itself; `warpgauge toolchain install` gets the same. It has its headers.
COMPILER = ["nvidia-cuda-nvrtc>=13,<14"]


class DependencyHook(MetadataHookInterface):
    """Adds the compiler to a wheel with the program."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = CLIENT + (COMPILER if os.environ.get(VARIABLE) else [])


class ProgramHook(BuildHookInterface[Any]):
    """Names the files, and the oldest C library that they run with."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        named = os.environ.get(VARIABLE)
        if not named or version == "editable":
            return
        program = Path(named).resolve()
        # The program looks for the emulated device in its own directory.
        files = {program: "warpgauge", program.with_name(EMULATOR): EMULATOR}
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(f"{VARIABLE}={named}: there is no {file}")
        build_data["force_include"].update({str(file): f"warpgauge/_program/{name}" for file, name in files.items()})
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(list(files))}"


def platform_tag(files: list[Path]) -> str:
    """The newest version of glibc's symbols that any of the files asks for, as a tag (PEP 600)."""
    needed = (2, 17)
    for file in files:
        for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", file.read_bytes()):
            needed = max(needed, (int(major), int(minor)))
    return f"manylinux_{needed[0]}_{needed[1]}_{platform.machine()}"
