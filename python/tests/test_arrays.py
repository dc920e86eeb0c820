"""Arrays of every kind become what the server takes, and come back."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from conftest import needs

from warpgauge import ArgumentError, InOut, Out, ProtocolError, Tensor
from warpgauge.contract import build
from warpgauge.tensors import DTYPES, array_of, spec_of

SOURCE = "__global__ void k() {}"


def content(array: object) -> bytes:
    return base64.b64decode(spec_of(array, "x")["data"]["data_b64"])


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d not in ("bfloat16",) and d[:6] not in ("float8", "float4") and "4x2" not in d]
)
def test_every_element_type_goes_there_and_back(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    spec = spec_of(array, "x")
    assert (spec["dtype"], spec["shape"]) == (dtype, [2, 3])
    report = {"dtype": dtype, "shape": [2, 3], "blake3": "", "data_b64": spec["data"]["data_b64"]}
    back = array_of(report, "x", "numpy")  # type: ignore[arg-type]
    np.testing.assert_array_equal(back, array)
    back[0, 0] = 1  # it is the caller's own


def test_big_endian_strided_and_transposed_arrays_are_sent_by_value() -> None:
    want = np.arange(12, dtype="<i4").reshape(3, 4)
    assert content(want.astype(">i4")) == want.tobytes()
    assert content(want.T) == np.ascontiguousarray(want.T).tobytes()
    assert content(want[::-1, ::2]) == want[::-1, ::2].copy().tobytes()
    assert content(np.broadcast_to(np.float32(2), (3,))) == np.full(3, 2, "<f4").tobytes()
    assert spec_of(np.array(1, "f4"), "x")["shape"] == []


@pytest.mark.parametrize("dtype", ["clongdouble", "datetime64[s]", "U3", "O", "longdouble", [("a", "i4")]])
def test_other_element_types_are_refused_by_name(dtype: object) -> None:
    with pytest.raises(ArgumentError, match=r"argument `x`: element type .* is not one of the server's: float64"):
        build(SOURCE, {"x": np.zeros(2, dtype)})  # type: ignore[call-overload]


def test_what_has_no_elements_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ArgumentError, match=r"argument `x`: shape \(0, 3\) has no elements"):
        build(SOURCE, {"x": np.zeros((0, 3), "f4")})


def test_roles_and_contents() -> None:
    array = np.ones(2, "f4")
    args = {"a": array, "b": Out(array), "c": InOut(array), "d": array, "e": Tensor([4], "bfloat16", "output")}
    request = build(SOURCE, args, outputs=["d"], launch={"grid": (1, "n"), "block": 32})
    specs = {spec["name"]: spec for spec in request.body["kernel"]["io"]["args"]}
    assert [specs[n].get("role") for n in "abcde"] == ["input", "output", "inout", "output", "output"]
    assert ["data" in specs[n]["tensor_spec"] for n in "abcde"] == [True, False, True, False, False]
    assert request.body["kernel"]["io"]["launch"] == {"grid": {"x": 1, "y": "n"}, "block": {"x": 32}}
    assert request.body["return_outputs"] == "all"


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (True, "bool", True), (np.bool_(False), "bool", False), (3, "int", 3), (np.int64(-1), "int", -1),
        (2**64 - 1, "int", 2**64 - 1), (1.5, "float", 1.5), (np.float32(0.5), "float", 0.5),
        (float("inf"), "float", "inf"), (-np.inf, "float", "-inf"), (float("nan"), "float", "nan"),
    ],
)  # fmt: skip
def test_scalars(value: object, kind: str, shown: object) -> None:
    spec = build(SOURCE, {"s": value}).body["kernel"]["io"]["args"][0]
    assert (spec["type"], spec["value"]) == (kind, shown)


@pytest.mark.parametrize("value", [object(), 1j, 2**64, [1, 2], b"x"])
def test_what_is_no_argument_is_named(value: object) -> None:
    with pytest.raises(ArgumentError, match="argument `s`"):
        build(SOURCE, {"s": value})


@pytest.mark.parametrize(
    "change",
    [
        {"data_b64": "!!"}, {"data_b64": "AAAA"}, {"dtype": "int3"}, {"format": "npy"},
        {"compress": "zstd"}, {"compress": "zlib"},
    ],
)  # fmt: skip
def test_outputs_that_are_not_what_they_say_are_refused(change: dict[str, object]) -> None:
    good = {"dtype": "int32", "shape": [1], "blake3": "", "data_b64": "AAAAAA=="}
    assert array_of(good, "y", "numpy") == 0  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="output y"):
        array_of({**good, **change}, "y", "numpy")  # type: ignore[arg-type]


def test_a_small_text_that_unpacks_to_very_much_is_cut() -> None:
    import zlib

    bomb = base64.b64encode(zlib.compress(bytes(1 << 24))).decode()
    report = {"dtype": "int32", "shape": [1], "blake3": "", "data_b64": bomb, "compress": "zlib"}
    with pytest.raises(ProtocolError, match="5 bytes in place of 4"):
        array_of(report, "y", "numpy")  # type: ignore[arg-type]


def test_bfloat16_of_numpy_says_what_is_missing() -> None:
    report = {"dtype": "bfloat16", "shape": [1], "blake3": "", "data_b64": "gD8="}
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        with pytest.raises(ArgumentError, match="ml_dtypes"):
            array_of(report, "y", "numpy")  # type: ignore[arg-type]
    else:
        assert float(array_of(report, "y", "numpy")[0]) == 1.0  # type: ignore[arg-type]


def test_tensors_of_pytorch() -> None:
    try:
        import torch
    except ImportError:
        needs("PyTorch")
    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).T
    spec = spec_of(tensor, "x")
    assert (spec["dtype"], spec["shape"]) == ("bfloat16", [3, 2])
    report = {"dtype": "bfloat16", "shape": [3, 2], "blake3": "", "data_b64": spec["data"]["data_b64"]}
    assert torch.equal(array_of(report, "x", "torch"), tensor)  # type: ignore[arg-type]
    parameter = torch.nn.Parameter(torch.ones(2))
    assert content(parameter) == np.ones(2, "<f4").tobytes()
    assert spec_of(torch.tensor(3, dtype=torch.int8), "x")["shape"] == []
    for bad in (torch.ones(2).to_sparse(), torch.ones(2, dtype=torch.complex32), torch.empty(2, device="meta")):
        with pytest.raises(ArgumentError, match="argument `x`"):
            build(SOURCE, {"x": bad})


@pytest.mark.parametrize(
    ("name", "ours", "values", "packed"),
    [
        ("float4_e2m1fn", "float4_e2m1fn_x2", [[0.5, 1.0], [-6.0, 0.0]], [0x21, 0x0F]),
        ("int4", "int4x2", [[1, -1], [-8, 7]], [0xF1, 0x78]),
        ("uint4", "uint4x2", [[1, 15], [8, 0]], [0xF1, 0x08]),
    ],
)
def test_numbers_of_four_bits_travel_in_pairs(
    name: str, ours: str, values: list[list[float]], packed: list[int]
) -> None:
    try:
        import ml_dtypes
    except ImportError:
        needs("ml_dtypes")
    array = np.array(values).astype(getattr(ml_dtypes, name))
    spec = spec_of(array, "x")
    assert (spec["dtype"], spec["shape"]) == (ours, [2, 1])
    assert list(content(array)) == packed
    report = {"dtype": ours, "shape": [2, 1], "blake3": "", "data_b64": spec["data"]["data_b64"]}
    back = array_of(report, "x", "numpy")  # type: ignore[arg-type]
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back.astype(float), np.array(values))
    with pytest.raises(ArgumentError, match=r"argument `x`: shape \(2, 1\) of .* must be even"):
        build(SOURCE, {"x": array[:, :1]})


@pytest.mark.parametrize("dtype", ["float8_e8m0fnu", "float4_e2m1fn_x2", "complex64"])
def test_elements_of_pytorch_travel_as_they_are(dtype: str) -> None:
    try:
        import torch
    except ImportError:
        needs("PyTorch")
    raw = torch.arange(1, 17, dtype=torch.uint8)
    tensor = raw.view(getattr(torch, dtype)).reshape(2, -1)
    spec = spec_of(tensor, "x")
    assert (spec["dtype"], spec["shape"]) == (dtype, list(tensor.shape))
    assert content(tensor) == bytes(range(1, 17))
    report = {"dtype": dtype, "shape": spec["shape"], "blake3": "", "data_b64": spec["data"]["data_b64"]}
    back = array_of(report, "x", "torch")  # type: ignore[arg-type]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert back.view(torch.uint8).flatten().tolist() == list(range(1, 17))
