"""Arguments of kernels: converts arrays of NumPy and PyTorch to specifications, and outputs to arrays.

Either library is imported only if one of its arrays is given.
"""

from __future__ import annotations

import base64
import binascii
import ctypes
import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, cast, get_args

from .errors import ArgumentError, ProtocolError
from .models import Dtype, OutputReport, Role, TensorData, TensorInit, TensorSpec

DTYPES: tuple[str, ...] = get_args(Dtype)

# Size of an element, bytes.
_SIZES = {"complex128": 16, "complex64": 8, "float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4,
          "uint32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2,
          "float8_e4m3": 1, "float8_e5m2": 1, "float8_e8m0fnu": 1,
          "float4_e2m1fn_x2": 1, "int4x2": 1, "uint4x2": 1, "int8": 1, "uint8": 1, "bool": 1}  # fmt: skip

# NumPy (with ml_dtypes) and PyTorch name the format with finite values only `e4m3fn`.
_OURS = {"float8_e4m3fn": "float8_e4m3"}
# ml_dtypes has a number in each byte. Two of its numbers are one element of the server.
_UNPACKED = {"float4_e2m1fn": "float4_e2m1fn_x2", "int4": "int4x2", "uint4": "uint4x2"}
PACKED = {ours: theirs for theirs, ours in _UNPACKED.items()}
THEIRS = {ours: theirs for theirs, ours in _OURS.items()}


@dataclass(frozen=True)
class Tensor:
    """A tensor without content: an output, or an input that the server generates (`init`)."""

    shape: Sequence[int | str]
    dtype: str = "float32"
    role: Role = "input"
    init: TensorInit | None = None
    # The `__constant__` or `__device__` variable with the tensor, in place of a parameter.
    symbol: str | None = None


@dataclass(frozen=True)
class Texture:
    """A texture object over another argument, a tensor, by its name."""

    tensor: str
    channels: int = 1
    address: Literal["clamp", "wrap", "mirror", "border"] = "clamp"
    filter: Literal["point", "linear"] = "point"
    # Whether coordinates are fractions of the extents.
    normalized: bool = False
    # Whether integers are read unchanged, or as fractions of their range.
    read: Literal["element", "normalized"] = "element"
    # Whether the first of three extents is the number of layers.
    layered: bool = False
    # Whether the texture is in a CUDA array even if the tensor's memory would suffice; `tex1D` requires that.
    array: bool = False


@dataclass(frozen=True)
class Surface:
    """A surface object over another argument, a tensor, by its name."""

    tensor: str
    channels: int = 1
    # Whether the first of three extents is the number of layers.
    layered: bool = False


@dataclass(frozen=True)
class Shared:
    """A tensor that the server holds (`TensorClient`), by its id. The server copies its content, which is not sent.

    Shape and element type are those of the tensor unless they are given. An output is not written back to it.
    """

    tensor_id: str
    shape: Sequence[int | str] | None = None
    dtype: str | None = None
    role: Role = "input"


@dataclass(frozen=True)
class Out:
    """An array with the shape and element type of an output. Its content is not sent."""

    array: Any


@dataclass(frozen=True)
class InOut:
    """An array that the kernel reads and writes."""

    array: Any


def library(value: object) -> str | None:
    """Returns `numpy` or `torch` for an array of that library, else `None`."""
    for kind in type(value).__mro__:
        module, name = kind.__module__.partition(".")[0], kind.__name__
        if (module, name) in {("numpy", "ndarray"), ("torch", "Tensor")}:
            return module
    return None


def spec_of(array: object, where: str, with_data: bool = True) -> TensorSpec:
    """Returns shape, element type and, unless `with_data` is false, content of an array."""
    kind = library(array)
    if kind is None:
        raise ArgumentError(
            f"{where}: a {type(array).__name__} is no array of NumPy or PyTorch; "
            "give one, a scalar, or `warpgauge.Tensor(shape, dtype)`"
        )
    if kind == "numpy" and cast(Any, array).dtype.name in _UNPACKED:
        return _packed_spec(array, where, with_data)
    dtype, shape = _dtype_of(array, kind, where), [int(n) for n in cast(Any, array).shape]
    if 0 in shape:
        raise ArgumentError(
            f"{where}: shape {tuple(shape)} has no elements; the server takes tensors of at least one "
            "element, so leave the argument's work out or pad it"
        )
    spec: TensorSpec = {"shape": [*shape], "dtype": dtype}
    if with_data:
        raw = _numpy_bytes(array) if kind == "numpy" else _torch_bytes(array, where)
        spec["data"] = {"data_b64": base64.b64encode(raw).decode("ascii")}
    return spec


def _packed_spec(array: Any, where: str, with_data: bool) -> TensorSpec:
    """Returns the specification of an array of ml_dtypes' 4-bit numbers: two in a byte, the first in the low half."""
    name = array.dtype.name
    if array.ndim == 0 or array.size == 0 or array.shape[-1] % 2:
        raise ArgumentError(
            f"{where}: shape {tuple(array.shape)} of {name}; its last dimension must be even, since two numbers "
            "make a byte"
        )
    numpy = import_module("numpy")
    codes = numpy.ascontiguousarray(array).view(numpy.uint8) & 15
    raw = codes[..., 0::2] | codes[..., 1::2] << 4
    spec: TensorSpec = {"shape": [int(n) for n in raw.shape], "dtype": cast(Dtype, _UNPACKED[name])}
    if with_data:
        spec["data"] = {"data_b64": base64.b64encode(raw.tobytes()).decode("ascii")}
    return spec


def data_of(array: object, where: str) -> TensorData:
    """Returns the content of an array, with its shape and element type."""
    spec = spec_of(array, where)
    shape = [int(n) for n in spec["shape"]]
    return {"data_b64": spec["data"]["data_b64"], "dtype": spec["dtype"], "shape": shape}


def _dtype_of(array: Any, kind: str, where: str) -> Dtype:
    if kind == "torch":
        name = str(array.dtype).removeprefix("torch.")
        if array.is_sparse or array.is_quantized or str(array.layout) != "torch.strided":
            raise ArgumentError(f"{where}: a tensor of layout {array.layout}; make it dense first")
    else:
        name = array.dtype.name
    name = _OURS.get(name, name)
    if name not in DTYPES:
        raise ArgumentError(
            f"{where}: element type {name} is not one of the server's: {', '.join(DTYPES)}; convert it first"
        )
    return cast(Dtype, name)


def _numpy_bytes(array: Any) -> bytes:
    """Returns the elements in C order, little-endian, for any memory layout."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    return cast(bytes, array.tobytes(order="C"))


def _torch_bytes(array: Any, where: str) -> bytes:
    if array.device.type == "meta":
        raise ArgumentError(f"{where}: a tensor on the device `meta` has no content; give `Out` or `Tensor`")
    array = array.detach().resolve_conj().resolve_neg().cpu().contiguous()
    # The elements are read by address, because PyTorch exports no bfloat16, and NumPy may be missing.
    return ctypes.string_at(array.data_ptr(), array.numel() * array.element_size())


class Outputs(Mapping[str, Any]):
    """Outputs by name. Content is decoded at its first use."""

    def __init__(self, reports: Mapping[str, OutputReport], kinds: Mapping[str, str]) -> None:
        self._reports, self._kinds = reports, kinds
        self._arrays: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._arrays:
            self._arrays[name] = array_of(self._reports[name], name, self._kinds.get(name, "numpy"))
        return self._arrays[name]

    def __iter__(self) -> Any:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)

    def __repr__(self) -> str:
        shown = (f"{n}: {r['dtype']}{list(r['shape'])}" for n, r in self._reports.items())
        return f"Outputs({', '.join(shown)})"


def array_of(report: OutputReport, name: str, kind: str) -> Any:
    """Returns the array of an output: NumPy's, or PyTorch's if the argument was PyTorch's."""
    if "data_b64" not in report:
        raise KeyError(f"{name}: its content did not travel; ask for it with return_outputs='all'")
    dtype, shape = report["dtype"], report["shape"]
    if dtype not in _SIZES or report.get("format", "raw") != "raw":
        raise ProtocolError(f"output {name}: {dtype} as {report.get('format')} is not known here")
    raw, size = _content(report, name), math.prod(shape) * _SIZES[dtype]
    if len(raw) != size:
        raise ProtocolError(f"output {name}: {len(raw)} bytes in place of {size}")
    theirs = THEIRS.get(dtype, dtype)
    if kind == "torch":
        torch = import_module("torch")
        # PyTorch has no integers of this kind, so the array has their bytes.
        element = getattr(torch, theirs) if dtype not in ("int4x2", "uint4x2") else torch.uint8
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(element).reshape(shape)
    numpy = import_module("numpy")
    if dtype == "bfloat16" or dtype.startswith("float8") or dtype in PACKED:
        theirs = PACKED.get(dtype, theirs)
        try:
            element = numpy.dtype(getattr(import_module("ml_dtypes"), theirs))
        except ImportError:
            raise ArgumentError(
                f"output {name}: NumPy alone has no {dtype}; install ml_dtypes, or give PyTorch tensors"
            ) from None
    else:
        element = numpy.dtype(dtype).newbyteorder("<")
    if dtype in PACKED:
        return _unpacked(numpy.frombuffer(raw, dtype=numpy.uint8).reshape(shape or [1]), dtype, element)
    return numpy.frombuffer(bytearray(raw), dtype=element).reshape(shape)


def _unpacked(packed: Any, dtype: str, element: Any) -> Any:
    """Returns the numbers of bytes with two numbers each; the last dimension is twice as long."""
    numpy = import_module("numpy")
    codes = numpy.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)
    if dtype == "float4_e2m1fn_x2":
        return codes.view(element)
    signed = codes.astype(numpy.int8)
    return (numpy.where(signed > 7, signed - 16, signed) if dtype == "int4x2" else signed).astype(element)


def _content(report: OutputReport, name: str) -> bytes:
    try:
        raw = base64.b64decode(report["data_b64"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProtocolError(f"output {name}: its content is not base64: {error}") from None
    compress = report.get("compress", "none")
    if compress == "none":
        return raw
    if compress != "zlib":
        raise ProtocolError(f"output {name}: compression {compress} is not known here; ask for zlib")
    limit = math.prod(report["shape"]) * _SIZES[report["dtype"]]
    # One byte more than the limit shows that the content is too long; a small text cannot fill the memory.
    try:
        return zlib.decompressobj().decompress(raw, limit + 1)
    except zlib.error as error:
        raise ProtocolError(f"output {name}: its content is not zlib's: {error}") from None
