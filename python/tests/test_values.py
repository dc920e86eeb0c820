"""Values that travel, and bytes that are none."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
import pytest

from warpgauge.values import NotData, ValueReader, ValueWriter


def back(value: Any) -> Any:
    writer = ValueWriter()
    return ValueReader(writer.packed(writer.tree(value))).value()


def test_plain_values_come_back_with_their_types() -> None:
    values = [None, True, 2**100, -1, 1.5, math.inf, "tüx\ud800", b"\0", bytearray(b"a"), 1 + 2j, range(1, 9, 2), ...]
    values += [(1, [2, {3}]), {"a": {1: (2,)}, (1, 2): 3}, frozenset({1}), slice(1, None, 2)]
    for value in values:
        came = back(value)
        assert came == value and type(came) is type(value), value
    assert math.isnan(back(math.nan)) and math.copysign(1, back(-0.0)) == -1


def test_arrays_come_back() -> None:
    for array in (
        np.arange(6.0).reshape(2, 3).T,
        np.array(3),
        np.zeros((0, 4), "f2"),
        np.array(["ab", "c"]),
        np.array(1j),
    ):
        came = back(array)
        np.testing.assert_array_equal(came, array)
        assert came.dtype == array.dtype and came.shape == array.shape and came.flags.writeable
    assert type(back(np.float32(1.5))) is np.float32 and back(np.dtype("<f4")) == np.dtype("<f4")


def test_tensors_come_back() -> None:
    torch = pytest.importorskip("torch")
    for tensor in (
        torch.arange(6.0).reshape(2, 3).T,
        torch.tensor(3),
        torch.zeros(0, 4),
        torch.ones(2, dtype=torch.bfloat16),
    ):
        came = back([tensor])[0]
        assert torch.equal(came, tensor) and came.dtype == tensor.dtype and came.shape == tensor.shape
    assert back((torch.float16, torch.Size([2]), torch.device("cpu"))) == (
        torch.float16,
        torch.Size([2]),
        torch.device("cpu"),
    )
    with pytest.raises(NotData, match="meta"):
        back({"w": torch.empty(3, device="meta")})
    with pytest.raises(NotData, match="layout"):
        back(torch.eye(3).to_sparse())


def test_what_is_no_data_is_told_with_its_place() -> None:
    class Own:
        pass

    holds_itself: list[Any] = []
    holds_itself.append(holds_itself)
    for value, words in (
        (Own(), "Own"),
        (np.array([Own()]), "object"),
        (holds_itself, "holds itself"),
        (2**5000, "4096"),
    ):
        with pytest.raises(NotData, match=words):
            back(value)
    with pytest.raises(NotData, match=r"the value\['a'\]\[1\]"):
        back({"a": [1, Own()]})


HOSTILE = [
    ["x", "float32", [10], 0],
    ["x", "float32", [2**40, 2**40], 0],
    ["x", "float32", [-1], 0],
    ["x", "__class__", [1], 0],
    ["a", "O", [1], 0],
    ["a", "<f8", [3], 0],
    ["a", "V8", [1], 0],
    ["b", 7],
    ["b", -1],
    ["l", 3],
    ["d", [[["l", []], 1]]],
    ["o", 0],
    ["D", "nn"],
    ["q"],
    [],
    [["l"]],
]


@pytest.mark.parametrize("tree", HOSTILE)
def test_bytes_that_are_no_value_are_refused(tree: Any) -> None:
    pytest.importorskip("torch")
    writer = ValueWriter()
    writer.segments.append(b"12345678")
    with pytest.raises(NotData):
        ValueReader(writer.packed(tree)).value()


def test_what_is_cut_off_or_nested_without_end_is_refused() -> None:
    whole = ValueWriter()
    data = whole.packed(whole.tree([b"12345678"]))
    for length in range(len(data)):
        with pytest.raises(NotData):
            ValueReader(data[:length]).value()
    deep = b'{"tree":' + b'["l",[' * 100_000 + b"]]" * 100_000 + b',"segments":[]}'
    with pytest.raises(NotData):
        ValueReader(struct.pack("<I", len(deep)) + deep).value()
    head = json.dumps({"tree": 1, "segments": [-4]}).encode()
    with pytest.raises(NotData):
        ValueReader(struct.pack("<I", len(head)) + head).value()
