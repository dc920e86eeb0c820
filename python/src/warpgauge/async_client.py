"""The client for asyncio: `AsyncClient`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from .async_job import AsyncJob
from .comparison import compare_request
from .contract import Request, build, load
from .errors import ArgumentError, FunctionError, ProtocolError, WarpgaugeError
from .kernels import is_contract
from .models import Event, GateReport, JobKind
from .progress import Progress, trials_of
from .report import ComparisonReport, Report, SweepReport
from .transport import Settings, Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import CompareFields, EvaluateFields, FunctionFields, MapFields, SubmitFields, SweepFields

# Maximum time in which a cancelled call cancels its job.
_CANCEL_S = 5.0
# Interval of looking up the job whose progress is shown.
_LOOK_S = 0.5


class AsyncClient:
    """A server of warpgauge. One client serves any number of tasks and event loops.

    `url` and `api_key` default to the variables WARPGAUGE_SERVER (else http://127.0.0.1:8000) and WARPGAUGE_API_KEY.
    If no server answers at the address, a call fails at once, or after `wait_for_server` seconds. A server that has
    answered before may be full, absent or restarting; then the client retries for `patience` seconds. A retry refers
    to the same job, which runs once. An answer may have `max_answer_bytes`.

    `progress` shows bars of tqdm for calls that take longer than half a second. By default it does so in notebooks and
    terminals where tqdm is installed.
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
        url = url or os.environ.get("WARPGAUGE_SERVER") or "http://127.0.0.1:8000"
        if not url.startswith(("http://", "https://")):
            raise ArgumentError(f"{url!r} is no URL of a server; it begins with http:// or https://")
        key = api_key or os.environ.get("WARPGAUGE_API_KEY") or None
        settings = Settings(url.rstrip("/"), key, patience, max_answer_bytes, connections, wait_for_server)
        self._transport = Transport(settings)
        self._functions: Any = None
        self._progress = Progress(progress)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def evaluate(
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
        """Compiles, runs, checks and times a kernel.

        `kernel` is source, a path, a `@triton.jit` function, a `Kernel`, or a whole contract (a dict, or the path of a
        YAML or JSON file). `args` are arrays and scalars by name, in the order of the parameters. Arguments that are
        named in `outputs`, or wrapped in `Out` or `InOut`, are written, and `report.outputs` has them afterwards.

        `launch` is one launch, or a list of steps for several launches, which `setup` may precede. `expected` has
        arrays or kernels by output; `reference` is a kernel that computes all of them. Any field of a contract may be
        given as well: `tolerance`, `num_trials`, `work`, `profile`, `timeout`, …
        """
        return await self._evaluate(
            kernel, args, self._progress, launch=launch, outputs=outputs, constants=constants, expected=expected,
            reference=reference, setup=setup, label=label, priority=priority, **more,
        )  # fmt: skip

    async def _evaluate(
        self,
        kernel: object,
        args: Mapping[str, object] | Sequence[object] | None,
        progress: Progress | None,
        *,
        label: str | None = None,
        priority: int | None = None,
        **more: Any,
    ) -> Report:
        request = build(kernel, args, **more)
        return Report(await self._job("/evaluate", request.body, label, priority, progress), request.kinds)

    async def compare(
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
        """Times kernels side by side with a reference: one, a list, or a dict by name; at most six.

        `reference` may be a contract as for `evaluate`. Then its kernel is the reference, and its outputs are expected
        of the others. Candidates that are only code get the launch and options of the reference. A candidate may be a
        contract, too; then its kernel keeps its launch. The names of candidates in files are those of the files.
        """
        request = compare_request(reference, candidates, args, launch=launch, outputs=outputs,
                                  constants=constants, **more)  # fmt: skip
        answer = await self._job("/compare", request.body, label, priority, self._progress)
        return ComparisonReport(cast(Any, answer), request.kinds, request.notes)

    async def sweep(
        self,
        kernel: object,
        args: Mapping[str, object] | Sequence[object] | None = None,
        *,
        axes: Mapping[str, Sequence[object]] | None = None,
        label: str | None = None,
        priority: int | None = None,
        **more: Unpack[SweepFields],
    ) -> SweepReport:
        """Evaluates a contract at every combination of the values of `axes`; texts refer to the axes as `$name`."""
        request = sweep_request(kernel, args, axes=axes, **more)
        answer = await self._job("/sweep", request.body, label, priority, self._progress)
        return SweepReport(cast(Any, answer))

    async def gate(self, suite: Mapping[str, object], *, label: str | None = None) -> GateReport:
        """Runs a suite against its baselines: the body of `POST /gate`."""
        return cast(GateReport, await self._job("/gate", dict(suite), label, None, self._progress, "verdict"))

    async def submit(
        self,
        kernel: object,
        args: Mapping[str, object] | Sequence[object] | None = None,
        *,
        kind: JobKind = "evaluate",
        label: str | None = None,
        priority: int | None = None,
        idempotency_key: str | None = None,
        **more: Unpack[SubmitFields],
    ) -> AsyncJob:
        """Submits a job without waiting for it. The arguments are those of `evaluate`.

        For a comparison or a sweep, give `kind`, and a whole request in place of the kernel.
        """
        evaluated = kind == "evaluate"
        request = build(kernel, args, **more) if evaluated else Request({**load(kernel), **more}, {})
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        params = {"wait": "false", **_params(label, priority)}
        answer = await self._transport.call("POST", f"/{kind}", request.body, params=params, headers=headers)
        if not isinstance(job_id := answer.get("job_id"), str):
            raise ProtocolError(f"/{kind}: an answer without `job_id`: is the server of another version?")
        return AsyncJob(self._transport, job_id, request.kinds, self._progress)

    def job(self, job_id: str) -> AsyncJob:
        """Returns a job that was submitted before."""
        if not job_id or not all(c.isalnum() or c in "-_" for c in job_id):
            raise ArgumentError(f"{job_id!r} is no job's id")
        return AsyncJob(self._transport, job_id, {}, self._progress)

    @overload
    def map(
        self,
        kernels: Iterable[object],
        args: Mapping[str, object] | Iterable[object] | None = None,
        *,
        concurrency: int = 32,
        errors: Literal["raise"] = "raise",
        **common: Unpack[MapFields],
    ) -> AsyncIterator[Report]: ...

    @overload
    def map(
        self,
        kernels: Iterable[object],
        args: Mapping[str, object] | Iterable[object] | None = None,
        *,
        concurrency: int = 32,
        errors: Literal["return"],
        **common: Unpack[MapFields],
    ) -> AsyncIterator[Report | WarpgaugeError]: ...

    @overload
    def map(
        self,
        kernels: Callable[[Any], object],
        args: Iterable[object],
        *,
        concurrency: int = 32,
        errors: Literal["raise", "return"] = "raise",
        **common: Unpack[FunctionFields],
    ) -> AsyncIterator[Any]: ...

    async def map(
        self,
        kernels: Iterable[object] | Callable[[Any], object],
        args: Mapping[str, object] | Iterable[object] | None = None,
        *,
        concurrency: int = 32,
        errors: Literal["raise", "return"] = "raise",
        **common: Any,
    ) -> AsyncIterator[Any]:
        """Evaluates kernels, or whole contracts, at most `concurrency` at once, and yields reports in order.

        Kernels are taken from the iterable as needed: at most four times `concurrency` are in progress or wait to be
        read. An error ends the iteration; with `errors="return"` it takes the place of the report. A caller that stops
        early cancels the evaluations in progress.

        With a function in place of kernels this yields the function's results for the items in the second argument,
        computed on the server's places (docs/cluster.md). Then `common` may be `cores`, `memory`, `timeout`, `seed`,
        `pickles`, `stand_in`.
        """
        if callable(kernels) and not isinstance(kernels, Iterable):
            for value in await self._map_function(kernels, args, concurrency, errors, common):
                yield value
            return
        if not isinstance(kernels, Iterable):
            raise ArgumentError("map takes kernels, or a function and items")
        if concurrency < 1:
            raise ArgumentError("concurrency must be at least 1")
        turn = asyncio.Semaphore(concurrency)
        bar = self._progress.bar("map", len(kernels) if isinstance(kernels, Sized) else None)

        async def one(kernel: object) -> Report | WarpgaugeError:
            async with turn:
                try:
                    given = None if is_contract(kernel) else cast(Any, args)
                    return await self._evaluate(kernel, given, None, **cast(Any, common))
                except WarpgaugeError as error:
                    if errors == "raise":
                        raise
                    return error
                finally:
                    if bar is not None:
                        bar.step()

        tasks: deque[asyncio.Task[Report | WarpgaugeError]] = deque()
        source, more = iter(kernels), True
        try:
            while more or tasks:
                while more and len(tasks) < 4 * concurrency:
                    try:
                        tasks.append(asyncio.create_task(one(next(source))))
                    except StopIteration:
                        more = False
                if tasks:
                    # This does not await the task itself: a cancellation would cancel that task alone, and give its
                    # turn to the next before the others are cancelled.
                    await asyncio.wait({tasks[0]})
                    yield tasks.popleft().result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if bar is not None:
                bar.close()

    async def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Calls an operation of the HTTP API that has no method here. The operation must be one that may be
        repeated."""
        return await self._transport.call(method, path, body)

    async def _map_function(
        self, function: Any, items: Any, concurrency: int, errors: str, common: Mapping[str, Any]
    ) -> list[Any]:
        from .decorator import bytes_of
        from .remote import Options, Plan, with_options

        known = {"cores", "memory", "timeout", "seed", "pickles", "stand_in"}
        if unknown := set(common) - known:
            raise ArgumentError(f"map of a function takes {', '.join(sorted(known))}, and not {min(unknown)!r}")
        if not isinstance(items, Iterable):
            raise ArgumentError("map of a function needs the items: map(function, items)")
        given = {**common, **({"memory": bytes_of(common["memory"])} if common.get("memory") else {})}
        options = with_options(Options(most_jobs=concurrency), **given)
        plan = Plan(getattr(function, "__name__", "the function"), None, None)
        try:
            values: list[Any] = await self._remote.map(function, items, options, plan)
        finally:
            if plan.tally is not None:
                sys.stdout.write(plan.tally.output())
        if errors == "raise":
            failed = [value.failures[0] for value in values if isinstance(value, FunctionError)]
            if failed:
                raise FunctionError(plan.name, failed, len(values) - len(failed), len(values))
        return values

    @property
    def _remote(self) -> Any:
        """Returns the access to functions on the server."""
        if self._functions is None:
            from .remote import Remote

            self._functions = Remote(self._transport)
        return self._functions

    async def info(self) -> dict[str, Any]:
        """Returns facts about the server: version, devices, compilers, queue."""
        return await self._transport.call("GET", "/info")

    async def capabilities(self) -> dict[str, Any]:
        """Returns what the server can do, and the reasons for what it cannot do."""
        return await self._transport.call("GET", "/capabilities")

    async def _job(
        self,
        path: str,
        body: Mapping[str, object],
        label: str | None,
        priority: int | None,
        progress: Progress | None,
        needed: str = "status",
    ) -> Any:
        """Sends an operation and waits for its answer. Repeated requests refer to the same job."""
        key = str(uuid.uuid4())
        params, headers = _params(label, priority), {"Idempotency-Key": key}
        call = self._transport.call("POST", path, body, params=params, headers=headers)
        if progress is not None:
            name = label or path.strip("/")
            call = progress.along(call, name, trials_of(body), lambda: self._events_of(key))
        try:
            answer = await call
        except asyncio.CancelledError:
            # A job with a key continues without its caller, so this cancels it.
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._cancel(key), _CANCEL_S)
            raise
        if needed not in answer or "job_id" not in answer:
            raise ProtocolError(
                f"{path}: an answer without `{needed}` or `job_id`: is the server of another version? "
                "`client.info()` tells which"
            )
        return answer

    async def _events_of(self, key: str) -> AsyncIterator[Event]:
        """Yields events of the job with this key, once the server has it."""
        while True:
            listed = await self._transport.call("GET", "/jobs", params={"idempotency_key": key})
            if jobs := listed.get("jobs"):
                break
            await asyncio.sleep(_LOOK_S)
        async for event in self.job(str(jobs[0]["job_id"])).events():
            yield event

    async def _cancel(self, key: str) -> None:
        # The request may still be in transit when its caller is cancelled.
        for delay in (0.0, 0.02, 0.1, 0.5):
            await asyncio.sleep(delay)
            listed = await self._transport.call("GET", "/jobs", params={"idempotency_key": key})
            if jobs := listed.get("jobs"):
                await self._transport.call("DELETE", f"/jobs/{jobs[0]['job_id']}")
                return


def _params(label: str | None, priority: int | None) -> dict[str, str]:
    params = {} if label is None else {"label": label}
    return params if priority is None else {**params, "priority": str(priority)}


def sweep_request(
    kernel: object,
    args: Mapping[str, object] | Sequence[object] | None,
    *,
    axes: Mapping[str, Sequence[object]] | None,
    **more: Any,
) -> Request:
    """Returns the body of a sweep. Sweeps return no outputs."""
    body = dict(build(kernel, args, **more).body)
    body.pop("return_outputs", None)
    if axes is not None:
        body["axes"] = {name: list(values) for name, values in axes.items()}
    if "axes" not in body:
        raise ArgumentError("a sweep needs `axes`: names with their values")
    return Request(body, {})
