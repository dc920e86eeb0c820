"""The examples of docs/python.md and docs/cluster.md, as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, needs

import warpgauge


def examples(name: str) -> list[str]:
    text = (ROOT / "docs" / name).read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


EXAMPLES = examples("python.md") + examples("cluster.md")


def test_there_are_eleven_and_five() -> None:
    assert (len(examples("python.md")), len(examples("cluster.md"))) == (11, 5)


@pytest.mark.parametrize("number", range(1, len(EXAMPLES) + 1))
def test_an_example_runs_as_it_stands(number: int, server: warpgauge.Server, program: Path, tmp_path: Path) -> None:
    source = EXAMPLES[number - 1]
    if "triton" in source:
        try:
            import triton  # noqa: F401
        except ImportError:
            needs("Triton")
    if number > len(examples("python.md")):
        try:
            import torch  # noqa: F401
        except ImportError:
            needs("PyTorch")
    file = tmp_path / ("test_example.py" if "def test_" in source else "example.py")
    file.write_text(source)
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    command = ["-m", "pytest", "-q"] if "def test_" in source else []
    env = {**os.environ, "WARPGAUGE_SERVER": server.url, "WARPGAUGE_BIN": str(program)}
    if data := os.environ.get("WARPGAUGE_TEST_DATA"):
        env["WARPGAUGE_DATA_DIR"] = data
    ran = subprocess.run([sys.executable, *command, str(file)], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
