"""Progress of long calls, as bars of tqdm if that is installed."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from .errors import ArgumentError
from .models import Event
from .report import plain

# Calls that end before this time have no bar, seconds.
_AFTER_S = 0.5
_MOST_LETTERS = 40


class Bar:
    """A bar, which is removed at the end."""

    def __init__(self, tqdm: Callable[..., Any], what: str, total: int | None) -> None:
        self._what = plain(what)[:_MOST_LETTERS]
        self._bar = tqdm(total=total, desc=self._what, leave=False, dynamic_ncols=True)

    def show(self, event: Event) -> None:
        """Shows the progress of a job: points of a sweep, else launches, and the median so far."""
        from .readable import duration_ms, finite

        points = event.get("points")
        if isinstance(points, int):
            self._bar.total = points
        done = event.get("points_done") if isinstance(points, int) else event.get("trials_done")
        if isinstance(done, int):
            self._bar.n = done
        stage = event.get("stage") or event.get("state")
        self._bar.set_description_str(f"{self._what}: {plain(stage)[:_MOST_LETTERS]}", refresh=False)
        median = finite((event.get("statistics") or {}).get("median_ms"))
        self._bar.set_postfix_str(f"median {duration_ms(median)}" if median else "", refresh=False)
        self._bar.refresh()

    def step(self) -> None:
        """Counts one more step as done."""
        self._bar.update(1)

    def close(self) -> None:
        """Removes the bar."""
        self._bar.close()


class Progress:
    """Creates bars, or none if they are not wanted."""

    def __init__(self, wanted: bool | None) -> None:
        self._tqdm: Callable[..., Any] | None = None
        if wanted or (wanted is None and interactive()):
            self._tqdm = _tqdm()
            if self._tqdm is None and wanted:
                raise ArgumentError("progress=True needs tqdm, which is not installed: pip install tqdm")

    def bar(self, what: str, total: int | None) -> Bar | None:
        """Returns a bar, or `None` if bars are not wanted."""
        return None if self._tqdm is None else Bar(self._tqdm, what, total)

    async def along(
        self, call: Awaitable[Any], what: str, total: int | None, events: Callable[[], AsyncIterator[Event]]
    ) -> Any:
        """Returns the result of a call, and shows a bar that follows `events` meanwhile."""
        if self._tqdm is None:
            return await call
        watcher = asyncio.create_task(self._watch(what, total, events))
        try:
            return await call
        finally:
            watcher.cancel()
            # The call reports its errors; an error of the watcher only means that there is no bar.
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch(self, what: str, total: int | None, events: Callable[[], AsyncIterator[Event]]) -> None:
        await asyncio.sleep(_AFTER_S)
        bar = self.bar(what, total)
        if bar is None:
            return
        try:
            async for event in events():
                bar.show(event)
        finally:
            bar.close()


def trials_of(body: Mapping[str, object]) -> int | None:
    """Returns the number of launches that a request asks for, if it has one."""
    trials = body.get("num_trials")
    return trials if isinstance(trials, int) else None


def interactive() -> bool:
    """Returns whether a person sees the output: in a notebook, or with a terminal on standard error."""
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


def _tqdm() -> Callable[..., Any] | None:
    with warnings.catch_warnings():
        # Without ipywidgets the bar of a notebook is text.
        warnings.simplefilter("ignore")
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
    made: Callable[..., Any] = tqdm
    return made
