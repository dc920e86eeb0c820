"""`@cluster`: runs functions on a server, and their loops on all of its devices."""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from .clustrix import notes_of, seconds_of
from .errors import ArgumentError
from .remote import Options, Plan, plan_of, with_options
from .submitted import AsyncJobResult

P = ParamSpec("P")
R = TypeVar("R")

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


class _Settings:
    """Settings of `configure`, for all functions of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: str | None = None
        self.api_key: str | None = None
        self.options = Options()
        self.client: Any = None


_SETTINGS = _Settings()


def configure(
    *,
    server: str | None = None,
    api_key: str | None = None,
    auto_gpu_parallel: bool | None = None,
    max_gpu_parallel_jobs: int | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    pickles: bool | None = None,
    stand_in: bool | None = None,
    auto_parallel: bool | None = None,
    async_submit: bool | None = None,
    default_cores: int | None = None,
    default_memory: int | str | None = None,
    default_time: str | float | None = None,
    **others: Any,
) -> None:
    """Sets options for all functions. Options that are not given keep their values.

    `server` and `api_key` are those of `Client`. `timeout` is the maximum time of a call, seconds. The random numbers
    of an iteration follow from `seed` and its number. `pickles` allows pickled objects in place of data, which the
    server must allow, too. `stand_in` is whether, on a server without GPUs, tensors that are sent to a GPU stay on the
    CPU. `auto_parallel` and `async_submit` are `parallel` and `async_submit` of `cluster`, `default_…` its `cores`,
    `memory` and `time`. Other options of ClustriX's configuration are accepted, and a warning says what they mean.
    """
    known = ["server", "api_key", "auto_gpu_parallel", "max_gpu_parallel_jobs", "timeout", "seed", "pickles",
             "stand_in", "auto_parallel", "async_submit", "default_cores", "default_memory",
             "default_time"]  # fmt: skip
    notes = notes_of("configure", others, known)
    parallel = _parallel(auto_gpu_parallel, auto_parallel)
    if timeout is None and default_time is not None:
        timeout = seconds_of(default_time)
    if max_gpu_parallel_jobs is not None and max_gpu_parallel_jobs < 1:
        raise ArgumentError("max_gpu_parallel_jobs must be at least 1")
    if timeout is not None and not timeout > 0:
        raise ArgumentError("timeout must be more than 0 seconds")
    with _SETTINGS.lock:
        if server is not None or api_key is not None:
            _SETTINGS.server = server if server is not None else _SETTINGS.server
            _SETTINGS.api_key = api_key if api_key is not None else _SETTINGS.api_key
            old, _SETTINGS.client = _SETTINGS.client, None
            if old is not None:
                old.close()
        before = _SETTINGS.options.notes
        _SETTINGS.options = with_options(
            _SETTINGS.options, parallel=parallel, most_jobs=max_gpu_parallel_jobs, timeout=timeout, seed=seed,
            pickles=pickles, stand_in=stand_in, asynchronous=async_submit, cores=default_cores,
            memory=None if default_memory is None else bytes_of(default_memory),
            notes=(*before, *(note for note in notes if note not in before)),
        )  # fmt: skip


def _parallel(*given: bool | None) -> bool | None:
    """Returns whether a loop is split: unless an option that decides it is false."""
    said = [one for one in given if one is not None]
    return all(said) if said else None


def _client() -> Any:
    from .client import Client

    with _SETTINGS.lock:
        if _SETTINGS.client is None:
            _SETTINGS.client = Client(_SETTINGS.server, api_key=_SETTINGS.api_key)
        return _SETTINGS.client


class ClusterFunction(Generic[P, R]):
    """A function that runs on a server. A call waits for its value, except with `async_submit`."""

    def __init__(self, function: Callable[P, R], given: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._warpgauge_function = function
        self._given = given
        self._plan: Plan | None = None

    def _options(self) -> Options:
        common = _SETTINGS.options
        return with_options(common, **{**self._given, "notes": (*common.notes, *self._given["notes"])})

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Binds the instance of a method, which is sent to the server like an argument."""
        return self if instance is None else ClusterMethod(self, instance)

    @property
    def plan(self) -> Plan:
        """Returns how the function is run, and how its last call went."""
        if self._plan is None:
            self._plan = plan_of(self._warpgauge_function, self._options())
        return self._plan

    def explain(self) -> str:
        """Returns the plan in words: whether the loop is split and, if not, why."""
        return str(self.plan)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        options = self._options()
        plan = self._plan = plan_of(self._warpgauge_function, options)
        if options.asynchronous:
            return AsyncJobResult(lambda: self._run(plan, options, args, kwargs))  # type: ignore[return-value]
        return self._run(plan, options, args, kwargs)

    def _run(self, plan: Plan, options: Options, args: Any, kwargs: Any) -> R:
        try:
            value: R = _client()._run_function(self._warpgauge_function, plan, options, args, kwargs)
            return value
        finally:
            # The output of the function is printed here, even if it raised.
            if plan.tally is not None:
                sys.stdout.write(plan.tally.output())

    def local(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function in this process, without the server."""
        return self._warpgauge_function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<cluster function {getattr(self, '__qualname__', '?')}>"


class ClusterMethod:
    """A method that runs on a server, bound to an instance."""

    def __init__(self, function: ClusterFunction[Any, Any], instance: object) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function, self._instance = function, instance

    @property
    def plan(self) -> Plan:
        """Returns how the method is run, and how its last call went."""
        return self._function.plan

    def explain(self) -> str:
        """Returns the plan in words."""
        return self._function.explain()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(self._instance, *args, **kwargs)

    def local(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the method in this process, without the server."""
        return self._function.local(self._instance, *args, **kwargs)


@overload
def cluster(function: Callable[P, R], /) -> ClusterFunction[P, R]: ...
@overload
def cluster(
    *,
    cores: int | None = None,
    memory: int | str | None = None,
    auto_gpu_parallel: bool | None = None,
    max_gpu_parallel_jobs: int | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    pickles: bool | None = None,
    time: str | float | None = None,
    parallel: bool | None = None,
    async_submit: bool | None = None,
    **others: Any,
) -> Callable[[Callable[P, R]], ClusterFunction[P, R]]: ...
def cluster(
    function: Any = None,
    /,
    *,
    cores: int | None = None,
    memory: int | str | None = None,
    auto_gpu_parallel: bool | None = None,
    max_gpu_parallel_jobs: int | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    pickles: bool | None = None,
    time: str | float | None = None,
    parallel: bool | None = None,
    async_submit: bool | None = None,
    **others: Any,
) -> Any:
    """Runs a function on a server, and the iterations of its loop on all of the server's devices.

    `cores` is the number of threads of each call, and `memory` what each may allocate (`"8GB"`, or bytes). `time` is a
    `timeout` in the form of batch systems (`"01:00:00"`). `parallel=False`, like `auto_gpu_parallel=False`, leaves the
    loop whole. With `async_submit` a call returns an `AsyncJobResult` at once. Other options of ClustriX (`partition`,
    `queue`, `environment`, …) are accepted, and a warning says what they mean. All other options are those of
    `configure`, for this function alone.
    """
    known = ["cores", "memory", "auto_gpu_parallel", "max_gpu_parallel_jobs", "timeout", "seed", "pickles", "time",
             "parallel", "async_submit"]  # fmt: skip
    notes = notes_of("cluster", others, known)
    if timeout is None and time is not None:
        timeout = seconds_of(time)
    if cores is not None and cores < 1:
        raise ArgumentError("cores must be at least 1")
    if max_gpu_parallel_jobs is not None and max_gpu_parallel_jobs < 1:
        raise ArgumentError("max_gpu_parallel_jobs must be at least 1")
    given = {
        "cores": cores, "memory": None if memory is None else bytes_of(memory),
        "parallel": _parallel(auto_gpu_parallel, parallel), "most_jobs": max_gpu_parallel_jobs, "timeout": timeout,
        "seed": seed, "pickles": pickles, "asynchronous": async_submit, "notes": notes,
    }  # fmt: skip
    if function is not None:
        return ClusterFunction(function, given)
    return lambda decorated: ClusterFunction(decorated, given)


cluster._is_warpgauge_cluster = True  # type: ignore[attr-defined]


def bytes_of(memory: int | str) -> int:
    """Returns the bytes of `"8GB"`, `"512 MiB"` or a number."""
    if isinstance(memory, int):
        found = memory
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", memory, re.IGNORECASE)
        if match is None:
            raise ArgumentError(f"memory {memory!r} is none: write 8GB, 512MiB, or bytes")
        unit = (match[2] or "").lower()
        found = int(float(match[1]) * (_BINARY.get(unit) or _UNITS[unit]))
    if found < 1:
        raise ArgumentError("memory must be more than 0 bytes")
    return found
