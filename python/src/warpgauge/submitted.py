"""Calls without waiting, with the names of ClustriX's results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class AsyncJobResult:
    """The result of a call with `async_submit=True`, which runs in the background."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._future: Future[Any] = Future()
        self._future.set_running_or_notify_cancel()
        self._began = time.monotonic()
        self._ended: float | None = None
        # The thread is a daemon, so that the end of the program does not wait for it.
        self._thread = threading.Thread(target=self._run, args=(call,), name="warpgauge-call", daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            value = call()
        except BaseException as error:
            self._ended = time.monotonic()
            self._future.set_exception(error)
        else:
            self._ended = time.monotonic()
            self._future.set_result(value)

    def is_complete(self) -> bool:
        """Returns whether the call has ended."""
        return self._future.done()

    def get_status(self) -> str:
        """Returns `running`, `completed` or `failed`."""
        if not self._future.done():
            return "running"
        return "failed" if self._future.exception() is not None else "completed"

    def get_result(self, timeout: float | None = None) -> Any:
        """Returns the function's value or raises its error. Raises `TimeoutError` after `timeout` seconds."""
        return self._future.result(timeout)

    def wait(self, timeout: float | None = None) -> Any:
        """Does the same as `get_result`."""
        return self.get_result(timeout)

    def get_runtime(self) -> float:
        """Returns the seconds since the call, or until its end."""
        return (self._ended or time.monotonic()) - self._began
