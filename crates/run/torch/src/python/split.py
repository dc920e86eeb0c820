# A loop that is split: this process makes some of its iterations, and writes down what each does to what
# lies outside it. Whoever has all of them does the same to the real thing, in order.

import itertools
import time
import zlib

# Most iterations of a loop whose number is not known before it is run through.
MOST_ITERATIONS = 10_000_000


class LoopEnd(Exception):
    """More iterations than are made."""


class NoParts(Exception):
    """The loop cannot be made in parts after all, and why."""


class PartOfLoop:
    """What stands in the function's source in place of a loop, in a process that makes a part of it."""

    # The caller may call something else so.
    slice = slice

    def __init__(self, runner, ranges, seed, watched, records):
        self.runner, self.ranges, self.base, self.watched = runner, ranges, seed, watched
        self.records = records
        self.count = self.iteration = self.began = None
        self.effects = []
        self.before = {}
        # What iterations add to, as it is before the first of them.
        self.results = {}

    def items(self, iterable, names, results):
        """The elements that this process is to take. `names`: what iterations read; `results`: what they add to."""
        self.watched.update(names)
        self.results = results
        for name, value in self.watched.items():
            look = Fingerprint()
            self.before[name] = look.of(value)
            shared = look.shared_with(results)
            if shared is not None:
                raise NoParts(f"`{name}`, which its iterations read, is or holds `{shared}`, which they add to")
        items = elements_of(iterable)
        self.count = len(items)
        if items is not iterable:
            # Taking them changed what gives them.
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
        # Arrays copy what they are given; lists and dictionaries keep it.
        if is_array(self.results[name]):
            value = as_it_is(value)
        self.effects.append((name, "item", as_it_is(key), value))

    def change(self, name, operation, value):
        if operation in ("+", "-", "*"):
            value = as_it_is(value, keeps=not is_array(self.results[name]))
        self.effects.append((name, operation, value))

    def change_item(self, name, operation, value, key):
        value = as_it_is(value, keeps=not is_array(self.results[name]))
        self.effects.append((name, "change_item", as_it_is(key), operation, value))

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
                try:
                    values[name] = applied(values[name], operation, operands)
                except Exception as error:
                    # The iteration may be one that handles this.
                    raise NoParts(f"`{name}` cannot be given what its iterations left: {in_words(error)}") from None
        return tuple(values.values())


def in_words(error):
    return f"{type(error).__name__}: {str(error)[:200]}"


def array_kinds():
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return tuple(kind for kind in (torch and torch.Tensor, numpy and numpy.ndarray) if kind is not None)


def is_array(value):
    return isinstance(value, array_kinds())


def as_it_is(value, keeps=False):
    """A value as it is now: the rest of the iteration may change it. `keeps`: what it holds is kept, not copied."""
    if is_array(value):
        return value.clone() if hasattr(value, "clone") else value.copy()
    if type(value) in (list, tuple):
        return type(value)(value if keeps else [as_it_is(item) for item in value])
    return value


def elements_of(iterable):
    """Something that has a length, and elements by their numbers."""
    if isinstance(iterable, (range, list, tuple, str, bytes)):
        return iterable
    if is_array(iterable) and iterable.ndim > 0:
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
