"""Dealing iterations at a server that answers as a test says: what is tried again, where, and how often."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Scripted, http

from warpgauge import ApiError, ArgumentError, Client, FunctionError, ProtocolError
from warpgauge.values import ValueReader, ValueWriter

PLACES = {
    "allowed": True,
    "pickles_allowed": False,
    "places": [
        {"kind": "cuda", "ordinal": 0, "uuid": "GPU-a", "name": "A", "calls": 1, "threads": 1},
        {"kind": "cuda", "ordinal": 1, "uuid": "GPU-b", "name": "B", "calls": 1, "threads": 1},
        {"kind": "cpu", "calls": 4, "threads": 1},
    ],
    "limits": {"max_memory_bytes": 1000},
}


def container(head: object, rest: bytes = b"") -> bytes:
    raw = json.dumps(head).encode()
    return struct.pack("<I", len(raw)) + raw + rest


def asked(request: bytes) -> tuple[str, list[int]]:
    """The device that a call names, and its iterations."""
    body = request.partition(b"\r\n\r\n")[2]
    (length,) = struct.unpack_from("<I", body)
    root = ValueReader(body[4 + length :]).root
    return json.loads(body[4 : 4 + length])["device"], [item[1][0] for item in root["items"][1]]


def outcome(status: str, results: dict[int, Any]) -> bytes:
    records = b""
    for iteration, value in results.items():
        writer = ValueWriter()
        record = writer.packed(writer.tree({"iteration": iteration, "value": value}))
        records += struct.pack("<I", len(record)) + record
    head = {"status": status, "reason": "as told", "place": "cuda", "queue_ms": 0, "run_ms": 1.0, "printed": ""}
    return http(200, container(head, records))


class Told:
    """Answers calls as a function says: it gets the device and the iteration."""

    def __init__(self, says: Callable[[str, int], str]) -> None:
        self.says, self.calls = says, list[tuple[str, int]]()

    def __call__(self, request: bytes) -> bytes:
        device, iterations = asked(request)
        results = {}
        for iteration in iterations:
            self.calls.append((device, iteration))
            said = self.says(device, iteration)
            if said == "503":
                return http(503, {"error": "gone", "code": "unavailable"})
            if said != "ok":
                return outcome(said, results)
            results[iteration] = iteration * 10
        return outcome("ended", results)


@pytest.fixture
def mapped(scripted: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def run(told: Callable[[bytes], bytes], count: int = 6, **more: Any) -> list[Any]:
        server = scripted(http(200, PLACES), *[told] * 400)
        with Client(server.url) as client:
            return list(client.map(len, ["x"] * count, **more))

    return run


def test_all_gpus_are_used_and_the_cpu_is_not(mapped: Callable[..., list[Any]]) -> None:
    told = Told(lambda device, iteration: "ok")
    assert mapped(told) == [0, 10, 20, 30, 40, 50]
    assert sorted(iteration for _, iteration in told.calls) == list(range(6))
    assert {device for device, _ in told.calls} <= {"GPU-a", "GPU-b"}


@pytest.mark.parametrize("limits", [{}, {"max_idle_s": 0.0}, {"max_idle_s": 2.0}])
def test_processes_are_named_to_servers_that_know_of_names(
    scripted: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch, limits: dict[str, float]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    places = {**PLACES, "limits": {"max_memory_bytes": 1000, **limits}}
    names = []

    def told(request: bytes) -> bytes:
        body = request.partition(b"\r\n\r\n")[2]
        (length,) = struct.unpack_from("<I", body)
        names.append(json.loads(body[4 : 4 + length]).get("again"))
        return Told(lambda device, iteration: "ok")(request)

    used = []
    for function in (len, len, str):
        with Client(scripted(http(200, places), *[told] * 20).url) as client:
            names.clear()
            list(client.map(function, ["x"] * 4))
            # All calls of a function have one name, which another client's do not have.
            assert len(set(names)) == 1
            used.append(names[0])
    assert used == [None] * 3 if not limits.get("max_idle_s") else len(set(used)) == 3 and None not in used


def test_devices_that_are_not_visible_are_not_used(
    mapped: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    told = Told(lambda device, iteration: "ok")
    mapped(told)
    assert {device for device, _ in told.calls} == {"GPU-b"}


@pytest.mark.parametrize("how", ["503", "died", "timed_out", "garbled"])
def test_what_fails_at_one_place_is_made_at_the_other(mapped: Callable[..., list[Any]], how: str) -> None:
    told = Told(lambda device, iteration: how if (device, iteration) == ("GPU-a", 2) else "ok")
    assert mapped(told) == [0, 10, 20, 30, 40, 50]


def test_what_fails_twice_is_given_up_and_the_rest_is_made(mapped: Callable[..., list[Any]]) -> None:
    told = Told(lambda device, iteration: "died" if iteration == 2 else "ok")
    came = mapped(told, errors="return")
    assert isinstance(came[2], FunctionError) and came[2].failures[0].code == "died"
    assert [value for value in came if isinstance(value, int)] == [0, 10, 30, 40, 50]
    devices = [device for device, iteration in told.calls if iteration == 2]
    assert sorted(devices) == ["GPU-a", "GPU-b"], "each place had it once"


def test_what_returns_too_much_is_made_in_smaller_parts(mapped: Callable[..., list[Any]]) -> None:
    def answer(request: bytes) -> bytes:
        _, iterations = asked(request)
        if len(iterations) > 1:
            return outcome("too_large", {})
        return outcome("ended", {iterations[0]: 1})

    assert mapped(answer, count=9) == [1] * 9


def test_a_server_that_always_fails_is_an_error(mapped: Callable[..., list[Any]]) -> None:
    with pytest.raises(ApiError, match="gone"):
        mapped(Told(lambda device, iteration: "503"))
    with pytest.raises(FunctionError) as caught:
        mapped(Told(lambda device, iteration: "died"), count=50)
    assert len(caught.value.failures) == 50, "those that were not begun are told, too"


HOSTILE = [
    b"",
    b"\xff\xff\xff\xff",
    container({"status": "ended"}),
    container({"status": "ended", "printed": "", "run_ms": 1}, b"\x05\0\0\0x"),
    container({"status": "ended", "printed": "", "run_ms": 1}),
    container([]),
]


@pytest.mark.parametrize("answer", HOSTILE)
def test_answers_that_are_none_are_errors(mapped: Callable[..., list[Any]], answer: bytes) -> None:
    with pytest.raises(ProtocolError):
        mapped(lambda request: http(200, answer), count=2)


def test_a_server_that_runs_no_functions_says_so(scripted: Callable[..., Scripted]) -> None:
    server = scripted(http(200, {**PLACES, "allowed": False, "reason": "not for this key"}))
    with Client(server.url) as client, pytest.raises(ApiError, match="not for this key"):
        list(client.map(len, ["x"]))
    server = scripted(http(200, {**PLACES, "places": []}))
    with Client(server.url) as client, pytest.raises(ArgumentError, match="no place"):
        list(client.map(len, ["x"]))
