# A split loop. This process makes some of the iterations, and records the effects of each on
# variables outside the loop. The process that joins the parts applies all effects in order.

import itertools
import time
import zlib

# Maximum number of iterations of a loop whose length is not known in advance.
MOST_ITERATIONS = 10_000_000


class LoopEnd(Exception):
    """The loop has more iterations than allowed."""


class NoParts(Exception):
    """The loop cannot be split; the message gives the reason."""


class PartOfLoop:
    """Replaces a loop in the function's source, in a process that makes a part of the iterations."""

    # A class attribute: the caller's source may redefine the name `slice`.
    slice = slice

    def __init__(self, runner, ranges, seed, watched, records):
        self.runner, self.ranges, self.base, self.watched = runner, ranges, seed, watched
        self.records = records
        self.count = self.iteration = self.began = None
        self.effects = []
        self.before = {}
        # Variables that iterations add to, with their values before the first iteration.
        self.results = {}

    def items(self, iterable, names, results):
        """Yields the elements for this process. `names`: variables that iterations read; `results`: variables
        that they add to."""
        self.watched.update(names)
        self.results = results
        for name, value in self.watched.items():
            look = Fingerprint()
            self.before[name] = look.of(value)
            shared = look.shared_with(results)
            if shared is not None:
                raise NoParts(f"`{name}`, which the iterations read, is or contains `{shared}`, which they add to")
        items = elements_of(iterable)
        self.count = len(items)
        if items is not iterable:
            # Taking the elements changed the iterator, so it needs a new fingerprint.
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
        # Arrays copy an assigned value; lists and dictionaries store a reference.
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
        """Returns the time of the iterations so far, seconds; `None` if the loop has not begun."""
        return None if self.began is None else time.perf_counter() - self.began

    def changed(self):
        """Returns the names of watched variables that an iteration changed."""
        return [name for name, before in self.before.items() if fingerprint(self.watched[name]) != before]


class JoinedLoop:
    """Replaces the loop in the process that continues after it."""

    def __init__(self, effects):
        self.effects = effects

    def joined(self, values):
        """Returns the variables' values after all iterations, in order."""
        for iteration in self.effects:
            for name, operation, *operands in iteration:
                try:
                    values[name] = applied(values[name], operation, operands)
                except Exception as error:
                    # The iteration itself may have handled this exception.
                    raise NoParts(f"`{name}` cannot receive the iterations' effects: {in_words(error)}") from None
        return tuple(values.values())


def in_words(error):
    return f"{type(error).__name__}: {str(error)[:200]}"


def array_kinds():
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return tuple(kind for kind in (torch and torch.Tensor, numpy and numpy.ndarray) if kind is not None)


def is_array(value):
    return isinstance(value, array_kinds())


def as_it_is(value, keeps=False):
    """Returns a snapshot of a value that the iteration may change later. `keeps`: items are shared, not
    copied."""
    if is_array(value):
        return value.clone() if hasattr(value, "clone") else value.copy()
    if type(value) in (list, tuple):
        return type(value)(value if keeps else [as_it_is(item) for item in value])
    return value


def elements_of(iterable):
    """Returns a sequence of the elements."""
    if isinstance(iterable, (range, list, tuple, str, bytes)):
        return iterable
    if is_array(iterable) and iterable.ndim > 0:
        return iterable
    items = list(itertools.islice(iterable, MOST_ITERATIONS + 1))
    if len(items) > MOST_ITERATIONS:
        raise LoopEnd(f"the loop has more than {MOST_ITERATIONS} iterations")
    return items


def seed_of(base, iteration):
    """Returns a seed that depends only on the arguments, so that it is the same in every process."""
    words = f"{base}:{iteration}".encode()
    low, high = zlib.crc32(words), zlib.crc32(words[::-1] + b"high")
    return (high & 0x7FFFFFFF) << 32 | low
