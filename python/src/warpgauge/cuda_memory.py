"""Device memory of another process, opened through the CUDA driver alone."""

from __future__ import annotations

import base64
import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import ArgumentError, ProtocolError, WarpgaugeError
from .tensors import THEIRS

if TYPE_CHECKING:
    from .models import TensorHandle

_HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1
_EMULATOR_IPC_DIR = "WARPGAUGE_EMULATOR_IPC_DIR"
# Element types in the notation of the array interface. Types that NumPy lacks are integers of the same size.
_TYPES = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2", "float8_e4m3": "|u1",
          "float8_e5m2": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "|u1",
          "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bool": "|b1",
          "float8_e8m0fnu": "|u1", "float4_e2m1fn_x2": "|u1", "int4x2": "|u1", "uint4x2": "|u1",
          "complex64": "<c8", "complex128": "<c16"}  # fmt: skip


class CudaError(WarpgaugeError):
    """The driver rejected a call."""


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_byte * _HANDLE_BYTES),)


class _Uuid(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 16),)


class CudaMemory:
    """A tensor in device memory, opened by its handle and closed when this object is collected.

    `as_torch` and `as_cupy` return arrays over the same memory. Any library with `__cuda_array_interface__` accepts
    this object as an array. `read` and `write` copy. Processes that work on the memory in turn synchronise their
    streams with `record` and `wait`, without blocking the host.
    """

    def __init__(self, handle: TensorHandle, done: Callable[[], None]) -> None:
        raw = _raw(handle["ipc_handle"])
        # Older servers have no such field, and some drivers have no events.
        told = handle.get("event_handle")
        self._event_handle = None if told is None else _raw(told)
        # The event is opened at its first use: a process that only shares memory may have another /dev/shm than the
        # holder.
        self._event, self._opening = ctypes.c_void_p(), threading.Lock()
        self._driver = _driver(handle)
        self._emulated = "emulator_library" in handle
        self.ordinal = _ordinal(self._driver, handle["device_uuid"] or "")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        _check(self._driver.cuDeviceGet(ctypes.byref(device), self.ordinal), "cuDeviceGet")
        # PyTorch and CuPy use the same context. It lives as long as the process.
        _check(self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
        self._context = context
        address = ctypes.c_uint64()
        with _Current(self._driver, context):
            opened = self._driver.cuIpcOpenMemHandle_v2(
                ctypes.byref(address), _Handle.from_buffer_copy(raw), _LAZY_PEER_ACCESS
            )
        _check(opened, "cuIpcOpenMemHandle")
        weakref.finalize(self, _close, self._driver, context, address.value, self._event, done)
        self.address = address.value + handle["offset"]
        self.nbytes: int = handle["nbytes"]
        self.shape = tuple(handle["shape"])
        self.element_type = handle["element_type"]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": _TYPES[self.element_type],
            "data": (self.address, False),
            "version": 3,
            "strides": None,
        }

    def as_torch(self) -> Any:
        """Returns a tensor of PyTorch over the same memory: on the GPU or, for an emulated device, on the CPU."""
        torch = import_module("torch")
        if self._emulated:
            # The device's addresses are those of this process. The buffer keeps the memory open.
            buffer = (ctypes.c_char * self.nbytes).from_address(self.address)
            weakref.finalize(buffer, lambda memory: None, self)
            dtype = getattr(torch, THEIRS.get(self.element_type, self.element_type))
            return torch.frombuffer(buffer, dtype=dtype).view(self.shape)
        # PyTorch may number devices differently; the UUID has found the right one.
        plain = torch.as_tensor(self, device=f"cuda:{self.ordinal}")
        return plain.view(getattr(torch, THEIRS.get(self.element_type, self.element_type)))

    def as_cupy(self) -> Any:
        """Returns an array of CuPy over the same memory."""
        if self._emulated:
            raise ArgumentError("the tensor is on an emulated device, which is no memory of CuPy; use `as_torch`")
        return import_module("cupy").asarray(self)

    def record(self, stream: object = 0) -> None:
        """Records the present work of `stream`, for which `wait` waits in all processes.

        `stream` is a stream of PyTorch or CuPy, or the driver's handle of one; 0 is the default stream.
        """
        with _Current(self._driver, self._context):
            recorded = self._driver.cuEventRecord(self._shared_event(), _stream(stream))
        _check(recorded, "cuEventRecord")

    def wait(self, stream: object = 0) -> None:
        """Lets `stream` wait for the work that any process recorded last. Without a record it does not wait."""
        with _Current(self._driver, self._context):
            waiting = self._driver.cuStreamWaitEvent(_stream(stream), self._shared_event(), ctypes.c_uint(0))
        _check(waiting, "cuStreamWaitEvent")

    def _shared_event(self) -> ctypes.c_void_p:
        """Returns the opened event. The context must be current."""
        if self._event_handle is None:
            raise CudaError(
                "no event came with this tensor's handle: the driver that holds it has none between processes (the "
                "server's log says why). Wait for your own work before you tell others"
            )
        with self._opening:
            if not self._event:
                opened = self._driver.cuIpcOpenEventHandle(
                    ctypes.byref(self._event), _Handle.from_buffer_copy(self._event_handle)
                )
                if opened:
                    raise CudaError(
                        f"cuIpcOpenEventHandle failed with CUDA error {opened}; the driver shares events by /dev/shm, "
                        "which must be the server's here (containers: --ipc). The memory itself can be used"
                    )
            return self._event

    def read(self) -> bytes:
        """Returns a copy of the content."""
        into = ctypes.create_string_buffer(self.nbytes)
        with _Current(self._driver, self._context):
            copied = self._driver.cuMemcpyDtoH_v2(into, ctypes.c_uint64(self.address), ctypes.c_size_t(self.nbytes))
        _check(copied, "cuMemcpyDtoH")
        return into.raw

    def write(self, data: object) -> None:
        """Replaces the content, for all processes, by bytes or by the elements of an array in C order."""
        data = _bytes_of(data)
        if len(data) != self.nbytes:
            raise ArgumentError(f"{len(data)} bytes for a tensor of {self.nbytes} bytes")
        with _Current(self._driver, self._context):
            copied = self._driver.cuMemcpyHtoD_v2(ctypes.c_uint64(self.address), data, ctypes.c_size_t(self.nbytes))
            # A copy from pageable memory may return before it has reached the device, and other processes wait for no
            # stream of this process.
            waited = copied or self._driver.cuCtxSynchronize()
        _check(copied, "cuMemcpyHtoD")
        _check(waited, "cuCtxSynchronize")


class _Current:
    """Makes a context current in this thread, as a context manager."""

    def __init__(self, driver: Any, context: ctypes.c_void_p) -> None:
        self._driver, self._context = driver, context

    def __enter__(self) -> None:
        _check(self._driver.cuCtxPushCurrent_v2(self._context), "cuCtxPushCurrent")

    def __exit__(self, *_: object) -> None:
        self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def _close(
    driver: Any, context: ctypes.c_void_p, address: int, event: ctypes.c_void_p, done: Callable[[], None]
) -> None:
    with _Current(driver, context):
        # A failure means that the context is lost already.
        if event:
            driver.cuEventDestroy_v2(event)
        driver.cuIpcCloseMemHandle(ctypes.c_uint64(address))
    done()


def _bytes_of(data: object) -> bytes:
    if isinstance(data, bytes):
        return data
    if hasattr(data, "__array__"):
        data = import_module("numpy").asarray(data)
    try:
        return memoryview(data).tobytes()  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"a {type(data).__name__} is neither bytes nor an array") from None


def _raw(handle: str | None) -> bytes:
    raw = base64.b64decode(handle or "")
    if len(raw) != _HANDLE_BYTES:
        raise ProtocolError(f"a CUDA IPC handle of {len(raw)} bytes; it has {_HANDLE_BYTES}")
    return raw


def _stream(stream: object) -> ctypes.c_void_p:
    """Returns the handle of a stream. PyTorch's streams have it as `cuda_stream`, CuPy's as `ptr`."""
    handle = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if not isinstance(handle, int):
        raise ArgumentError(f"a {type(stream).__name__} is no CUDA stream; give one of PyTorch or CuPy, or its handle")
    return ctypes.c_void_p(handle)


def _driver(handle: TensorHandle) -> Any:
    library = handle.get("emulator_library")
    if library is not None:
        wanted = handle["emulator_ipc_dir"]
        # The library reads the variable once, at its start.
        if os.environ.setdefault(_EMULATOR_IPC_DIR, wanted) != wanted:
            raise ArgumentError(
                f"this process has opened tensors of another emulated device ({os.environ[_EMULATOR_IPC_DIR]}); "
                "open those of one server in a process"
            )
    try:
        driver = ctypes.CDLL(library or "libcuda.so.1")
    except OSError as error:
        raise CudaError(f"no CUDA driver: {error}") from None
    driver.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, _Handle, ctypes.c_uint]
    driver.cuIpcOpenEventHandle.argtypes = [ctypes.c_void_p, _Handle]
    _check(driver.cuInit(0), "cuInit")
    return driver


def _ordinal(driver: Any, uuid: str) -> int:
    """Returns the device's number in this process, which may differ from that at the server."""
    count = ctypes.c_int()
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    for ordinal in range(count.value):
        device, found = ctypes.c_int(), _Uuid()
        _check(driver.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
        _check(driver.cuDeviceGetUuid_v2(ctypes.byref(found), device), "cuDeviceGetUuid")
        if bytes(found.bytes).hex() == uuid.removeprefix("GPU-").replace("-", "").lower():
            return ordinal
    raise CudaError(
        f"this process sees no device {uuid}; see CUDA_VISIBLE_DEVICES, and that the server is on this machine"
    )


def _check(result: int, call: str) -> None:
    if result != 0:
        raise CudaError(f"{call} failed with CUDA error {result}")
