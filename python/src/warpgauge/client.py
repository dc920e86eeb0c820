"""The client for programs without asyncio, which runs `AsyncClient` on an event loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from .async_client import AsyncClient
from .async_job import AsyncJob
from .errors import WarpgaugeError
from .models import CancelReport, Event, GateReport, JobKind, JobView
from .report import ComparisonReport, Report, SweepReport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import CompareFields, EvaluateFields, FunctionFields, MapFields, SubmitFields, SweepFields

T = TypeVar("T")

# Maximum wait for the cancellation of pending calls, after Ctrl-C.
_CANCEL_S = 10.0


class _Loop:
    """An event loop in a daemon thread. Notebooks have a loop in the main thread, so this one is separate."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="warpgauge", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns the result. After an interruption the task is cancelled and has ended when this raises."""
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("the client is closed")
        ended = threading.Event()
        started: list[asyncio.Task[T]] = []

        def begin() -> None:
            task = self._loop.create_task(coroutine)
            task.add_done_callback(lambda _: ended.set())
            started.append(task)

        self._loop.call_soon_threadsafe(begin)
        try:
            ended.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: started[0].cancel())
            ended.wait(_CANCEL_S)
            raise
        return started[0].result()

    @property
    def closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        """Cancels pending calls and ends the thread."""
        if self.closed:
            return
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class Client:
    """A server of warpgauge, for programs without asyncio. See `AsyncClient` for every argument.

    Threads may share a client. A child of `fork` needs a new client.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        patience: float = 120.0,
        wait_for_server: float = 0.0,
        max_answer_bytes: int = 1 << 30,
        connections: int = 128,
        progress: bool | None = None,
    ) -> None:
        self._client = AsyncClient(
            url,
            api_key=api_key,
            patience=patience,
            wait_for_server=wait_for_server,
            max_answer_bytes=max_answer_bytes,
            connections=connections,
            progress=progress,
        )
        self._loop = _Loop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and ends the thread."""
        if not self._loop.closed:
            try:
                self._loop.run(_cancel_others())
                self._loop.run(self._client.aclose())
            finally:
                self._loop.close()

    def evaluate(
        self,
        kernel: object,
        args: Mapping[str, object] | Sequence[object] | None = None,
        *,
        launch: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
        outputs: Sequence[str] = (),
        constants: Mapping[str, object] | None = None,
        expected: Mapping[str, object] | None = None,
        reference: object = None,
        setup: Sequence[Mapping[str, object]] = (),
        label: str | None = None,
        priority: int | None = None,
        **more: Unpack[EvaluateFields],
    ) -> Report:
        """Compiles, runs, checks and times a kernel."""
        evaluated = self._client.evaluate(
            kernel, args, launch=launch, outputs=outputs, constants=constants, expected=expected,
            reference=reference, setup=setup, label=label, priority=priority, **more,
        )  # fmt: skip
        return self._loop.run(evaluated)

    def compare(
        self,
        reference: object,
        candidates: object = None,
        args: Mapping[str, object] | Sequence[object] | None = None,
        *,
        launch: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
        outputs: Sequence[str] = (),
        constants: Mapping[str, object] | None = None,
        label: str | None = None,
        priority: int | None = None,
        **more: Unpack[CompareFields],
    ) -> ComparisonReport:
        """Times kernels side by side with a reference, which may be a contract."""
        compared = self._client.compare(
            reference, candidates, args, launch=launch, outputs=outputs, constants=constants,
            label=label, priority=priority, **more,
        )  # fmt: skip
        return self._loop.run(compared)

    def sweep(
        self,
        kernel: object,
        args: Mapping[str, object] | Sequence[object] | None = None,
        *,
        axes: Mapping[str, Sequence[object]] | None = None,
        label: str | None = None,
        priority: int | None = None,
        **more: Unpack[SweepFields],
    ) -> SweepReport:
        """Evaluates a contract at every combination of the values of `axes`."""
        swept = self._client.sweep(kernel, args, axes=axes, label=label, priority=priority, **more)
        return self._loop.run(swept)

    def gate(self, suite: Mapping[str, object], *, label: str | None = None) -> GateReport:
        """Runs a suite against its baselines."""
        return self._loop.run(self._client.gate(suite, label=label))

    def submit(
        self,
        kernel: object,
        args: Mapping[str, object] | Sequence[object] | None = None,
        *,
        kind: JobKind = "evaluate",
        label: str | None = None,
        priority: int | None = None,
        idempotency_key: str | None = None,
        **more: Unpack[SubmitFields],
    ) -> Job:
        """Submits a job without waiting for it."""
        submitted = self._client.submit(
            kernel, args, kind=kind, label=label, priority=priority, idempotency_key=idempotency_key, **more
        )
        return Job(self._loop, self._loop.run(submitted))

    def job(self, job_id: str) -> Job:
        """Returns a job that was submitted before."""
        return Job(self._loop, self._client.job(job_id))

    @overload
    def map(
        self,
        kernels: Iterable[object],
        args: Mapping[str, object] | Iterable[object] | None = None,
        *,
        concurrency: int = 32,
        errors: Literal["raise"] = "raise",
        **common: Unpack[MapFields],
    ) -> Iterator[Report]: ...

    @overload
    def map(
        self,
        kernels: Iterable[object],
        args: Mapping[str, object] | Iterable[object] | None = None,
        *,
        concurrency: int = 32,
        errors: Literal["return"],
        **common: Unpack[MapFields],
    ) -> Iterator[Report | WarpgaugeError]: ...

    @overload
    def map(
        self,
        kernels: Callable[[Any], object],
        args: Iterable[object],
        *,
        concurrency: int = 32,
        errors: Literal["raise", "return"] = "raise",
        **common: Unpack[FunctionFields],
    ) -> Iterator[Any]: ...

    def map(
        self,
        kernels: Iterable[object] | Callable[[Any], object],
        args: Mapping[str, object] | Iterable[object] | None = None,
        *,
        concurrency: int = 32,
        errors: Literal["raise", "return"] = "raise",
        **common: Any,
    ) -> Iterator[Any]:
        """Evaluates kernels, at most `concurrency` at once, and yields reports in order.

        With a function in place of kernels it yields the function's results for the items in the second argument,
        computed on the server.
        """
        reports: AsyncIterator[Any] = self._client.map(
            cast(Any, kernels), args, concurrency=concurrency, errors=cast(Any, errors), **common
        )
        return _drain(self._loop, reports)

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Calls an operation of the HTTP API that has no method here. The operation must be one that may be
        repeated."""
        return self._loop.run(self._client.call(method, path, body))

    def _run_function(self, function: Any, plan: Any, options: Any, args: Any, kwargs: Any) -> Any:
        """Runs a function for `@cluster`."""
        return self._loop.run(self._client._remote.run(function, plan, options, args, kwargs))

    def info(self) -> dict[str, Any]:
        """Returns facts about the server: version, devices, compilers, queue."""
        return self._loop.run(self._client.info())

    def capabilities(self) -> dict[str, Any]:
        """Returns what the server can do, and the reasons for what it cannot do."""
        return self._loop.run(self._client.capabilities())


def _drain(loop: _Loop, source: AsyncIterator[T]) -> Iterator[T]:
    """Returns an iterator over an asynchronous iterator, which is closed when the iterator ends for any reason."""

    async def step() -> tuple[bool, Any]:
        try:
            return True, await source.__anext__()
        except StopAsyncIteration:
            return False, None

    async def close() -> None:
        await source.aclose()  # type: ignore[attr-defined]

    try:
        while True:
            more, value = loop.run(step())
            if not more:
                return
            yield value
    finally:
        if not loop.closed:
            loop.run(close())


class Job:
    """A job at the server. It runs to its end, independently of this object."""

    def __init__(self, loop: _Loop, job: AsyncJob) -> None:
        self._loop, self._job, self.id = loop, job, job.id

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    def status(self) -> JobView:
        """Returns the state of the job, with the report once it has ended."""
        return self._loop.run(self._job.status())

    def wait(self, timeout: float | None = None) -> Report | ComparisonReport | SweepReport:
        """Returns the report, once there is one. Raises `TimeoutError` after `timeout` seconds; the job continues."""
        return self._loop.run(self._job.wait(timeout))

    def events(self) -> Iterator[Event]:
        """Yields events up to the last, whose name is `end`."""
        return _drain(self._loop, self._job.events())

    def cancel(self) -> CancelReport:
        """Cancels the job and kills its processes."""
        return self._loop.run(self._job.cancel())
