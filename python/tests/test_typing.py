"""What type checkers say of programs that use the package: mypy, and pyright where it is installed."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from conftest import needs
from test_docs import examples
from test_specification import problem, schemas

from warpgauge import AsyncClient, Client, keywords

Checked = Callable[[Path], str]
OWN = {"launch", "outputs", "constants", "expected", "reference", "setup", "kernel", "axes"}
KERNELS = {"ref_kernel", "custom_kernel", "candidates"}

MISTAKES = """
import asyncio
from warpgauge import AsyncClient, Client

client = Client()
client.evaluate("k.cu", num_trials=5, measure={"preset": "ci"}, sanitize="racecheck", tolerance=None)
client.compare("c.yaml", ["k.cu"], tolerance={"atol": 0.0}, atol=1.0, decision={"margin": 0.1})
client.sweep("s.yaml", axes={"n": [1]}, include_reports=True, launch={"grid": 1}, reference="r.cu")
client.submit("c.yaml", kind="compare", decision={"margin": 0.1}, num_trials=2)
for report in client.map(["k.cu"], num_trials=5, launch={"grid": 1}):
    report.explain()
client.map(abs, [1], cores=2)


async def main() -> None:
    other = AsyncClient()
    await other.evaluate("k.cu", num_trial=5)  # wrong
    await other.compare("k.cu", "l.cu", num_trial=5)  # wrong
    await other.submit("k.cu", num_trial=5)  # wrong


asyncio.run(main())
client.evaluate("k.cu", num_trial=5)  # wrong
client.evaluate("k.cu", num_trials="5")  # wrong
client.evaluate("k.cu", measure={"preset": "best"})  # wrong
client.evaluate("k.cu", tolerance={"atoll": 0.0})  # wrong
client.compare("k.cu", "l.cu", num_trial=5)  # wrong
client.compare("k.cu", "l.cu", sanitize=True)  # wrong
client.sweep("k.cu", axis={"n": [1]})  # wrong
client.submit("k.cu", num_trial=5)  # wrong
client.map(["k.cu"], num_trial=5)  # wrong
client.map(abs, [1], num_trials=5)  # wrong
"""


@pytest.fixture(params=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[dict[str, str]], dict[str, list[str]]]:
    """Lines with errors by file, each with what the checker says."""
    checker = request.param
    if importlib.util.find_spec(checker) is None:
        needs(checker)

    def check(files: dict[str, str]) -> dict[str, list[str]]:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        found: dict[str, list[str]] = {name: [] for name in files}
        if checker == "mypy":
            command = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), *files]
        else:
            settings = {"typeCheckingMode": "strict", "include": list(files), "pythonVersion": "3.10"}
            (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
            command = ["--pythonpath", sys.executable]
        ran = subprocess.run([sys.executable, "-m", checker, *command], cwd=tmp_path, capture_output=True, text=True)
        for line in (ran.stdout + ran.stderr).splitlines():
            if m := re.match(r"\s*(?:\S*/)?(\w+\.py):(\d+)(?::\d+)?(?: -|:)? error: (.*)", line):
                found[m[1]].append(f"{m[2]}: {m[3]}")
        assert ran.returncode in (0, 1), ran.stdout + ran.stderr
        assert (ran.returncode == 1) == any(found.values()), ran.stdout + ran.stderr
        return found

    return check


def test_misspelt_keywords_are_found(errors: Callable[[dict[str, str]], dict[str, list[str]]]) -> None:
    found = errors({"mistakes.py": MISTAKES})["mistakes.py"]
    wrong = {number for number, line in enumerate(MISTAKES.splitlines(), 1) if line.endswith("# wrong")}
    assert {int(line.partition(":")[0]) for line in found} == wrong, found


def test_the_examples_are_clean(errors: Callable[[dict[str, str]], dict[str, list[str]]]) -> None:
    # Triton and PyTorch have no types that these checkers could read.
    typed = {
        f"example_{n}.py": text
        for n, text in enumerate(examples("python.md"))
        if not re.search("import (triton|torch)", text)
    }
    assert len(typed) == 10
    found = [f"{name}:{line}" for name, lines in errors(typed).items() for line in lines]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("fields", "schema", "others"),
    [
        (keywords.EvaluateFields, "EvaluateRequest", OWN),
        (keywords.SweepFields, "SweepRequest", OWN),
        (keywords.CompareFields, "CompareRequest", KERNELS),
    ],
)
def test_keywords_are_the_fields_of_the_specification(fields: Any, schema: str, others: set[str]) -> None:
    there = schemas()[schema]["properties"]
    names = set(get_type_hints(fields)) - (others if schema == "SweepRequest" else set())
    # The client reads `tolerance` of a comparison into its own four fields.
    assert names - ({"tolerance"} if schema == "CompareRequest" else set()) == set(there) - others


SPECS = ["MeasureSpec", "ProfileSpec", "Requirements", "Work", "DecisionSpec", "KeepOutput", "OutputEncoding"]


@pytest.mark.parametrize("name", SPECS)
def test_their_parts_are_the_specifications(name: str) -> None:
    there, hints = schemas()[name]["properties"], get_type_hints(getattr(keywords, name))
    assert hints.keys() == there.keys()
    assert not {field: why for field, hint in hints.items() if (why := problem(hint, there[field]))}


@pytest.mark.parametrize("name", ["evaluate", "compare", "sweep", "submit", "gate", "map", "job", "call", "__init__"])
def test_both_clients_take_the_same(name: str) -> None:
    one, other = (inspect.signature(getattr(kind, name)) for kind in (Client, AsyncClient))
    assert one.parameters == other.parameters
