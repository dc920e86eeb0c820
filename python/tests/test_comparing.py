"""Comparisons from contracts and files, as `warpgauge compare` makes them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, VECTOR_ADD

from warpgauge import ArgumentError, Client, Kernel
from warpgauge.comparison import compare_request

CONTRACT = ROOT / "kernels/vector_add/contract.yaml"
FILE = ROOT / "kernels/vector_add/reference.cu"


def body(reference: object, candidates: object = None, **more: Any) -> dict[str, Any]:
    return compare_request(reference, candidates, None, **more).body


def small() -> dict[str, Any]:
    args = [
        {"name": name, "type": "tensor", "role": role, "tensor_spec": {"shape": [256], "dtype": "float32", **init}}
        for name, role, init in (
            ("a", "input", {"init": {"kind": "randn", "seed": 1}}),
            ("b", "input", {"init": {"kind": "randn", "seed": 2}}),
            ("c", "output", {}),
        )
    ]
    io = {
        "args": [*args, {"name": "n", "type": "int", "value": 256}],
        "launch": {"grid": {"x": 1}, "block": {"x": 256}},
    }
    metadata = {"kernel_name": "vector_add", "compiler_options": ["--use_fast_math"], "description": "d"}
    kernel = {"kernel_type": "cuda", "source_code": VECTOR_ADD, "metadata": metadata, "io": io}
    return {
        "kernel": kernel,
        "expected": {"c": {"data": {"data_b64": ""}}},
        "tolerance": {"atol": 0.5, "rtol": None},
        "num_trials": 7,
        "allow_weak": False,
        "return_outputs": "all",
    }


def test_the_kernel_of_a_contract_is_the_reference() -> None:
    request = compare_request(small(), FILE, None, timeout=9.0)
    made = request.body
    assert made["ref_kernel"] == small()["kernel"]
    assert {name: made[name] for name in ("num_trials", "allow_weak", "atol", "timeout")} == {
        "num_trials": 7, "allow_weak": False, "atol": 0.5, "timeout": 9.0,
    }  # fmt: skip
    assert not {"kernel", "expected", "tolerance", "rtol", "return_outputs"} & made.keys()
    (note,) = request.notes
    assert "`expected`, `return_outputs`" in note and "what the reference computes is what is expected" in note
    (candidate,) = made["candidates"]
    # It is compiled as the reference is, and has its own name.
    assert candidate["name"] == "reference.cu"
    assert candidate["kernel"]["metadata"] == {"kernel_name": "reference", "compiler_options": ["--use_fast_math"]}
    assert "io" not in candidate["kernel"]
    # What is given here stands before the contract's.
    assert body(small(), FILE, num_trials=0, tolerance={"atol": 0.0})["atol"] == 0.0


def test_fields_that_ask_for_nothing_are_left_out_without_a_note() -> None:
    contract = {"kernel": small()["kernel"], "sanitize": False, "expected": {}, "output_encoding": {"format": "npy"}}
    assert compare_request({**contract, "return_outputs": []}, FILE, None).notes == ()
    (note,) = compare_request({**contract, "return_outputs": ["c"]}, FILE, None).notes
    assert "`output_encoding`, `return_outputs`" in note and "expected" not in note


def test_a_candidate_says_what_is_its_own() -> None:
    (one,) = body(small(), Kernel(FILE, name="other", options=["-G"]))["candidates"]
    assert one["kernel"]["metadata"] == {"kernel_name": "other", "compiler_options": ["-G"]}
    contract = {"kernel": {"kernel_type": "cuda", "source_code": "x", "io": {"args": []}}}
    assert body(small(), contract)["custom_kernel"] == contract["kernel"]
    (one,) = body(small(), str(CONTRACT))["candidates"]
    assert one["name"] == "contract.yaml" and one["kernel"]["io"]["launch"]["block"] == {"x": 256}
    assert one["kernel"]["source_code"] == VECTOR_ADD


def test_languages_do_not_take_each_others_options() -> None:
    triton = "import triton\n@triton.jit\ndef double(x):\n    pass\n"
    assert "metadata" not in body(small(), triton)["custom_kernel"]
    contract = small()
    contract["kernel"] = {**contract["kernel"], "kernel_type": "triton", "source_code": triton}
    custom = body(contract, triton.replace("double", "twice"))["custom_kernel"]
    assert custom["metadata"]["kernel_name"] == "twice"
    contract["kernel"] = {**contract["kernel"], "kernel_type": "torch", "metadata": {"class_name": "Model"}}
    torch = "import torch\n# not triton.jit\nclass Model: ...\n"
    custom = body(contract, torch)["custom_kernel"]
    assert (custom["kernel_type"], custom["metadata"]) == ("torch", {"class_name": "Model"})


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('extern "C" __global__ void __launch_bounds__(256) k(int* x) {}', "k"),
        ("template <int N>\n__global__ void k(int* x) {} // __global__ void other(", "k"),
        ("__global__ void vector_add(int*) {} __global__ void second(int*) {}", "vector_add"),
    ],
)
def test_the_only_kernel_of_a_source_is_taken(source: str, name: str) -> None:
    assert body(small(), source)["custom_kernel"]["metadata"]["kernel_name"] == name


def test_candidates_are_named_as_their_files(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.cu").write_text(VECTOR_ADD)
    (tmp_path / "reference").with_suffix(".cu").write_text(VECTOR_ADD)

    def names(reference: object, *kernels: object) -> list[str]:
        return [one["name"] for one in body(reference, list(kernels))["candidates"]]

    a, b = tmp_path / "x/a.cu", tmp_path / "y/a.cu"
    assert names(small(), a, FILE) == ["a.cu", "reference.cu"]
    assert names(small(), a, b) == [str(a)[-128:], str(b)[-128:]]
    assert names(small(), a, a)[1].endswith("a.cu (2)")
    assert names(small(), VECTOR_ADD, a) == ["candidate 1", "a.cu"]
    evil = tmp_path / f"{'é' * 100}\n\x1b.cu"
    evil.write_text(VECTOR_ADD)
    (name,) = names(small(), evil)
    assert len(name.encode()) <= 128 and name.isprintable() and name.endswith(".cu")
    assert list(body(small(), {"mine": a, "yours": b})["candidates"][1]) == ["name", "kernel"]


def test_a_whole_comparison_has_its_own_kernels(tmp_path: Path) -> None:
    file = tmp_path / "whole.json"
    kernel = small()["kernel"]
    file.write_text(json.dumps({"ref_kernel": kernel, "custom_kernel": kernel}))
    assert body(file, num_trials=3) == {"ref_kernel": kernel, "custom_kernel": kernel, "num_trials": 3}
    with pytest.raises(ArgumentError, match=r"whole\.json has its own kernels"):
        body(file, FILE)
    file.write_text(json.dumps({"ref_kernel": kernel}))
    assert body(file, FILE)["candidates"][0]["name"] == "reference.cu"


def test_what_makes_no_comparison_is_told() -> None:
    with pytest.raises(ArgumentError, match=r"nothing to compare .*contract\.yaml with"):
        body(CONTRACT)
    with pytest.raises(ArgumentError, match="brings its own args, launch"):
        compare_request(CONTRACT, FILE, {"x": 1}, launch={"grid": 1})
    with pytest.raises(ArgumentError, match="at least one candidate"):
        body(CONTRACT, [])
    with pytest.raises(ArgumentError, match="`kernel` is no mapping"):
        body({"kernel": 3}, FILE)


def test_a_contract_is_compared_as_the_command_line_does(client: Client, program: Path, tmp_path: Path) -> None:
    contract = tmp_path / "contract.json"
    contract.write_text(json.dumps({**small(), "expected": {}, "tolerance": {"atol": 1e-6}}))
    slower = tmp_path / "slower.cu"
    slower.write_text(VECTOR_ADD.replace("a[i] + b[i]", "a[i] + b[i] + a[i] * 0.0f").replace("vector_add", "slower"))
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(VECTOR_ADD.replace("a[i] + b[i]", "a[i] - b[i]"))
    report = client.compare(contract, [slower, wrong], num_trials=3)
    command = [program, "compare", "--json", "--trials", "3", "--server", client._client._transport.settings.url]
    ran = subprocess.run([*command, contract, slower, wrong], capture_output=True, text=True, check=False)
    said = json.loads(ran.stdout)
    assert list(report.candidates) == [one["name"] for one in said["candidates"]] == ["slower.cu", "wrong.cu"]
    verdicts = [one["evaluation"]["verdict"] for one in said["candidates"]]
    assert [one.verdict for one in report.candidates.values()] == verdicts == ["correct", "wrong"], report.explain()
    assert report.raw["candidates"][0]["counted"] == said["candidates"][0]["counted"]
    assert "note: a comparison does not use" in report.explain()
