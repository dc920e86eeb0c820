"""Bars of long calls: shown where somebody looks and tqdm is installed, and of no consequence for the call."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from conftest import REPORT, Scripted, http, needs

import warpgauge.progress
from warpgauge import ApiError, ArgumentError, AsyncClient, Client

Make = Callable[..., Scripted]
KERNEL = "__global__ void k() {}"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
PROGRESS = {
    "state": "profiling",
    "stage": "running",
    "trials_done": 7,
    "statistics": {"median_ms": 27.644},
    "job_id": "j1",
}


class Bars:
    """Stands in for tqdm, and keeps what its bars were told."""

    def __init__(self) -> None:
        self.made: list[Bars] = []
        self.shown: list[tuple[int | None, int | None, str]] = []
        self.changed = threading.Event()
        self.closed = False
        self.total: int | None = None
        self.n, self.text, self.after = 0, "", ""

    def __call__(self, *, total: int | None, desc: str, **_: object) -> Bars:
        bar = Bars()
        bar.total, bar.text, bar.changed = total, desc, self.changed
        self.made.append(bar)
        return bar

    def set_description_str(self, text: str, refresh: bool) -> None:
        self.text = text

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self.after = text

    def refresh(self) -> None:
        self.shown.append((self.n, self.total, f"{self.text} {self.after}".strip()))
        self.changed.set()

    def update(self, count: int) -> None:
        self.n += count
        self.refresh()

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Bars:
    made = Bars()
    monkeypatch.setattr(warpgauge.progress, "_tqdm", lambda: made)
    monkeypatch.setattr(warpgauge.progress, "_AFTER_S", 0.0)
    return made


def answering(bars: Bars, event: dict[str, Any], report: bytes) -> Callable[[bytes], bytes]:
    """Answers the call once its progress has been shown."""

    def answer(request: bytes) -> bytes:
        if request.startswith(b"POST"):
            assert bars.changed.wait(30)
            return report
        if request.startswith(b"GET /jobs?"):
            return http(200, {"jobs": [{"job_id": "j1"}]})
        return STREAM + f"id: 1\nevent: progress\ndata: {json.dumps(event)}\n\n".encode()

    return answer


def test_a_long_evaluation_has_a_bar(bars: Bars, scripted: Make) -> None:
    server = scripted(*[answering(bars, PROGRESS, http(200, REPORT))] * 9)
    with Client(server.url, progress=True) as client:
        assert client.evaluate(KERNEL, num_trials=20, label="mine").correct is True
    (bar,) = bars.made
    assert bar.shown[0] == (7, 20, "mine: running median 27.64 ms") and bar.closed


def test_a_sweep_counts_its_points(bars: Bars, scripted: Make) -> None:
    swept = {"job_id": "j", "status": "success", "counts": {}, "points": [], "table": {"columns": [], "rows": []}}
    event = {**PROGRESS, "points": 12, "points_done": 3, "statistics": None}
    server = scripted(*[answering(bars, event, http(200, swept))] * 9)
    with Client(server.url, progress=True) as client:
        client.sweep({"kernel": {}}, axes={"n": [1]})
    assert bars.made[0].shown[0] == (3, 12, "sweep: running")


def test_map_has_one_bar(bars: Bars, scripted: Make) -> None:
    bad = http(400, {"status": "client_error", "code": "invalid_contract", "error": "bad"})
    server = scripted(http(200, REPORT), bad, http(200, REPORT))
    with Client(server.url, progress=True) as client:
        assert len(list(client.map([KERNEL] * 3, concurrency=1, errors="return"))) == 3
    (bar,) = bars.made
    assert [(n, total) for n, total, _ in bar.shown] == [(1, 3), (2, 3), (3, 3)] and bar.closed


def test_a_bar_that_fails_changes_nothing(bars: Bars, scripted: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    met = threading.Event()

    def broken(bar: object, event: object) -> None:
        met.set()
        raise RuntimeError("no bar")

    monkeypatch.setattr(warpgauge.progress.Bar, "show", broken)

    def answer(request: bytes) -> bytes:
        if request.startswith(b"POST"):
            assert met.wait(30)
        return answering(bars, PROGRESS, http(200, REPORT))(request)

    bars.changed.set()
    with Client(scripted(*[answer] * 9).url, progress=True) as client:
        assert client.evaluate(KERNEL).correct is True
    assert bars.made[0].closed


def test_errors_and_cancellation_end_the_bar(bars: Bars, scripted: Make) -> None:
    bad = http(400, {"status": "client_error", "code": "invalid_contract", "error": "bad"})
    with Client(scripted(*[answering(bars, PROGRESS, bad)] * 9).url, progress=True) as client:
        with pytest.raises(ApiError):
            client.evaluate(KERNEL)
        assert bars.made[0].closed

    bars.changed.clear()
    over = threading.Event()

    def answer(request: bytes) -> bytes:
        if request.startswith(b"POST"):
            assert over.wait(30)
        if request.startswith(b"DELETE"):
            return http(200, {"job_id": "j1", "outcome": "cancelled", "state": "cancelled"})
        return answering(bars, PROGRESS, b"")(request)

    async def main() -> None:
        async with AsyncClient(scripted(*[answer] * 20).url, progress=True) as client:
            task = asyncio.create_task(client.evaluate(KERNEL))
            await asyncio.to_thread(bars.changed.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    try:
        asyncio.run(main())
    finally:
        over.set()
    assert all(bar.closed for bar in bars.made)


def test_nothing_is_shown_where_nobody_looks(bars: Bars, scripted: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for wanted in (None, False):
        server = scripted(http(200, REPORT), http(200, REPORT))
        with Client(server.url, progress=wanted) as client:
            client.evaluate(KERNEL)
            list(client.map([KERNEL]))
        assert not bars.made and len(server.requests) == 2
    assert not warpgauge.progress.interactive()
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert warpgauge.progress.interactive()
    with Client(scripted(http(200, REPORT)).url) as client:
        list(client.map([KERNEL]))
    assert len(bars.made) == 1


def test_without_tqdm_there_is_nothing_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(warpgauge.progress, "interactive", lambda: True)
    Client("http://127.0.0.1:1").close()
    with pytest.raises(ArgumentError, match="pip install tqdm"):
        Client("http://127.0.0.1:1", progress=True)


def test_tqdm_itself_draws_it() -> None:
    try:
        import tqdm  # noqa: F401
    except ImportError:
        needs("tqdm")
    script = (
        "from warpgauge.progress import Progress\n"
        "bar = Progress(True).bar('mine', 20)\n"
        f"bar.show({PROGRESS!r})\nbar.show({ {**PROGRESS, 'points': 4, 'points_done': 2}!r})\nbar.close()\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "mine: running:  35%" in ran.stderr and "7/20" in ran.stderr and "median 27.64 ms" in ran.stderr
    assert "2/4" in ran.stderr and not ran.stdout
