"""Opens a shared tensor as a stranger would: with the handle on standard input, and the driver alone."""

import base64
import ctypes
import json
import mmap
import os
import struct
import sys

handle = json.loads(sys.stdin.readline())
factor = float(sys.argv[1])
count = handle["numel"]


class Ipc(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_byte * 64)]


def device():
    """The tensor through `cuIpcOpenMemHandle`: functions that read and write it."""
    if "emulator_ipc_dir" in handle:
        os.environ["WARPGAUGE_EMULATOR_IPC_DIR"] = handle["emulator_ipc_dir"]
    cuda = ctypes.CDLL(handle.get("emulator_library", "libcuda.so.1"))

    def check(result):
        assert result == 0, f"CUDA error {result}"

    check(cuda.cuInit(0))
    number, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(number), int(handle["device"].split(":")[1])))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number))
    check(cuda.cuCtxSetCurrent(context))
    raw = Ipc.from_buffer_copy(base64.b64decode(handle["ipc_handle"]))
    address = ctypes.c_uint64()
    cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, Ipc, ctypes.c_uint]
    check(cuda.cuIpcOpenMemHandle_v2(ctypes.byref(address), raw, 1))
    begin = ctypes.c_uint64(address.value + handle["offset"])

    def read():
        into = ctypes.create_string_buffer(handle["nbytes"])
        check(cuda.cuMemcpyDtoH_v2(into, begin, ctypes.c_size_t(handle["nbytes"])))
        return into.raw

    def write(data):
        check(cuda.cuMemcpyHtoD_v2(begin, data, ctypes.c_size_t(handle["nbytes"])))
        # The copy may return before it has reached the device.
        check(cuda.cuCtxSynchronize())

    return read, write


def host():
    """The tensor as a mapped file."""
    with open(handle["shared_memory"], "r+b") as file:
        view = mmap.mmap(file.fileno(), handle["allocation_bytes"])
    begin, end = handle["offset"], handle["offset"] + handle["nbytes"]

    def write(data):
        view[begin:end] = data

    return lambda: view[begin:end], write


read, write = device() if handle["kind"] == "cuda_ipc" else host()
# Each line on standard input is a turn: read, multiply, write, say what was there.
print("open", flush=True)
for _ in sys.stdin:
    values = struct.unpack(f"<{count}f", read())
    write(struct.pack(f"<{count}f", *(value * factor for value in values)))
    print(json.dumps(values), flush=True)
