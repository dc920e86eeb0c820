"""A job at the server, for asyncio: `AsyncJob`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import cast

from .errors import ApiError, JobFailedError, ProtocolError
from .event_stream import EventParser
from .models import CancelReport, Event, JobView
from .progress import Progress
from .report import ComparisonReport, Report, SweepReport
from .transport import Patience, Transport

_ENDED = ("completed", "failed", "cancelled", "timed_out")


class AsyncJob:
    """A job at the server. It runs to its end, independently of this object."""

    def __init__(self, transport: Transport, job_id: str, kinds: Mapping[str, str], progress: Progress) -> None:
        self.id = job_id
        self._progress = progress
        self._transport, self._kinds = transport, kinds

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def status(self) -> JobView:
        """Returns the state of the job, with the report once it has ended."""
        view = await self._transport.call("GET", f"/jobs/{self.id}")
        if "state" not in view:
            raise ProtocolError(f"/jobs/{self.id}: an answer without `state`: is the server of another version?")
        return cast(JobView, view)

    async def events(self) -> AsyncIterator[Event]:
        """Yields events up to the last, whose name is `end`, and continues after restarts of the server."""
        import httpx

        parser, patience = EventParser(), Patience(self._transport.settings.patience_s)
        while True:
            retry_after: float | None = None
            problem: Exception
            try:
                path = f"/jobs/{self.id}/events"
                async with self._transport.events(path, parser.last_id) as pieces:
                    async for piece in pieces:
                        patience.reset()
                        for event in parser.feed(piece):
                            yield event
                            if event["event"] == "end":
                                return
                # Streams end when the server shuts down.
                problem = ConnectionError("the stream ended before the job")
            except httpx.TransportError as failure:
                problem = failure
            except ApiError as error:
                if error.status not in (429, 502, 503, 504):
                    raise
                problem = error
            parser = EventParser(parser.last_id)
            await self._transport._pause(patience, retry_after, problem)

    async def wait(self, timeout: float | None = None) -> Report | ComparisonReport | SweepReport:
        """Returns the report, once there is one. Raises `TimeoutError` after `timeout` seconds; the job continues."""
        waited = self._progress.along(self._wait(), f"job {self.id}", None, self.events)
        return cast("Report | ComparisonReport | SweepReport", await asyncio.wait_for(waited, timeout))

    async def _wait(self) -> Report | ComparisonReport | SweepReport:
        view = await self.status()
        while view["state"] not in _ENDED:
            async for _ in self.events():
                pass
            view = await self.status()
        return report_of(view, self._kinds)

    async def cancel(self) -> CancelReport:
        """Cancels the job and kills its processes. After the job's end this has no effect."""
        return cast(CancelReport, await self._transport.call("DELETE", f"/jobs/{self.id}"))


def report_of(view: JobView, kinds: Mapping[str, str]) -> Report | ComparisonReport | SweepReport:
    """Returns the report of a job that has ended. Raises `JobFailedError` if it has none."""
    if comparison := view.get("comparison"):
        return ComparisonReport(comparison, kinds)
    if sweep := view.get("sweep", {}).get("result"):
        return SweepReport(sweep)
    if result := view.get("result"):
        return Report(result, kinds)
    raise JobFailedError(view["job_id"], view["state"], view.get("code"), view.get("error"))
