"""Values as data: a tree in JSON, followed by the elements of arrays. Reading a value runs no code.

The processes that run functions have this file too, so it imports nothing of the package. The written form is the
length of the JSON (four bytes, little endian), the JSON ``{"tree": …, "segments": [lengths]}``, and the segments.

Numbers, texts, `True`, `False` and `None` are themselves in a tree; everything else is a list that begins with the
kind.
"""

import ctypes
import json
import math
import operator
import struct
import sys
from collections.abc import Callable
from typing import Any

# Maximum depth of nested values.
DEEPEST_VALUE = 64

# Kinds of numpy's element types that are plain bytes.
PLAIN_KINDS = "biufcSUmM"

# PyTorch's element types, with those of numpy for readers without PyTorch.
TORCH_DTYPES: dict[str, "str | None"] = {
    "float64": "f8", "float32": "f4", "float16": "f2", "bfloat16": None, "float8_e5m2": None, "float8_e4m3fn": None,
    "float8_e8m0fnu": None, "float4_e2m1fn_x2": None,
    "complex64": "c8", "complex128": "c16", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1",
    "uint16": "u2", "uint32": "u4", "uint64": "u8", "bool": "?",
}  # fmt: skip


class NotData(Exception):
    """The value is no data, or the bytes are no value. The message has the place and the reason."""


class ValueWriter:
    """Writes values. With `to_cpu`, tensors of devices are copied. `other` may return the tree of a value that is no
    data."""

    def __init__(self, to_cpu: bool = False, other: "Callable[[Any, str], Any] | None" = None) -> None:
        self.segments: list[bytes] = []
        self._to_cpu, self._other = to_cpu, other

    def packed(self, tree: Any) -> bytes:
        """Returns everything written so far, in the form that is sent."""
        head = json.dumps({"tree": tree, "segments": [len(segment) for segment in self.segments]}).encode()
        return b"".join([struct.pack("<I", len(head)), head, *self.segments])

    def tree(self, value: Any, place: str = "the value", depth: int = 0) -> Any:
        """Returns the tree of a value. Raises `NotData` with the place of a part that is no data."""
        if depth > DEEPEST_VALUE:
            raise NotData(f"{place} nests deeper than {DEEPEST_VALUE}, or holds itself")
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return self._integer(value, place)
        if kind is float:
            return value if math.isfinite(value) else ["f", repr(value)]
        if kind in _SEQUENCES:
            items = [self.tree(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(value)]
            return [_SEQUENCES[kind], items]
        if kind is dict:
            return ["d", [self._pair(key, item, place, depth) for key, item in value.items()]]
        if kind is complex:
            return ["c", self.tree(value.real), self.tree(value.imag)]
        if kind is bytes or kind is bytearray:
            return ["b" if kind is bytes else "y", self._segment(bytes(value))]
        if kind is range or kind is slice:
            bounds = [self.tree(part, place, depth + 1) for part in (value.start, value.stop, value.step)]
            return ["r" if kind is range else "i", *bounds]
        if value is Ellipsis:
            return ["e"]
        return self._library(value, place)

    def _pair(self, key: Any, item: Any, place: str, depth: int) -> list[Any]:
        shown = repr(key) if type(key) in (str, int, float, bool) else "…"
        return [self.tree(key, f"a key of {place}", depth + 1), self.tree(item, f"{place}[{shown[:40]}]", depth + 1)]

    def _integer(self, value: int, place: str) -> int:
        if value.bit_length() > 4096:
            raise NotData(f"{place} is a whole number of more than 4096 bits")
        return value

    def _segment(self, data: bytes) -> int:
        self.segments.append(data)
        return len(self.segments) - 1

    def _library(self, value: Any, place: str) -> Any:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None:
            if isinstance(value, torch.Tensor):
                return self._tensor(torch, value, place)
            if isinstance(value, torch.Size):
                return ["S", list(value)]
            if isinstance(value, torch.device):
                return ["V", str(value)]
            if isinstance(value, torch.dtype) and (name := str(value).removeprefix("torch.")) in TORCH_DTYPES:
                return ["D", name]
        if numpy is not None:
            if type(value) is numpy.ndarray:
                return ["a", *self._array(value, place)]
            if isinstance(value, numpy.generic) and not isinstance(value, numpy.void):
                return ["n", *self._array(numpy.asarray(value), place)]
            if isinstance(value, numpy.dtype) and value.kind in PLAIN_KINDS:
                return ["N", value.str]
        if self._other is not None:
            return self._other(value, place)
        raise NotData(
            f"{place} is of type {type(value).__module__}.{type(value).__qualname__}, which does not travel: numbers, "
            "texts, arrays, tensors, and lists, tuples, dictionaries and sets of these do"
        )

    def _array(self, array: Any, place: str) -> list[Any]:
        if array.dtype.kind not in PLAIN_KINDS:
            raise NotData(f"{place} is an array of {array.dtype}, which does not travel")
        return [array.dtype.str, list(array.shape), self._segment(array.tobytes())]

    def _tensor(self, torch: Any, tensor: Any, place: str) -> list[Any]:
        name = str(tensor.dtype).removeprefix("torch.")
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or name not in TORCH_DTYPES:
            raise NotData(f"{place} is a {type(tensor).__qualname__} of {name}, which does not travel")
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise NotData(f"{place} is a tensor of layout {tensor.layout}; make it a dense one")
        if tensor.device.type != "cpu" and not self._to_cpu:
            raise NotData(
                f"{place} is a tensor on {tensor.device}, whose memory does not travel: give the function one on the "
                "CPU (`.cpu()`), and have it moved to the device there"
            )
        here = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        data = ctypes.string_at(here.data_ptr(), here.numel() * here.element_size()) if here.numel() else b""
        return ["x", name, list(tensor.shape), self._segment(data)]


_SEQUENCES: dict[Any, str] = {list: "l", tuple: "t", set: "s", frozenset: "z"}


class ValueReader:
    """Reads written values. `other` creates the values of kinds that are unknown here."""

    def __init__(self, data: "bytes | memoryview", other: "Callable[[list[Any]], Any] | None" = None) -> None:
        self._other = other
        view = memoryview(data)
        try:
            (length,) = struct.unpack_from("<I", view)
            if length > len(view) - 4:
                raise ValueError("it ends before its head")
            head = json.loads(bytes(view[4 : 4 + length]))
            self.root: Any = head["tree"]
            self._segments: list[memoryview] = []
            begin = 4 + length
            for size in head["segments"]:
                if type(size) is not int or not 0 <= size <= len(view) - begin:
                    raise ValueError("it ends before its data")
                self._segments.append(view[begin : begin + size])
                begin += size
        except (ValueError, KeyError, TypeError, struct.error, RecursionError) as error:
            raise NotData(f"a value that cannot be read: {error}") from None

    def value(self) -> Any:
        """Returns the value of the whole tree."""
        return self.of(self.root)

    def of(self, tree: Any) -> Any:
        """Returns the value of a tree. Raises `NotData` if the tree has none."""
        try:
            return self._of(tree)
        except NotData:
            raise
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError, RuntimeError,
                ImportError) as error:  # fmt: skip
            raise NotData(f"a value that cannot be read: {type(error).__name__}: {error}") from None

    def _of(self, tree: Any) -> Any:
        if not isinstance(tree, list):
            return tree
        kind, *rest = tree
        if kind in _MADE:
            return _MADE[kind](self._of(item) for item in rest[0])
        if kind == "d":
            return {self._of(key): self._of(item) for key, item in rest[0]}
        if kind == "f":
            return float(rest[0])
        if kind == "c":
            return complex(self._of(rest[0]), self._of(rest[1]))
        if kind in ("b", "y"):
            return (bytes if kind == "b" else bytearray)(self._segment(rest[0]))
        if kind in ("r", "i"):
            return (range if kind == "r" else slice)(*(self._of(part) for part in rest))
        if kind == "e":
            return Ellipsis
        return self._library(kind, rest)

    def _segment(self, index: Any) -> memoryview:
        if type(index) is not int or index < 0:
            raise ValueError("there is no such segment")
        return self._segments[index]

    def _library(self, kind: Any, rest: list[Any]) -> Any:
        if kind in ("a", "n", "N"):
            import numpy

            dtype = numpy.dtype(str(rest[0]))
            if dtype.kind not in PLAIN_KINDS:
                raise ValueError(f"an array of {dtype}")
            if kind == "N":
                return dtype
            array = numpy.frombuffer(self._segment(rest[2]), dtype).reshape(_shape(rest[1])).copy()
            return array if kind == "a" else array[()]
        if kind == "x":
            return self._tensor(str(rest[0]), _shape(rest[1]), self._segment(rest[2]))
        if kind in ("S", "V", "D"):
            import torch

            if kind == "D":
                if rest[0] not in TORCH_DTYPES:
                    raise ValueError("an element type that is not known")
                return getattr(torch, rest[0])
            return torch.Size(_shape(rest[0])) if kind == "S" else torch.device(str(rest[0]))
        if self._other is not None:
            return self._other([kind, *rest])
        raise ValueError(f"the kind {str(kind)[:40]!r}, which this version does not know")

    def _tensor(self, name: str, shape: tuple[int, ...], data: memoryview) -> Any:
        if name not in TORCH_DTYPES:
            raise ValueError("a tensor of an element type that is not known")
        try:
            import torch
        except ImportError:
            import numpy

            if (plain := TORCH_DTYPES[name]) is None:
                raise NotData(f"a tensor of {name} needs PyTorch here, which is not installed") from None
            return numpy.frombuffer(data, plain).reshape(shape).copy()
        dtype = getattr(torch, name)
        count = math.prod(shape)
        if count * torch.empty(0, dtype=dtype).element_size() != len(data):
            raise ValueError("a tensor whose shape is not that of its data")
        if not count:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)


_MADE: dict[Any, Callable[[Any], Any]] = {"l": list, "t": tuple, "s": set, "z": frozenset}


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(extent) is int and 0 <= extent < 2**62 for extent in shape):
        raise ValueError("a shape of something else than extents")
    return tuple(shape)


# What an iteration may do to an object outside the loop, with the value that it computed.
EFFECTS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "min": lambda old, new: min(old, new),
    "max": lambda old, new: max(old, new),
    "min_first": lambda old, new: min(new, old),
    "max_first": lambda old, new: max(new, old),
}


def applied(value: Any, operation: str, operands: Any) -> Any:
    """Returns a value outside a loop after the effect of an iteration."""
    if operation == "append":
        value.append(operands[0])
    elif operation == "extend":
        value.extend(operands[0])
    elif operation == "item":
        value[operands[0]] = operands[1]
    elif operation == "change_item":
        key, change, by = operands
        value[key] = EFFECTS[change](value[key], by)
    else:
        value = EFFECTS[operation](value, operands[0])
    return value
