# A device, in a fork that has one: where its tensors are, and the judge's memory, which is opened here.

import bisect


class Block(ctypes.Structure):
    """CUipcMemHandle"""

    _fields_ = [("reserved", ctypes.c_char * 64)]


class Lent:
    """Memory of the judge's, as PyTorch takes it."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


class Device:
    """The only device that this process sees. Making it makes the context."""

    def __init__(self, torch):
        self.torch = torch
        torch.cuda.init()
        self.place = torch.device("cuda", 0)
        self.small = torch.zeros(1, device=self.place)
        self.synchronize = torch.cuda.synchronize
        self.synchronize()
        driver = ctypes.CDLL("libcuda.so.1")
        self.address_range = driver.cuMemGetAddressRange_v2
        self.get_handle = driver.cuIpcGetMemHandle
        self.open_handle = driver.cuIpcOpenMemHandle_v2
        self.open_handle.argtypes = [ctypes.POINTER(ctypes.c_uint64), Block, ctypes.c_uint]
        self.base, self.size = ctypes.c_uint64(), ctypes.c_size_t()
        # Blocks by their addresses, in order: an allocator may give blocks back between two batches.
        self.forget()
        # The judge's memory, and what flushes the cache.
        self.lent = self.flush = None
        self.lent_range = range(0)

    def forget(self):
        self.begins, self.ends, self.handles = [], [], []

    def where(self, address):
        """The block that an address lies in, and where in it."""
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
        block = Block.from_buffer_copy(base64.b64decode(handle))
        address = ctypes.c_uint64()
        result = self.open_handle(ctypes.byref(address), block, 1)
        if result:
            raise Refused("call_failed", f"the judge's memory cannot be opened (error {result})")
        self.lent = self.torch.as_tensor(Lent(address.value, count), device=self.place)
        self.lent_range = range(address.value, address.value + count)


class Batch:
    """Calls that are made one after the other, with arguments that lie in the judge's memory."""

    def __init__(self, torch, values, device, asked):
        count = asked["count"]
        self.device = device
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
        ((kind, inner),) = tree.items()
        if kind == "list":
            return [self.placed(torch, values, item, offset) for item in inner]
        if kind == "dict":
            return {key: self.placed(torch, values, item, offset) for key, item in inner}
        if kind == "value":
            return values.made(tree)
        dtype, shape = values.dtypes[inner["dtype"]], inner["shape"]
        size = math.prod(shape) * dtype.itemsize
        begin = inner["offset"] + offset
        return self.device.lent[begin : begin + size].view(dtype).view(shape)

    def run(self, torch, values, call):
        """Makes the calls and waits for the device. What each returned is described while the device
        still computes: nothing of that is left to do when it has ended."""
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
                result = call(*arguments)
                if self.flushes:
                    events[2 * index + 1].record()
                returned.append(result)
                told.append(text_of(result))
            if not self.flushes:
                events[1].record()
        self.device.synchronize()
        return '{"ran": [' + ", ".join(told) + "]"

    def times(self):
        """Milliseconds of each call, or of all together."""
        pairs = zip(self.events[::2], self.events[1::2])
        return [before.elapsed_time(after) for before, after in pairs]
