"""What may stand for a kernel, and contracts in files."""

from __future__ import annotations

import base64
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, needs

from warpgauge import ArgumentError, Kernel, Surface, Tensor, Texture
from warpgauge.contract import build, load
from warpgauge.kernels import code_of
from warpgauge.yaml_core import parse


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("extern __global__ void k() {}", "cuda"),
        (".version 8.0\n.target sm_80\n.entry k() {}", "ptx"),
        ("import triton\n@triton.jit\ndef k(): pass", "triton"),
        ("import torch\ndef k(x): return x", "torch"),
    ],
)
def test_languages_are_told_by_their_source(source: str, kind: str) -> None:
    assert code_of(source)[0] == {"kernel_type": kind, "source_code": source}


def test_a_source_of_no_known_language_asks_for_its_type() -> None:
    with pytest.raises(ArgumentError, match="give Kernel"):
        code_of("int main() { return 0; }")
    assert code_of(Kernel("int x;", type="cuda", name="k", options=["-O1"]))[0] == {
        "kernel_type": "cuda",
        "source_code": "int x;",
        "metadata": {"kernel_name": "k", "compiler_options": ["-O1"]},
    }


def test_files(tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF\xff")
    code, _ = code_of(str(tmp_path / "k.cubin"))
    assert base64.b64decode(code["binary_b64"]) == b"\x7fELF\xff"
    (tmp_path / "bad.cu").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match="not UTF-8"):
        code_of(tmp_path / "bad.cu")
    with pytest.raises(ArgumentError, match=r"cannot read the kernel .*none\.cu"):
        code_of("none.cu")


@pytest.mark.parametrize("path", sorted(ROOT.glob("kernels/*/contract.yaml")), ids=lambda p: p.parent.name)
def test_every_contract_of_the_repository_is_read(path: Path) -> None:
    read = load(path)
    assert "source_file" not in str(read)
    assert read["kernel"].get("source_code")


def test_yaml_is_the_servers() -> None:
    text = "a: 1e-5\nb: on\nc: [1, -2.5, .inf, ~, true]\nd: 010\ne: 1:30\nf: yes\ng: 2026-01-01\n"
    inf = float("inf")
    want = {"a": 1e-5, "b": "on", "c": [1, -2.5, inf, None, True], "d": 10, "e": "1:30", "f": "yes"}
    assert parse(text) == {**want, "g": "2026-01-01"}
    for bad in ("a: 1\na: 2", "a: [", "!!python/object/apply:os.system ['true']", "? [1]\n: 2"):
        with pytest.raises(ValueError, match="not YAML"):
            parse(bad)


def test_bad_contracts_say_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    for text, why in [
        ("- 1", "a mapping"),
        ("kernel: {source_file: /etc/hostname, kernel_type: cuda}", "relative to the contract"),
        ("kernel: {source_file: k.cu, source_code: x}", "give one of them"),
        ("kernel: {source_file: none.cu, kernel_type: cuda}", "cannot read"),
    ]:
        path.write_text(text)
        with pytest.raises(ArgumentError, match=why):
            load(path)
    with pytest.raises(ArgumentError, match="brings its own args"):
        build({"kernel": {}}, {"x": 1})


MODULE = """
import triton
import triton.language as tl
from triton.language import cdiv as ceil

WIDTH = 4
LIMIT: tl.constexpr = tl.constexpr(7)
UNUSED = open

@triton.jit
def helper(x):
    return x * WIDTH

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, helper(tl.load(x + at, mask=at < n)) + LIMIT, mask=at < n)

def make(scale):
    @triton.jit
    def scaled(x, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at) * scale)
    return scaled

@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (64, 128)], key=["n"])
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 1.0, mask=at < n)

THING = object()

@triton.jit
def uses_thing(x):
    tl.store(x, THING)
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    try:
        import triton  # noqa: F401
    except ImportError:
        needs("Triton")
    (tmp_path / "some_kernels.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("some_kernels", None)
    import some_kernels

    return some_kernels


def test_a_triton_function_brings_what_it_needs(kernels: types.ModuleType) -> None:
    code, parameters = code_of(kernels.kernel)
    assert code["metadata"] == {"kernel_name": "kernel"}
    source = code["source_code"]
    assert parameters and parameters.names == ("x", "y", "n", "BLOCK")
    assert parameters.constants == {"BLOCK"}
    assert "def helper" in source and "WIDTH = 4" in source and "constexpr(7)" in source
    assert "UNUSED" not in source and "ceil" not in source
    ast_names = compile(source, "sent", "exec").co_names
    assert "open" not in ast_names


def test_closures_and_tuning(kernels: types.ModuleType) -> None:
    assert "scale = 3" in code_of(kernels.make(3))[0]["source_code"]
    code, parameters = code_of(kernels.tuned)
    assert "triton.autotune" in code["source_code"] and "def tuned" in code["source_code"]
    assert parameters and parameters.constants == {"BLOCK"}


def test_constants_of_triton_are_marked(kernels: types.ModuleType) -> None:
    request = build(kernels.tuned, [1, 2])
    assert [a["name"] for a in request.body["kernel"]["io"]["args"]] == ["x", "n"]
    request = build(kernels.tuned, {"x": 1, "n": 2, "BLOCK": 64})
    assert request.body["kernel"]["io"]["args"][2] == {"name": "BLOCK", "type": "int", "value": 64, "is_meta": True}


def test_what_cannot_be_sent_is_taken_from_its_statement(kernels: types.ModuleType) -> None:
    assert "THING = object()" in code_of(kernels.uses_thing)[0]["source_code"]
    kernels.uses_thing.fn.__globals__["THING"] = socket_like = object()
    assert socket_like is not None
    kernels.uses_thing.fn.__module__ = "no_such_module"
    with pytest.raises(ArgumentError, match="`THING`, a object that cannot be sent"):
        code_of(kernels.uses_thing)


def test_import_is_quick_and_brings_nothing() -> None:
    script = (
        "import time, sys; t = time.process_time(); import warpgauge; t = time.process_time() - t;"
        "heavy = {'httpx', 'numpy', 'torch', 'triton', 'asyncio', 'yaml'} & set(sys.modules);"
        "assert not heavy, heavy; assert t < 0.3, t;"
        "from warpgauge.contract import build; build('__global__ void k(){}', {'n': 1});"
        "heavy = {'numpy', 'torch', 'triton', 'yaml'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_structures_null_pointers_and_variables_of_the_image() -> None:
    args = {
        "p": {"n": np.int32(4), "x": "x", "inner": {"w": [1, 2.5, None]}, "pair": (1, True)},
        "nothing": None,
        "taps": Tensor((5,), symbol="ns::taps", init={"kind": "ones"}),
        "x": Tensor(("2*n",), init={"kind": "randn"}),
        "n": 4,
    }
    request = build("__global__ void k(P p, int* nothing, int n) {}", args, launch={"grid": 1, "block": 1})
    made = request.body["kernel"]["io"]["args"]
    assert made[0] == {
        "name": "p",
        "type": "struct",
        "fields": {"n": 4, "x": "x", "inner": {"w": [1, 2.5, None]}, "pair": [1, True]},
    }
    assert made[1] == {"name": "nothing", "type": "none"}
    assert (made[2]["symbol"], made[3]["tensor_spec"]["shape"]) == ("ns::taps", ["2*n"])
    assert "symbol" not in made[3]
    with pytest.raises(ArgumentError, match="no field of a structure"):
        build("__global__ void k(P p) {}", {"p": {"x": object()}}, launch={"grid": 1, "block": 1})


def test_arrays_of_pointers_textures_and_surfaces() -> None:
    every = {"tensor": "x", "step": np.int32(4), "count": "n"}
    args = {
        "list": ["x", None, "x + 4", every],
        "image": Texture("x", filter="linear"),
        "to": Surface("x", channels=4),
        "x": Tensor((8, 8), init={"kind": "randn"}),
        "n": 4,
    }
    request = build("__global__ void k(float** list, cudaTextureObject_t image, cudaSurfaceObject_t s, int n) {}", args)
    made = request.body["kernel"]["io"]["args"]
    entries = ["x", None, "x + 4", {"tensor": "x", "step": 4, "count": "n"}]
    assert made[0] == {"name": "list", "type": "pointers", "pointers": entries}
    assert (made[1]["type"], made[1]["texture"]["tensor"]) == ("texture", "x")
    assert (made[1]["texture"]["filter"], made[1]["texture"]["channels"]) == ("linear", 1)
    over = {"tensor": "x", "channels": 4, "layered": False}
    assert made[2] == {"name": "to", "type": "surface", "surface": over}
    with pytest.raises(ArgumentError, match="array of pointers to other arguments"):
        build("__global__ void k(float** list) {}", {"list": [1.5]})
