"""Servers that are full, restart, break off, are of another version, or mean harm."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from conftest import REPORT, Scripted, http

from warpgauge import (
    AnswerTooLargeError,
    ApiError,
    ArgumentError,
    AsyncClient,
    Client,
    ProtocolError,
    Report,
    ServerUnavailableError,
)
from warpgauge.transport import Patience

Make = Callable[..., Scripted]
KERNEL = "__global__ void k() {}"


def key_of(request: bytes) -> bytes:
    return next(line for line in request.split(b"\r\n") if line.lower().startswith(b"idempotency-key:"))


def test_a_job_is_sent_again_with_its_key_until_the_server_is_back(scripted: Make) -> None:
    good = http(200, REPORT)
    server = scripted(
        b"",  # gone before it answered
        good[: len(good) // 2],  # in the middle of the answer
        http(503, {"status": "error", "code": "shutting_down", "error": "going down"}),
        http(429, {"status": "error", "code": "queue_full", "error": "full"}, "Retry-After: 0"),
        http(502, b"<html>a proxy</html>"),
        good,
    )
    with Client(server.url) as client:
        assert client.evaluate(KERNEL).correct is True
    assert len(server.requests) == 6
    assert len({key_of(request) for request in server.requests}) == 1


def test_patience_ends(scripted: Make) -> None:
    server = scripted(b"", b"", b"", b"", b"")
    with Client(server.url, patience=0.2) as client, pytest.raises(ServerUnavailableError, match="did not answer"):
        client.evaluate(KERNEL)
    full = http(429, {"status": "error", "code": "queue_full", "error": "full"}, "Retry-After: 9")
    with Client(scripted(full).url, patience=1) as client, pytest.raises(ApiError, match="full") as caught:
        client.evaluate(KERNEL)
    assert caught.value.code == "queue_full"


def test_retry_after_is_obeyed_within_patience() -> None:
    patience = Patience(100)
    first = patience.next_delay(0.0, 7.0)
    assert first is not None and 7.0 <= first <= 7.2
    assert patience.next_delay(99.0, 7.0) is None
    patience.reset()
    assert patience.next_delay(99.0, 7.0) is not None
    # A server cannot make a client wait for ever.
    assert Patience(100).next_delay(0.0, 1e9) is not None
    assert Patience(10).next_delay(0.0, 1e9) is None


def test_what_waiting_does_not_change_is_told_at_once(scripted: Make) -> None:
    body = {
        "status": "client_error",
        "code": "invalid_contract",
        "error": "no such thing",
        "path": "kernel.io",
        "validation_errors": [{"field": "kernel.io", "message": "m", "type": "t"}],
    }
    lacking = {"status": "error", "code": "unmet_requirements", "error": "no Triton here"}
    server = scripted(http(400, body), http(503, lacking))
    with Client(server.url) as client:
        with pytest.raises(ApiError) as caught:
            client.evaluate(KERNEL)
        error = caught.value
        assert (error.status, error.code, error.path) == (400, "invalid_contract", "kernel.io")
        assert error.validation_errors[0]["field"] == "kernel.io"
        assert "at `kernel.io`" in str(error) and "correct the request" in str(error)
        with pytest.raises(ApiError, match="capabilities"):
            client.evaluate(KERNEL)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        http(200, b"<html>hello</html>"),
        http(200, []),
        http(200, {"status": "success"}),
        http(200, {**REPORT, "kernel_exec_result": 3}),
        http(200, {"job_id": "x", "status": "success"}),
        http(200, json.dumps(REPORT).replace("true", "NaN").encode()),
        http(200, b"[" * 100_000),
        http(200, b"\x1f\x8b", "Content-Encoding: gzip"),
    ],
)
def test_what_is_no_answer_of_ours_is_called_so(scripted: Make, answer: bytes) -> None:
    with Client(scripted(answer).url) as client, pytest.raises(ProtocolError):
        client.evaluate(KERNEL)


def test_errors_of_other_programs_are_bounded_and_told(scripted: Make) -> None:
    server = scripted(http(404, b"<h1>nginx</h1>" * 10_000))
    with Client(server.url) as client, pytest.raises(ApiError, match="not warpgauge's") as caught:
        client.evaluate(KERNEL)
    assert len(str(caught.value)) < 1000


def test_huge_answers_are_not_read(scripted: Make) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    server = scripted(head + b" " * 3_000_000)
    with Client(server.url, max_answer_bytes=1 << 20) as client, pytest.raises(AnswerTooLargeError, match="1048576"):
        client.evaluate(KERNEL)


def test_a_cancelled_call_cancels_its_job(scripted: Make) -> None:
    server = scripted(
        lambda _: server.wait_for(3) or b"",
        http(200, {"jobs": []}),
        http(200, {"jobs": [{"job_id": "j7"}]}),
        http(200, {"job_id": "j7", "outcome": "cancelled", "state": "cancelled"}),
    )

    async def main() -> None:
        async with AsyncClient(server.url) as client:
            task = asyncio.create_task(client.evaluate(KERNEL))
            await asyncio.to_thread(server.wait_for, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    key = key_of(server.requests[0]).split(b": ")[1]
    assert server.requests[1].startswith(b"GET /jobs?idempotency_key=" + key)
    assert server.requests[3].startswith(b"DELETE /jobs/j7 ")


def test_a_client_is_as_good_as_new_after_a_request_given_up_at_any_moment(scripted: Make) -> None:
    server = scripted(*[http(200, {"state": "ok"})] * 200)

    async def main() -> None:
        async with AsyncClient(server.url) as client:
            for steps in range(40):
                task = asyncio.create_task(client._transport.exchange("/calls", b"x", 60.0))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                # Where its connection is still taken, this one waits for it.
                await asyncio.wait_for(client._transport.exchange("/calls", b"y", 60.0), 20)

    asyncio.run(main())


def test_one_client_serves_two_event_loops(scripted: Make) -> None:
    server = scripted(http(200, REPORT), http(200, REPORT))
    client = AsyncClient(server.url)

    async def main() -> bool | None:
        return (await client.evaluate(KERNEL)).correct

    assert asyncio.run(main()) is True
    assert asyncio.run(main()) is True


def test_results_of_map_come_in_order_and_no_more_is_taken_than_needed(scripted: Make) -> None:
    def answer(request: bytes) -> bytes:
        if not request.startswith(b"POST"):
            return http(200, {"jobs": [{"job_id": "j"}]})
        source = json.loads(request.partition(b"\r\n\r\n")[2])["kernel"]["source_code"]
        return http(200, {**REPORT, "job_id": source.split()[-1]})

    server = scripted(*[answer] * 50)
    taken = 0

    def kernels():  # type: ignore[no-untyped-def]
        nonlocal taken
        for i in range(1000):
            taken += 1
            yield f"__global__ void k() {{}} // {i}"

    with Client(server.url) as client:
        reports = client.map(kernels(), concurrency=3)
        got = []
        for report in reports:
            assert isinstance(report, Report)
            got.append(report.job_id)
            if len(got) == 20:
                break
        reports.close()  # type: ignore[attr-defined]
    assert got == [str(i) for i in range(20)]
    assert taken <= 20 + 4 * 3


def test_errors_in_map_end_it_or_stand_in_place(scripted: Make) -> None:
    bad = http(400, {"status": "client_error", "code": "invalid_contract", "error": "bad"})
    server = scripted(http(200, REPORT), bad, http(200, REPORT), http(200, REPORT), bad)
    with Client(server.url) as client:
        found = list(client.map([KERNEL] * 3, concurrency=1, errors="return"))
        assert [type(one) for one in found] == [Report, ApiError, Report]
        with pytest.raises(ApiError):
            list(client.map([KERNEL] * 3, concurrency=1))
        with pytest.raises(ArgumentError):
            list(client.map([KERNEL], concurrency=0))


def test_events_go_on_over_a_restart(scripted: Make) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    server = scripted(
        head + b': hello\n\nid: 4\nevent: progress\ndata: {"state": "queued"}\n\nid: 5\nevent: prog',
        b"",
        http(429, {"status": "error", "code": "too_many_streams", "error": "full"}),
        head + b'id: 9\r\nevent: end\r\ndata: {"state": "completed"}\r\n\r\n',
    )
    with Client(server.url) as client:
        assert [e["event"] for e in client.job("j1").events()] == ["progress", "end"]
    assert b"last-event-id: 4" in server.requests[-1].lower()


def test_ids_of_jobs_do_not_reach_elsewhere(scripted: Make) -> None:
    with Client(scripted().url) as client:
        for bad in ("", "../admin", "a?b", "a/b"):
            with pytest.raises(ArgumentError):
                client.job(bad)
    with pytest.raises(ArgumentError):
        Client("ftp://x")
