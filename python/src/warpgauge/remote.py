"""Runs a function on a server, as a whole or with its loop in parts."""

from __future__ import annotations

import ast
import asyncio
import copy
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .calls import Call, Seats, call, seats_of
from .capture import Capture
from .errors import ApiError, ArgumentError, Failure, FunctionError, ProtocolError, ServerUnavailableError
from .sources import source_of
from .split import NotSplit, Split, split
from .spread import Chunk, Made, RunWhole, Spread, Tally, failure_of
from .transport import Transport
from .values import applied

# Maximum number of calls whose results are kept for another attempt, and of their bytes.
_MOST_KEPT, _MOST_KEPT_BYTES = 16, 1 << 30


@dataclass(frozen=True)
class Options:
    """Options of a function's calls."""

    cores: int | None = None
    memory: int | None = None
    parallel: bool = True
    most_jobs: int = 8
    seed: int = 0
    timeout: float = 300.0
    pickles: bool = False
    stand_in: bool = True
    asynchronous: bool = False
    # Notes on options of other systems.
    notes: tuple[str, ...] = ()


@dataclass
class Plan:
    """How a function is run: whether its loop is split, and if not, why."""

    name: str
    split: Split | None
    reason: str | None
    # Places of the last run.
    places: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    tally: Tally | None = None

    @property
    def parallel(self) -> bool:
        """Returns whether the loop is split."""
        return self.split is not None and self.reason is None

    def __str__(self) -> str:
        if self.split is not None and self.reason is None:
            count = "" if self.split.count is None else f", {self.split.count} iterations"
            lines = [f"{self.name}: `{self.split.loop}` is split{count}"]
        else:
            lines = [f"{self.name} runs once, on one place of the server: {self.reason}"]
        if self.tally is not None:
            lines.append(f"last run: {self.tally.calls} calls, {self.tally.retries} of them again")
            lines += [f"  {name}: {count} iterations" for name, count in sorted(self.tally.iterations.items())]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


class Kept:
    """Results of calls that did not complete, for another attempt. The oldest are dropped."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, Made] = OrderedDict()

    def take(self, key: str) -> Made:
        return self._made.pop(key, None) or Made()

    def keep(self, key: str, made: Made) -> None:
        if made.results and made.size <= _MOST_KEPT_BYTES:
            self._made[key] = made
        while len(self._made) > _MOST_KEPT or sum(one.size for one in self._made.values()) > _MOST_KEPT_BYTES:
            self._made.popitem(last=False)


def plan_of(function: Any, options: Options) -> Plan:
    """Returns the plan that follows from the source alone, without a request to the server."""
    plan = _plan_of(function, options)
    plan.notes = list(options.notes)
    return plan


def _plan_of(function: Any, options: Options) -> Plan:
    name = getattr(function, "__name__", type(function).__name__)
    if not options.parallel:
        return Plan(name, None, "auto_gpu_parallel is off")
    try:
        definition = source_of(function).definition
        if not isinstance(definition, ast.FunctionDef):
            raise NotSplit("it is no plain function")
        found = split(definition)
    except NotSplit as reason:
        return Plan(name, None, str(reason))
    except Exception as error:
        return Plan(name, None, f"its source cannot be read ({error})")
    if found.count is not None and found.count < 2:
        return Plan(name, found, f"its loop has {found.count} iterations")
    return Plan(name, found, None)


class Remote:
    """Runs functions on one server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.kept = Kept()
        # The secret keeps names of functions unpredictable for other clients.
        self._secret = secrets.token_bytes(16)

    def _wanted(self, function: Any, options: Options, places: Seats, pickled: bool, notes: list[str]) -> Call:
        """Returns the options of a function's calls. On servers that support it they have the name under which idle
        processes wait for the function's next call."""
        wanted = _wanted(options, places, pickled, notes)
        if places.limits.get("max_idle_s"):
            name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
            named = hashlib.blake2b(name.encode("utf-8", "replace"), key=self._secret, digest_size=16)
            wanted.head["again"] = named.hexdigest()
        return wanted

    async def run(self, function: Any, plan: Plan, options: Options, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Calls a function, and records the course of the call in the plan."""
        plan.notes, plan.tally = list(options.notes), None
        # This precedes all requests, so that unsendable values are reported first.
        whole = _program(function, None, options, args, kwargs)
        places = await seats_of(self._transport, options.most_jobs)
        plan.places = tuple(seat.name for seat in places.seats)
        wanted = self._wanted(function, options, places, whole.pickled, plan.notes)
        if whole.changes_globals:
            plan.reason = f"it, or what it calls, assigns to globals: {', '.join(sorted(set(whole.changes_globals)))}"
        if plan.parallel and plan.split is not None:
            try:
                return await self._in_parts(function, plan, plan.split, options, args, kwargs, places, wanted)
            except RunWhole as reason:
                plan.reason = str(reason)
        seat = places.seats[0]
        plan.tally = Tally(1, 0, {})
        program = whole.packed({"do": "once", "seed": options.seed, **whole.root})
        return await self._value(plan, wanted, seat, program)

    async def _in_parts(
        self,
        function: Any,
        plan: Plan,
        found: Split,
        options: Options,
        args: Any,
        kwargs: Mapping[str, Any],
        places: Seats,
        wanted: Call,
    ) -> Any:
        part = _program(function, found.part, options, args, kwargs)

        def packed(chunk: Chunk) -> bytes:
            return part.packed({"do": "part", "seed": options.seed, "ranges": chunk.ranges(), **part.root})

        made, failed = await self._made(plan, places, wanted, packed, _key(packed(Chunk([]))), None)
        if failed:
            failures = [failed[iteration] for iteration in sorted(failed)]
            raise FunctionError(plan.name, failures, len(made.results), made.count)
        if made.count == 0:
            plan.notes.append("the loop has no iterations")
        elif plan.tally is not None and len(plan.tally.iterations) < len(places.seats):
            plan.notes.append("not all places were used: iterations this short, or this few, are not worth more calls")
        effects = [made.results[iteration] for iteration in range(made.count or 0)]
        if found.returned is not None:
            return _joined(found, effects)
        finish = _program(function, found.finish, options, args, kwargs)
        tree = finish.capture.tree(effects, "what the iterations left")
        program = finish.packed({"do": "finish", "seed": options.seed, "effects": tree, **finish.root})
        return await self._value(plan, wanted, places.seats[0], program)

    async def map(self, function: Any, items: Iterable[Any], options: Options, plan: Plan) -> list[Any]:
        """Returns the results of a function for items, in order. An item without a result has a `FunctionError`."""
        capture = Capture(options.pickles)
        entry = capture.entry(function)
        trees = [[index, capture.tree(item, f"item {index}")] for index, item in enumerate(items)]
        if not trees:
            return []
        places = await seats_of(self._transport, options.most_jobs)
        wanted = self._wanted(function, options, places, capture.pickled, plan.notes)

        def packed(chunk: Chunk) -> bytes:
            mine = ["l", [["l", trees[index]] for index in chunk.iterations]]
            return capture.packed({"do": "map", "seed": options.seed, "entry": entry, "items": mine})

        key = _key(packed(Chunk(list(range(len(trees))))))
        try:
            made, failed = await self._made(plan, places, wanted, packed, key, len(trees))
        except RunWhole as reason:
            raise ArgumentError(f"{plan.name} cannot be mapped: {reason}") from None

        def error(index: int) -> FunctionError:
            failure = failed.get(index, Failure(index, "not_made", "it was not begun, since so many others failed"))
            return FunctionError(plan.name, [failure], len(made.results), made.count)

        return [made.results[index] if index in made.results else error(index) for index in range(len(trees))]

    async def _made(
        self,
        plan: Plan,
        places: Seats,
        wanted: Call,
        packed: Any,
        key: str,
        count: int | None,
    ) -> tuple[Made, Mapping[int, Failure]]:
        made = self.kept.take(key)
        if made.results:
            plan.notes.append(f"{len(made.results)} results of an earlier attempt were kept, and not made again")
        if made.count is None:
            made.count = count
        spread = Spread(self._transport, places.seats, wanted, packed, made, plan.name, loop=count is None)
        plan.tally = spread.tally
        try:
            await spread.run()
        except RunWhole:
            raise
        except (Exception, asyncio.CancelledError):
            self.kept.keep(key, made)
            raise
        if spread.failures:
            self.kept.keep(key, made)
        return made, spread.failures

    async def _value(self, plan: Plan, wanted: Call, seat: Any, program: bytes) -> Any:
        """Returns the value of the function from one call, which is retried once if the server became unreachable."""
        for attempt in (0, 1):
            try:
                answer = await call(self._transport, seat, wanted, program)
                break
            except (ServerUnavailableError, ProtocolError, ApiError) as error:
                again = not isinstance(error, ApiError) or error.status in (429, 502, 504)
                if attempt or not again:
                    raise
        if plan.tally is not None and answer.printed:
            plan.tally.printed.append(answer.printed)
        for record in answer.records:
            if "error" in record:
                raise FunctionError(plan.name, [failure_of(record["error"], None)], 0, None)
            if "value" in record:
                return record["value"]
            if isinstance(record.get("whole"), str):
                raise RunWhole(record["whole"])
        failure = Failure(None, answer.status, answer.reason or "it returned nothing", answer.printed[-4096:])
        raise FunctionError(plan.name, [failure], 0, None)


@dataclass
class _Program:
    """A function with its arguments, ready to be packed."""

    capture: Capture
    root: dict[str, Any]

    @property
    def pickled(self) -> bool:
        return self.capture.pickled

    @property
    def changes_globals(self) -> list[str]:
        return self.capture.changes_globals

    def packed(self, root: Mapping[str, Any]) -> bytes:
        return self.capture.packed(root)


def _program(function: Any, changed: ast.FunctionDef | None, options: Options, args: Any, kwargs: Any) -> _Program:
    capture = Capture(options.pickles)
    entry = capture.entry(function, None if changed is None else lambda _: (changed, {}))
    root = {
        "entry": entry,
        "args": capture.tree(tuple(args), "an argument"),
        "kwargs": capture.tree(dict(kwargs), "an argument"),
    }
    return _Program(capture, root)


def _wanted(options: Options, places: Seats, pickled: bool, notes: list[str]) -> Call:
    head: dict[str, Any] = {"format": 1, "timeout": options.timeout, "pickles": pickled}
    if options.memory is not None:
        most = int(places.limits["max_memory_bytes"])
        if options.memory > most:
            notes.append(f"memory: the server gives a call {most} bytes at most, and not {options.memory}")
        head["memory_bytes"] = min(options.memory, most)
    if options.cores is not None:
        head["threads"] = options.cores
    if places.stand_in:
        head["stand_in"] = options.stand_in
        how = "what is sent to a GPU stays there" if options.stand_in else "what is sent to a GPU fails"
        notes.append(f"no GPU: the CPU stands in for one on {len(places.seats)} places, and {how}")
    return Call(head, options.timeout)


def _key(program: bytes) -> str:
    return hashlib.blake2b(program, digest_size=16).hexdigest()


def _joined(found: Split, effects: list[Any]) -> Any:
    """Returns the function's value, computed from the effects of the iterations."""
    values = copy.deepcopy(found.begins)
    try:
        for iteration in effects:
            for name, operation, *operands in iteration:
                values[name] = applied(values[name], operation, operands)
    except Exception as error:
        # The iteration may be one that handles this error itself.
        raise RunWhole(f"the results cannot be joined: {type(error).__name__}: {error}") from None

    def made(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return values[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Dict):
            return {made(key): made(value) for key, value in zip(node.keys, node.values, strict=True) if key}
        assert isinstance(node, (ast.Tuple, ast.List)) and found.returned is not None
        return (tuple if isinstance(node, ast.Tuple) else list)(made(item) for item in node.elts)

    return made(found.returned) if found.returned is not None else None


def with_options(options: Options, **changes: Any) -> Options:
    """Returns the options with those changes that are not `None`."""
    return replace(options, **{name: value for name, value in changes.items() if value is not None})
