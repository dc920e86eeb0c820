"""Maps a shared tensor into this process, by a handle of the server."""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Callable
from importlib import import_module, util
from typing import TYPE_CHECKING, Any

from .errors import ArgumentError, ProtocolError
from .tensors import PACKED, THEIRS

if TYPE_CHECKING:
    from .models import TensorHandle
    from .tensor_client import Library

# Element types that NumPy lacks, with integers that replace them during transfers.
_STAND_INS = {
    "bfloat16": "uint16",
    "float8_e4m3": "uint8",
    "float8_e5m2": "uint8",
    "float8_e8m0fnu": "uint8",
    # Each byte has two numbers, for which NumPy has no element type.
    "float4_e2m1fn_x2": "uint8",
    "int4x2": "uint8",
    "uint4x2": "uint8",
}


def opened(handle: TensorHandle, library: Library, done: Callable[[], None]) -> Any:
    """The tensor of a handle. `done` is called once nothing refers to its memory any more."""
    _check(handle)
    if handle["kind"] == "shared_memory":
        return _host(handle, library, done)
    return _device(handle, library, done)


def _check(handle: TensorHandle) -> None:
    """Checks that the sizes in the handle agree, so that no array extends beyond the memory."""
    numel = math.prod(handle["shape"])
    if numel != handle["numel"] or numel * handle["element_size"] != handle["nbytes"]:
        raise ProtocolError(f"the handle of {handle['tensor_id']} contradicts itself: {handle['shape']}")
    if handle["offset"] < 0 or handle["offset"] + handle["nbytes"] > handle["allocation_bytes"]:
        raise ProtocolError(f"the tensor {handle['tensor_id']} does not lie in its allocation")


def _there(library: str) -> bool:
    return util.find_spec(library) is not None


def _host(handle: TensorHandle, library: Library, done: Callable[[], None]) -> Any:
    if library in ("cupy", "memory"):
        raise ArgumentError(f"the tensor is in the host's memory, which is no {library}; ask for numpy or torch")
    path = handle["shared_memory"]
    if path is None:
        raise ProtocolError("a handle of shared memory without a file")
    with open(path, "r+b") as file:
        view = mmap.mmap(file.fileno(), handle["allocation_bytes"])
    # Arrays refer to the mapping, which is removed after the last of them.
    weakref.finalize(view, done)
    wants_torch = library == "torch" or (library == "auto" and _there("torch"))
    element = handle["element_type"]
    if wants_torch:
        torch = import_module("torch")
        # PyTorch has no integers of four bits.
        dtype = torch.uint8 if element in ("int4x2", "uint4x2") else getattr(torch, THEIRS.get(element, element))
        flat = torch.frombuffer(view, dtype=dtype, count=handle["numel"], offset=handle["offset"])
        return flat.view(tuple(handle["shape"]))
    numpy = import_module("numpy")
    if element in _STAND_INS and element not in PACKED and _there("ml_dtypes"):
        ml_dtypes = import_module("ml_dtypes")
        dtype = numpy.dtype(getattr(ml_dtypes, THEIRS.get(element, element)))
    else:
        dtype = numpy.dtype(_STAND_INS.get(element, element))
    array = numpy.frombuffer(view, dtype=dtype, count=handle["numel"], offset=handle["offset"])
    return array.reshape(tuple(handle["shape"]))


def _device(handle: TensorHandle, library: Library, done: Callable[[], None]) -> Any:
    from .cuda_memory import CudaMemory

    emulated = "emulator_library" in handle
    if library == "numpy" or (emulated and library == "cupy"):
        where = "an emulated device" if emulated else "a GPU"
        raise ArgumentError(f"the tensor is on {where}, which is no memory of {library}; ask for `memory`")
    memory = CudaMemory(handle, done)
    if library == "memory" or (emulated and library == "auto" and not _there("torch")):
        return memory
    if library == "torch" or (library == "auto" and _there("torch")):
        return memory.as_torch()
    if _there("cupy"):
        return memory.as_cupy()
    raise ArgumentError("the tensor is on a GPU: install PyTorch or CuPy, or ask for `memory`")
