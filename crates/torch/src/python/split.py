# A loop that is split: this process makes some of its iterations, and writes down what each does to what
# lies outside it. Whoever has all of them does the same to the real thing, in order.

import functools
import itertools
import random
import time
import zlib

# Most iterations of a loop whose number is not known before it is run through.
MOST_ITERATIONS = 10_000_000

# What is looked at of values that no iteration may change: as many of them, and bytes of arrays.
MOST_WATCHED = 10_000
MOST_WATCHED_BYTES = 256 << 20

class LoopEnd(Exception):
    """More iterations than are made."""


class PartOfLoop:
    """What stands in the function's source in place of a loop, in a process that makes a part of it."""

    def __init__(self, runner, ranges, seed, watched, records):
        self.runner, self.ranges, self.base, self.watched = runner, ranges, seed, watched
        self.records = records
        self.count = self.iteration = self.began = None
        self.effects = []
        self.before = {}

    def items(self, iterable, names):
        """The elements that this process is to take."""
        items = elements_of(iterable)
        self.count = len(items)
        self.watched.update(names)
        self.before = {name: fingerprint(value) for name, value in self.watched.items()}
        self.began = time.perf_counter()
        for begin, end in self.ranges:
            for self.iteration in range(begin, min(end, self.count)):
                self.runner.seed(seed_of(self.base, self.iteration))
                yield items[self.iteration]

    def __enter__(self):
        self.effects = []

    def __exit__(self, kind, error, traceback):
        if error is not None:
            self.records.failed(error, "raised", self.iteration)
        else:
            self.records.write({"iteration": self.iteration, "effects": self.effects}, self.iteration)
        self.effects = []
        return True

    def append(self, name, value):
        self.effects.append((name, "append", value))

    def extend(self, name, values):
        self.effects.append((name, "extend", list(values)))

    def item(self, name, value, key):
        self.effects.append((name, "item", key, value))

    def change(self, name, operation, value):
        self.effects.append((name, operation, value))

    def change_item(self, name, operation, value, key):
        self.effects.append((name, "change_item", key, operation, value))

    def seconds(self):
        """Time that the iterations took so far; `None`: the loop has not begun."""
        return None if self.began is None else time.perf_counter() - self.began

    def changed(self):
        """Names whose values an iteration changed."""
        return [name for name, before in self.before.items() if fingerprint(self.watched[name]) != before]


class JoinedLoop:
    """What stands there in the process that goes on after the loop."""

    def __init__(self, effects):
        self.effects = effects

    def joined(self, values):
        """Values of the names, in order, as they are after all iterations."""
        for iteration in self.effects:
            for name, operation, *operands in iteration:
                values[name] = applied(values[name], operation, operands)
        return tuple(values.values())


def elements_of(iterable):
    """Something that has a length, and elements by their numbers."""
    if isinstance(iterable, (range, list, tuple, str, bytes)):
        return iterable
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    arrays = tuple(
        kind for kind in (torch and torch.Tensor, numpy and numpy.ndarray) if kind is not None
    )
    if isinstance(iterable, arrays) and iterable.ndim > 0:
        return iterable
    items = list(itertools.islice(iterable, MOST_ITERATIONS + 1))
    if len(items) > MOST_ITERATIONS:
        raise LoopEnd(f"the loop has more than {MOST_ITERATIONS} iterations")
    return items


def seed_of(base, iteration):
    """Depends on nothing but these two, so that it is the same wherever an iteration is made."""
    words = f"{base}:{iteration}".encode()
    low, high = zlib.crc32(words), zlib.crc32(words[::-1] + b"high")
    return (high & 0x7FFFFFFF) << 32 | low


class Fingerprint:
    """What a value is now, to be compared with what it is later."""

    def __init__(self):
        self.left, self.bytes_left = MOST_WATCHED, MOST_WATCHED_BYTES
        self.seen = set()

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
        if kind in (list, tuple):
            return [len(value), [self.of(item) for item in itertools.islice(value, max(self.left, 0))]]
        if kind is dict:
            items = itertools.islice(value.items(), max(self.left, 0))
            return [len(value), [(self.of(key), self.of(item)) for key, item in items]]
        if kind in (set, frozenset):
            return [len(value), sorted(map(hash, value))]
        if kind is bytearray:
            return zlib.crc32(value)
        if isinstance(value, random.Random):
            return value.getstate()
        if isinstance(value, (types.FunctionType, types.MethodType, functools.partial, type)):
            return self.of_code(value)
        if isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
            return None
        own = getattr(value, "__dict__", None)
        return self.of(own) if type(own) is dict else None

    def of_code(self, value):
        """What code keeps from one call to the next: defaults, variables round it, attributes."""
        if isinstance(value, types.MethodType):
            return self.of(value.__self__)
        if isinstance(value, functools.partial):
            return [self.of(part) for part in (value.func, value.args, value.keywords)]
        # Of libraries nothing is looked at.
        if value.__module__ != CALLER:
            return None
        if isinstance(value, type):
            return [self.of(item) for name, item in vars(value).items() if not name.startswith("__")]
        kept = []
        for cell in value.__closure__ or ():
            try:
                kept.append(cell.cell_contents)
            except ValueError:
                # It has no value yet.
                kept.append(None)
        return [self.of(part) for part in (value.__defaults__, value.__kwdefaults__, kept, value.__dict__)]

    def of_library(self, value):
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if isinstance(value, torch.Tensor):
            try:
                # PyTorch counts what is done to a tensor in place.
                return ("tensor", value.data_ptr(), value._version, tuple(value.shape))
            except Exception:
                return ("tensor", tuple(value.shape))
        if isinstance(value, torch.nn.Module):
            state = [*value.parameters(), *value.buffers()]
            return ("module", value.training, [self.of(tensor) for tensor in state])
        if isinstance(value, torch.Generator):
            return ("generator", bytes(value.get_state().tolist()))
        if numpy is None:
            return None
        if isinstance(value, numpy.ndarray):
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
