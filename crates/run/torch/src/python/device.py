# The device of a fork: the locations of its tensors, and the judge's memory, which the fork opens.

import bisect
import mmap


class Block(ctypes.Structure):
    """CUipcMemHandle"""

    _fields_ = [("reserved", ctypes.c_char * 64)]


class Lent:
    """The judge's memory, in the form that PyTorch accepts."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


class Device:
    """The only device that this process can use. The constructor creates the context."""

    def __init__(self, torch):
        self.torch = torch
        torch.cuda.init()
        self.place = torch.device("cuda", 0)
        torch.zeros(1, device=self.place)
        self.synchronize = torch.cuda.synchronize
        self.synchronize()
        driver = ctypes.CDLL("libcuda.so.1")
        self.address_range = driver.cuMemGetAddressRange_v2
        self.get_handle = driver.cuIpcGetMemHandle
        self.open_handle = driver.cuIpcOpenMemHandle_v2
        self.open_handle.argtypes = [ctypes.POINTER(ctypes.c_uint64), Block, ctypes.c_uint]
        self.close_handle = driver.cuIpcCloseMemHandle
        self.base, self.size = ctypes.c_uint64(), ctypes.c_size_t()
        # Blocks sorted by their addresses. `forget` clears them, because an allocator may free
        # blocks between two batches.
        self.forget()
        # The judge's memory, the buffer for flushing the cache, and the gate that holds calls back.
        self.lent = self.flush = self.gate = None
        self.lent_range = range(0)

    def forget(self):
        self.begins, self.ends, self.handles = [], [], []

    def where(self, address):
        """Returns the block that contains an address, and the offset in it."""
        index = bisect.bisect_right(self.begins, address) - 1
        if index >= 0 and address < self.ends[index]:
            return self.handles[index], address - self.begins[index]
        if self.address_range(ctypes.byref(self.base), ctypes.byref(self.size), ctypes.c_uint64(address)):
            raise Refused("unusable_output", "a tensor is in memory that the driver does not know")
        base, block = self.base.value, Block()
        if self.get_handle(ctypes.byref(block), ctypes.c_uint64(base)):
            raise Refused(
                "unusable_output",
                "a tensor is in memory that cannot be shared with the process that judges: use "
                "PyTorch's own allocator",
            )
        handle = base64.b64encode(bytes(memoryview(block))).decode()
        self.begins.insert(index + 1, base)
        self.ends.insert(index + 1, base + self.size.value)
        self.handles.insert(index + 1, handle)
        return handle, address - base

    def open(self, handle, count):
        if self.lent is not None:
            self.lent = None
            self.close_handle(ctypes.c_uint64(self.lent_range.start))
        block = Block.from_buffer_copy(base64.b64decode(handle))
        address = ctypes.c_uint64()
        result = self.open_handle(ctypes.byref(address), block, 1)
        if result:
            raise Refused("call_failed", f"the judge's memory cannot be opened (error {result})")
        self.lent = self.torch.as_tensor(Lent(address.value, count), device=self.place)
        self.lent_range = range(address.value, address.value + count)


class Gate:
    """Holds the stream back until the judge gives a call's key, and hashes the results of the call.

    The judge measures how long both take without a call. Its copies of the results must have the same
    hashes."""

    # The values of `gate_page` in the crate `model`.
    PAGE, STARTED, QUEUED = 4096, 256, 320
    MOST_RANGES, GROUP, COUNTERS, GROUP_HASH = 64, 131072, 320, 64
    PATIENCE = ctypes.c_uint64(60_000_000_000)

    def __init__(self, torch, device, image):
        self.torch, self.device = torch, device
        self.page = mmap.mmap(-1, self.PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.page[:] = bytes(self.PAGE)
        self.words = (ctypes.c_uint32 * (self.PAGE // 4)).from_buffer(self.page)
        self.address = ctypes.addressof(self.words)
        driver = ctypes.CDLL("libcuda.so.1")
        self.launch_kernel = driver.cuLaunchKernel
        self.launch_kernel.argtypes = [ctypes.c_void_p] + 7 * [ctypes.c_uint] + 3 * [ctypes.c_void_p]
        mapped, self.on_device = 2, ctypes.c_uint64()
        checked(
            driver.cuMemHostRegister_v2(ctypes.c_void_p(self.address), ctypes.c_size_t(self.PAGE), mapped),
            "share a page with the device",
        )
        checked(
            driver.cuMemHostGetDevicePointer_v2(
                ctypes.byref(self.on_device), ctypes.c_void_p(self.address), 0
            ),
            "find a page on the device",
        )
        module = ctypes.c_void_p()
        checked(driver.cuModuleLoadData(ctypes.byref(module), image), "load the judge's kernels")
        self.gate, self.lock, self.commit = (ctypes.c_void_p() for _ in range(3))
        for function, name in ((self.gate, b"wg_gate"), (self.lock, b"wg_lock"), (self.commit, b"wg_commit")):
            checked(driver.cuModuleGetFunction(ctypes.byref(function), module, name), "find a kernel")
        self.key = torch.zeros(32, dtype=torch.uint8, device=device.place)
        self.key_at = ctypes.c_uint64(self.key.data_ptr())
        self.work = torch.zeros(1 << 20, dtype=torch.uint8, device=device.place)
        self.blocks = 16 * torch.cuda.get_device_properties(device.place).multi_processor_count

    def launch(self, kernel, grid, threads, *arguments):
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        stream = self.torch.cuda.current_stream().cuda_stream
        checked(
            self.launch_kernel(kernel, *grid, 1, threads, 1, 1, 0, stream, pointers, None),
            "launch one of the judge's kernels",
        )

    def begin(self, number, address, count):
        """Queues the gate, and then the decryption of the call's arguments."""
        self.launch(
            self.gate, (1, 1), 32, self.on_device, ctypes.c_uint32(number), self.PATIENCE, self.key_at
        )
        blocks = min(max(-(-count // (64 * 256)), 1), self.blocks)
        self.launch(
            self.lock,
            (blocks, 1),
            256,
            ctypes.c_uint64(address),
            ctypes.c_uint64(address),
            ctypes.c_uint64(count),
            self.key_at,
        )
        self.words[self.STARTED // 4] = number

    def end(self, number, spans):
        """Queues the hash of each span, which is an address and a size in bytes."""
        if len(spans) > self.MOST_RANGES:
            raise Refused(
                "unusable_output",
                f"{len(spans)} tensors are returned or changed; at most {self.MOST_RANGES} are timed on a GPU",
            )
        spans = spans or [(0, 0)]
        groups = [max(-(-count // self.GROUP), 1) for _, count in spans]
        needed = self.COUNTERS + self.GROUP_HASH * sum(groups)
        if self.work.numel() < needed:
            self.work = self.torch.zeros(needed, dtype=self.torch.uint8, device=self.device.place)
        empty = [0] * (self.MOST_RANGES - len(spans))
        addresses, counts = zip(*spans)
        ranges = (ctypes.c_uint64 * (2 * self.MOST_RANGES))(*addresses, *empty, *counts, *empty)
        self.launch(
            self.commit,
            (max(groups), len(spans)),
            128,
            ranges,
            ctypes.c_uint64(self.work.data_ptr()),
            self.on_device,
            ctypes.c_uint32(number),
        )
        self.words[self.QUEUED // 4] = number


def checked(result, what):
    if result:
        raise Refused("call_failed", f"the driver cannot {what} (error {result})")


class Array:
    """Placeholder of a NumPy array whose elements are in this tensor on the device."""

    def __init__(self, tensor):
        self.tensor = tensor


class Batch:
    """Calls that are made one after the other, with arguments in the judge's memory."""

    def __init__(self, torch, values, device, asked):
        count = asked["count"]
        self.device = device
        self.locked, self.stride = asked["locked"], asked["stride"]
        self.has_arrays = False
        self.arguments = [
            self.placed(torch, values, asked["arguments"], index * asked["stride"])
            for index in range(count)
        ]
        self.flushes = asked["flush"] > 0
        if self.flushes and (device.flush is None or device.flush.numel() != asked["flush"]):
            device.flush = torch.empty(asked["flush"], dtype=torch.uint8, device=device.place)
        event = torch.cuda.Event
        self.events = [event(enable_timing=True) for _ in range(2 * count if self.flushes else 2)]
        self.returned = []

    def placed(self, torch, values, tree, offset):
        """Returns the arguments of a call. NumPy arrays are on the host, so they are made when the call
        begins."""

        def lent(tensor):
            dtype, shape, strides = values.dtypes[tensor["dtype"]], tensor["shape"], tensor.get("strides")
            begin = tensor["offset"] + offset
            if strides is None:
                count = math.prod(shape) * dtype.itemsize
                return self.device.lent[begin : begin + count].view(dtype).view(shape)
            elements = sum((extent - 1) * stride for extent, stride in zip(shape, strides)) + 1
            memory = self.device.lent[begin : begin + elements * dtype.itemsize].view(dtype)
            return memory.as_strided(shape, strides, memory.storage_offset())

        def structure(kind, name, parts, module):
            if kind == "numpy":
                self.has_arrays = True
                return Array(parts[0][1])
            return with_parts(kind, name, parts, module)

        return values.made(tree, lent, structure)

    def begun(self, values, arguments):
        """Returns the arguments at the start of a call: arrays are copied to the host, while the clock
        runs."""
        if not self.has_arrays:
            return arguments

        def leaf(value):
            return value.tensor.cpu().numpy() if isinstance(value, Array) else value

        return mapped(arguments, leaf, values.module)

    def run_locked(self, torch, values, call):
        """Makes the calls one at a time. The arguments of each are encrypted until the judge gives its key,
        after it has received the hashes of the previous call's results."""
        told, returned, gate = [], self.returned, self.device.gate
        lent, changing, first = self.device.lent_range.start, self.locked["changing"], self.locked["first"]
        values.begin()
        with torch.no_grad():
            for index, arguments in enumerate(self.arguments):
                window = lent + index * self.stride
                gate.begin(first + index, window, self.stride)
                result = call(*self.begun(values, arguments))
                returned.append(result)
                values.spans = []
                told.append(values.text_of(result))
                gate.end(first + index, values.spans + [(window + at, count) for at, count in changing])
                values.spans = None
                self.device.synchronize()
        return '{"ran": [' + ", ".join(told) + "]"

    def run(self, torch, values, call):
        """Makes the calls and waits for the device. Each result is described while the device still computes,
        so that no description is left to do afterwards."""
        told, events, returned = [], self.events, self.returned
        flush, text_of = self.device.flush, values.text_of
        values.begin()
        with torch.no_grad():
            if not self.flushes:
                events[0].record()
            for index, arguments in enumerate(self.arguments):
                if self.flushes:
                    flush.zero_()
                    events[2 * index].record()
                result = call(*self.begun(values, arguments))
                if self.flushes:
                    events[2 * index + 1].record()
                returned.append(result)
                told.append(text_of(result))
            if not self.flushes:
                events[1].record()
        self.device.synchronize()
        return '{"ran": [' + ", ".join(told) + "]"

    def times(self):
        """Returns the milliseconds of each call, or of all together."""
        pairs = zip(self.events[::2], self.events[1::2])
        return [before.elapsed_time(after) for before, after in pairs]
