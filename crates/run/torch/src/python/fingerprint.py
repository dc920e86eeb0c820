# Fingerprints of values. Comparing two fingerprints shows whether an iteration changed a value.

import collections
import functools
import itertools
import operator
import random
import zlib

# Maximum number of values that no iteration may change, and maximum size of their arrays, bytes.
MOST_WATCHED = 10_000
MOST_WATCHED_BYTES = 256 << 20


class Fingerprint:
    """Computes a fingerprint of a value, for comparison with a later one."""

    def __init__(self):
        self.left, self.bytes_left = MOST_WATCHED, MOST_WATCHED_BYTES
        self.seen = set()
        # Arrays and tensors in the value. Other values may share their elements.
        self.arrays = []

    def of(self, value):
        self.left -= 1
        kind = type(value)
        if self.left < 0 or value is None or kind in (bool, int, float, complex, str, bytes):
            return value if self.left >= 0 else None
        if id(value) in self.seen:
            return "seen"
        self.seen.add(id(value))
        library = self.of_library(value)
        if library is not None:
            return library
        if isinstance(value, (types.FunctionType, types.MethodType, functools.partial, type)):
            return self.of_code(value)
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            # A method of an object is treated as the object.
            return None if isinstance(value.__self__, types.ModuleType) else self.of(value.__self__)
        if isinstance(value, types.ModuleType):
            return None
        return [self.of_contents(value), self.of_attributes(value)]

    def of_contents(self, value):
        """Fingerprints the items of a built-in container, or the position of an iterator; also of
        subclasses."""
        if isinstance(value, (list, tuple, collections.deque)):
            return [len(value), [self.of(item) for item in itertools.islice(value, max(self.left, 0))]]
        if isinstance(value, dict):
            items = itertools.islice(value.items(), max(self.left, 0))
            return [len(value), [(self.of(key), self.of(item)) for key, item in items]]
        if isinstance(value, (set, frozenset)):
            return [len(value), sorted(map(hash, value))]
        if isinstance(value, bytearray):
            return zlib.crc32(value)
        if isinstance(value, random.Random):
            return value.getstate()
        if isinstance(value, types.GeneratorType):
            frame = value.gi_frame
            return None if frame is None else [frame.f_lasti, self.of(dict(frame.f_locals))]
        if isinstance(value, itertools.count):
            return repr(value)
        if hasattr(type(value), "__length_hint__"):
            return operator.length_hint(value)
        return None

    def of_attributes(self, value):
        """Fingerprints an object's attributes, in its dictionary and in its slots."""
        own = getattr(value, "__dict__", None)
        # Slots of libraries' classes may be caches.
        slots = [name for kind in type(value).__mro__ if kind.__module__ == CALLER for name in slots_of(kind)]
        kept = [getattr(value, name, None) for name in slots]
        return [self.of(own) if type(own) is dict else None, [self.of(part) for part in kept]]

    def shared_with(self, others):
        """Returns the name of the first value that was part of this fingerprint, or shares elements with an array
        of it."""
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        for name, other in others.items():
            if id(other) in self.seen:
                return name
            for array in self.arrays:
                if torch is not None and isinstance(other, torch.Tensor) and isinstance(array, torch.Tensor):
                    shared = memory_of(other) is not None and memory_of(other) == memory_of(array)
                elif numpy is not None and isinstance(other, numpy.ndarray) and isinstance(array, numpy.ndarray):
                    shared = numpy.may_share_memory(other, array)
                else:
                    # A tensor and an array may share elements too. This is not checked, because
                    # loops rarely mix the two.
                    shared = False
                if shared:
                    return name
        return None

    def of_code(self, value):
        """Fingerprints the values that code keeps between calls: defaults, closure variables, attributes."""
        if isinstance(value, types.MethodType):
            return self.of(value.__self__)
        if isinstance(value, functools.partial):
            return [self.of(part) for part in (value.func, value.args, value.keywords)]
        # Functions and classes of libraries are not examined.
        if value.__module__ != CALLER:
            return None
        if isinstance(value, type):
            return [self.of(item) for name, item in vars(value).items() if not name.startswith("__")]
        kept = []
        for cell in value.__closure__ or ():
            try:
                kept.append(cell.cell_contents)
            except ValueError:
                # The closure variable is not set yet.
                kept.append(None)
        return [self.of(part) for part in (value.__defaults__, value.__kwdefaults__, kept, value.__dict__)]

    def of_library(self, value):
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        found = None if torch is None else self.of_torch(torch, value)
        return self.of_numpy(numpy, value) if found is None and numpy is not None else found

    def of_torch(self, torch, value):
        if isinstance(value, torch.Tensor):
            self.arrays.append(value)
            try:
                # PyTorch counts in-place changes of a tensor.
                return ("tensor", value.data_ptr(), value._version, tuple(value.shape))
            except Exception:
                return ("tensor", tuple(value.shape))
        if isinstance(value, torch.nn.Module):
            state = [*value.parameters(), *value.buffers()]
            return ("module", value.training, [self.of(tensor) for tensor in state])
        if isinstance(value, torch.Generator):
            return ("generator", bytes(value.get_state().tolist()))
        return None

    def of_numpy(self, numpy, value):
        if isinstance(value, numpy.ndarray):
            self.arrays.append(value)
            self.bytes_left -= value.nbytes
            if self.bytes_left < 0 or value.dtype.hasobject:
                return ("array", value.shape)
            return ("array", value.shape, zlib.crc32(value.tobytes()))
        if isinstance(value, numpy.random.Generator):
            return ("generator", repr(value.bit_generator.state))
        if isinstance(value, numpy.random.RandomState):
            return ("generator", repr(value.get_state()))
        return None


def fingerprint(value):
    return Fingerprint().of(value)


def slots_of(kind):
    """Returns the names of the slots that a Python class defines."""
    slots = vars(kind).get("__slots__", ())
    named = (slots,) if isinstance(slots, str) else tuple(slots)
    hidden = [f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") else name for name in named]
    return [name for name in hidden if not name.endswith("__")]


def memory_of(tensor):
    """Returns the address of a tensor's storage, which its views share; `None` if it has none."""
    try:
        return tensor.untyped_storage().data_ptr() or None
    except Exception:
        return None
