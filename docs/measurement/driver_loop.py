#!/usr/bin/env python3
"""A timing loop as the device worker's, through the CUDA driver alone.

Used by do_bench_steps.py. As a program it times one compiled kernel in a process that has nothing else in
it: what to launch comes as JSON on standard input, medians go to standard output as JSON.
"""
import ctypes
import json
import statistics
import sys

ROUNDS = 3
LAUNCHES = 150
WARM_UP = 50

# Spins until the host writes `generation` to the second word, then for 8 µs more; as the device worker's.
BLOCK = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry block(.param .u64 arrived, .param .u64 open, .param .u32 generation)
{
  .reg .pred %p; .reg .b32 %g, %v; .reg .b64 %a, %o, %t, %n;
  ld.param.u64 %a, [arrived]; ld.param.u64 %o, [open]; ld.param.u32 %g, [generation];
  st.volatile.global.u32 [%a], %g;
WAIT: ld.volatile.global.u32 %v, [%o]; setp.ne.u32 %p, %v, %g; @%p bra WAIT;
  mov.u64 %t, %globaltimer; add.u64 %t, %t, 8000;
QUIET: mov.u64 %n, %globaltimer; setp.lt.u64 %p, %n, %t; @%p bra QUIET;
  ret;
}
"""

cuda = ctypes.CDLL("libcuda.so.1")


def check(code):
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise SystemExit(f"CUDA: {(text.value or b'?').decode()} ({code})")


class Launch:
    """A launch of a function of the driver's, with its arguments packed once."""

    def __init__(self, function, grid, threads, shared, values):
        self.function = ctypes.c_void_p(function)
        self.shape = [ctypes.c_uint(n) for n in (*grid, *(1,) * (3 - len(grid)), threads, 1, 1, shared)]
        self.values = values
        self.pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))

    def __call__(self, stream):
        code = cuda.cuLaunchKernel(self.function, *self.shape, ctypes.c_void_p(stream), self.pointers, None)
        if code:
            check(code)


class DriverEvent:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        check(cuda.cuEventCreate(ctypes.byref(self.handle), 0))

    def record(self, stream):
        cuda.cuEventRecord(self.handle, ctypes.c_void_p(stream))

    def synchronize(self):
        check(cuda.cuEventSynchronize(self.handle))

    def elapsed_time(self, end):
        ms = ctypes.c_float()
        check(cuda.cuEventElapsedTime(ctypes.byref(ms), self.handle, end.handle))
        return ms.value


class Gate:
    """The blocking kernel with its page."""

    def __init__(self):
        module, function, page = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        check(cuda.cuModuleLoadData(ctypes.byref(module), BLOCK.encode() + b"\0"))
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"block"))
        check(cuda.cuMemHostAlloc(ctypes.byref(page), ctypes.c_size_t(512), 0))
        self.words = (ctypes.c_uint32 * 128).from_address(page.value)
        self.generation = ctypes.c_uint32(0)
        values = [ctypes.c_uint64(page.value), ctypes.c_uint64(page.value + 256), self.generation]
        self.launch = Launch(function.value, (1,), 1, 0, values)

    def close(self, stream):
        self.generation.value += 1
        self.launch(stream)
        while self.words[0] != self.generation.value:
            pass

    def open(self):
        self.words[64] = self.generation.value


def fill(address, size, byte, stream):
    check(cuda.cuMemsetD8Async(ctypes.c_uint64(address), ctypes.c_ubyte(byte), ctypes.c_size_t(size),
                               ctypes.c_void_p(stream)))


class Memory:
    def __init__(self, size):
        self.size, address = size, ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        self.address = address.value


def alone(task):
    """Medians of a kernel in this process, µs."""
    check(cuda.cuInit(0))
    device, context, l2 = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    check(cuda.cuCtxSetCurrent(context))
    # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
    check(cuda.cuDeviceGetAttribute(ctypes.byref(l2), 38, device))
    handle, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuStreamCreate(ctypes.byref(handle), 1))
    stream = handle.value
    with open(task["cubin"], "rb") as file:
        check(cuda.cuModuleLoadData(ctypes.byref(module), file.read()))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, task["name"].encode()))
    # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(cuda.cuFuncSetAttribute(function, 8, task["shared"]))
    inputs = []
    for path in task["inputs"]:
        with open(path, "rb") as file:
            data = file.read()
        memory, kept = Memory(len(data)), Memory(len(data))
        for copy in (memory, kept):
            check(cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(copy.address), data, ctypes.c_size_t(len(data))))
        inputs.append((memory, kept))
    output, flush = Memory(task["output_bytes"]), Memory(2 * l2.value)
    values = [ctypes.c_uint64(memory.address) for memory, _ in inputs] + [ctypes.c_uint64(output.address)]
    launch = Launch(function.value, task["grid"], task["threads"], task["shared"], scalars(values, task["scalars"]))
    gate = Gate()
    events = [[DriverEvent() for _ in range(2)] for _ in range(LAUNCHES)]
    medians = []
    for _ in range(ROUNDS):
        for turn in range(-WARM_UP, LAUNCHES):
            start, end = events[max(turn, 0)]
            for memory, kept in inputs:
                check(cuda.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(memory.address), ctypes.c_uint64(kept.address),
                                                ctypes.c_size_t(memory.size), ctypes.c_void_p(stream)))
            fill(output.address, output.size, turn & 255, stream)
            fill(flush.address, flush.size, 0, stream)
            gate.close(stream)
            start.record(stream)
            launch(stream)
            end.record(stream)
            gate.open()
            end.synchronize()
        medians.append(1e3 * statistics.median(start.elapsed_time(end) for start, end in events))
    return medians


def scalars(values, given):
    """The arguments of a kernel of Triton's: those given, and two scratch pointers that it does not use."""
    typed = [ctypes.c_int32(v) if isinstance(v, int) else ctypes.c_float(v) for v in given]
    return values + typed + [ctypes.c_uint64(0), ctypes.c_uint64(0)]


if __name__ == "__main__":
    json.dump(alone(json.load(sys.stdin)), sys.stdout)
