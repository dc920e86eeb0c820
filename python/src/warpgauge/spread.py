"""Distributes iterations of a loop to the free places of a server, until all have run or failed."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .calls import Answer, Call, Seat, call
from .errors import ApiError, Failure, FunctionError, ProtocolError, ServerUnavailableError
from .transport import Transport

# Time of a call beside its computation, seconds: the transfer.
_OVERHEAD_S = 0.01
# Minimum ratio of a chunk's time to the overhead.
_WORTH = 5.0
# Number of failed iterations after which no more are started.
_MOST_FAILURES = 20

Ranges = list[tuple[int, int]]


class RunWhole(Exception):
    """The loop cannot be split after all, for the given reason: the function must run as a whole."""


@dataclass
class Chunk:
    """Iterations that one call makes, in order."""

    iterations: list[int]
    # A place where the chunk failed.
    avoid: Seat | None = None

    def ranges(self) -> Ranges:
        """Returns the iterations as the least number of ranges."""
        found: Ranges = []
        for iteration in self.iterations:
            if found and found[-1][1] == iteration:
                found[-1] = (found[-1][0], iteration + 1)
            else:
                found.append((iteration, iteration + 1))
        return found


@dataclass
class Made:
    """Results so far, which are kept for the next call if some are missing."""

    results: dict[int, Any] = field(default_factory=dict)
    count: int | None = None
    size: int = 0


@dataclass
class Tally:
    """Counts of a distributed loop, for display."""

    calls: int = 0
    retries: int = 0
    iterations: dict[str, int] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)

    def output(self) -> str:
        """Returns the output of the function, without control characters."""
        shown = (letter for text in self.printed for letter in text)
        return "".join(letter for letter in shown if letter.isprintable() or letter in "\n\t")


class Spread:
    """One loop or, without `loop`, one function for many items."""

    def __init__(
        self,
        transport: Transport,
        seats: Sequence[Seat],
        wanted: Call,
        program: Callable[[Chunk], bytes],
        made: Made,
        name: str,
        *,
        loop: bool,
    ) -> None:
        self._loop = loop
        self._transport, self._seats, self._wanted, self._program = transport, seats, wanted, program
        self.made, self.tally, self._name = made, Tally(), name
        self.failures: dict[int, Failure] = {}
        self._printed: list[tuple[int, str]] = []
        self._again: deque[Chunk] = deque()
        self._next: deque[int] = deque()
        self._attempts: dict[int, int] = {}
        self._largest = 1 << 30
        # Time of an iteration, and of a call beside its iterations, seconds; once they are known.
        self._each: float | None = None
        self._before = 0.0
        self._under_way = 0
        self._changed = asyncio.Condition()
        self._begin()

    def _begin(self) -> None:
        if self.made.count is not None:
            self._next = deque(i for i in range(self.made.count) if i not in self.made.results)
        else:
            # The first iteration shows how many there are. As many as there are places run beside it: most loops have
            # that many, and every place has a process then.
            self.made.results.clear()
            self._next = deque(range(len(self._seats)))

    async def run(self) -> None:
        """Runs the missing iterations. `failures` has those that failed."""
        tasks = [asyncio.create_task(self._work(seat)) for seat in self._seats]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, seat: Seat) -> None:
        while True:
            async with self._changed:
                while (chunk := self._take(seat)) is None:
                    if not self._under_way and not self._again and not self._next:
                        return
                    await self._changed.wait()
                self._under_way += 1
            try:
                await self._make(seat, chunk)
            finally:
                async with self._changed:
                    self._under_way -= 1
                    self._changed.notify_all()

    def _take(self, seat: Seat) -> Chunk | None:
        if len(self.failures) >= _MOST_FAILURES:
            self._again.clear()
            self._next.clear()
            return None
        for index, chunk in enumerate(self._again):
            if chunk.avoid != seat or len(self._seats) == 1:
                del self._again[index]
                return chunk
        if not self._next:
            return None
        return Chunk([self._next.popleft() for _ in range(min(self._size(), len(self._next)))])

    def _size(self) -> int:
        if self._each is None:
            return 1
        left, each = len(self._next), max(self._each, 1e-7)
        # Chunks shrink towards the end, so that all places end together, but each stays worth a call.
        fair = math.ceil(left / (2 * len(self._seats)))
        worth = math.ceil(_WORTH * (_OVERHEAD_S + self._before) / each)
        in_time = max(1, int(self._wanted.timeout / 4 / each))
        return max(1, min(max(fair, worth), in_time, self._largest))

    async def _make(self, seat: Seat, chunk: Chunk) -> None:
        self.tally.calls += 1
        try:
            answer = await call(self._transport, seat, self._wanted, self._program(chunk))
        except (ServerUnavailableError, ProtocolError, ApiError) as error:
            if isinstance(error, ApiError) and error.status not in (429, 500, 502, 503, 504):
                raise
            if self.tally.retries == 0 and isinstance(error, ApiError) and error.code == "unmet_requirements":
                raise
            if not self._may_try_again(chunk):
                raise
            self._retry(Chunk(chunk.iterations, seat))
            return
        self._read(seat, chunk, answer)

    def _may_try_again(self, chunk: Chunk) -> bool:
        often = max(self._attempts.get(iteration, 0) for iteration in chunk.iterations)
        for iteration in chunk.iterations:
            self._attempts[iteration] = often + 1
        return often == 0

    def _retry(self, chunk: Chunk) -> None:
        self.tally.retries += 1
        self._again.append(chunk)

    def _read(self, seat: Seat, chunk: Chunk, answer: Answer) -> None:
        if answer.printed:
            self._printed.append((chunk.iterations[0], answer.printed))
            # The output is in the order of the loop, not in that of the answers.
            self.tally.printed = [text for _, text in sorted(self._printed, key=lambda one: one[0])]
        wanted, came = set(chunk.iterations), 0
        count: object = None
        loop_s: float | None = None
        for record in answer.records:
            iteration = record.get("iteration")
            if isinstance(record.get("whole"), str):
                raise RunWhole(record["whole"])
            if "error" in record:
                failure = failure_of(record["error"], iteration if isinstance(iteration, int) else None)
                if failure.code == "not_data" and self._loop and failure.iteration is not None:
                    # Within the function the value may be used without being sent.
                    raise RunWhole(f"iteration {failure.iteration} leaves what does not travel: {failure.message}")
                if failure.iteration is None:
                    raise FunctionError(self._name, [failure], len(self.made.results), self.made.count)
                self.failures[failure.iteration] = failure
            elif isinstance(iteration, int) and iteration in wanted:
                came += 1
                self.made.results[iteration] = record.get("effects", record.get("value"))
            if record.get("changed"):
                names = ", ".join(f"`{name}`" for name in record["changed"][:5])
                raise RunWhole(f"an iteration changed {names}, which other iterations see")
            count = record.get("count", count)
            if isinstance(record.get("loop_s"), float):
                loop_s = record["loop_s"]
        self.made.size += answer.size
        self.tally.iterations[seat.name] = self.tally.iterations.get(seat.name, 0) + came
        self._learn(answer, chunk, count, loop_s)
        missing = [i for i in chunk.iterations if i not in self.made.results and i not in self.failures]
        if self.made.count is not None:
            missing = [i for i in missing if i < self.made.count]
        if answer.status == "ended" and missing:
            if self.made.count is None:
                raise RunWhole("it returns before it comes to the loop")
            raise ProtocolError(f"/functions/calls: an answer without iteration {missing[0]}")
        if missing:
            self._blame(seat, missing, answer)

    def _learn(self, answer: Answer, chunk: Chunk, count: object, loop_s: float | None) -> None:
        if self.made.count is None and isinstance(count, int):
            self.made.count = count
            # Iterations that were started beside the first may not exist.
            self._next = deque([i for i in self._next if i < count] + list(range(len(self._seats), count)))
            self.failures = {i: failure for i, failure in self.failures.items() if i < count}
        if answer.status == "ended" and loop_s is not None:
            # The last chunk is the best estimate: iterations may take longer and longer.
            self._each = loop_s / len(chunk.iterations)
            self._before = max(answer.run_ms / 1e3 - loop_s, 0.0)
        elif self._each is None:
            self._each = self._wanted.timeout

    def _blame(self, seat: Seat, missing: list[int], answer: Answer) -> None:
        """Handles a call that did not end. The first missing iteration was running: it is retried once, alone and at
        another place. Those after it were not started."""
        if answer.status == "too_large" and len(missing) > 1:
            self._largest = max(1, len(missing) // 2)
            for begin in range(0, len(missing), self._largest):
                self._retry(Chunk(missing[begin : begin + self._largest]))
            return
        first, rest = missing[0], missing[1:]
        if self._attempts.get(first, 0) == 0:
            self._attempts[first] = 1
            self._retry(Chunk([first], seat))
        else:
            self.failures[first] = Failure(first, answer.status, answer.reason, answer.printed[-4096:])
        if rest:
            self._again.append(Chunk(rest))
        elif self.made.count is None and first == 0 and first in self.failures:
            failure = self.failures[first]._replace(iteration=None)
            raise FunctionError(self._name, [failure], 0, None)


def failure_of(told: Any, iteration: int | None) -> Failure:
    """Converts a failure that a process reported."""
    told = told if isinstance(told, dict) else {}
    return Failure(
        iteration, str(told.get("code", "raised")), str(told.get("message", "?")), str(told.get("traceback", ""))
    )
