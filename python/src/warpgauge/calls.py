"""Calls of functions on a server: places, requests and answers."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ApiError, ArgumentError, ProtocolError
from .transport import Transport
from .values import NotData, ValueReader

# Maximum time beyond a call's timeout until its answer arrives: its turn on a busy server, and the transfer.
_WAIT_S = 900.0


@dataclass(frozen=True)
class Seat:
    """A place for one call at a time, on a GPU or on the CPU."""

    # The GPU's uuid; `None`: the CPU.
    device: str | None
    name: str


@dataclass(frozen=True)
class Seats:
    """The places for calls of a function."""

    seats: tuple[Seat, ...]
    # Whether the CPU replaces GPUs.
    stand_in: bool
    limits: Mapping[str, Any]


async def seats_of(transport: Transport, most: int) -> Seats:
    """Returns the GPUs that the server has and CUDA_VISIBLE_DEVICES names, or the CPU if there is none."""
    told = await transport.call("GET", "/functions/places")
    try:
        if told["allowed"] is not True:
            reason = str(told.get("reason", "this server runs no functions"))
            raise ApiError(403, {"status": "client_error", "code": "forbidden", "error": reason})
        places = list(told["places"])
        gpus = visible([place for place in places if place["kind"] == "cuda"], os.environ.get("CUDA_VISIBLE_DEVICES"))
        seats = [Seat(str(place["uuid"]), f"cuda:{place['ordinal']} ({place['name']})") for place in gpus]
        if not seats:
            count = sum(int(place["calls"]) for place in places if place["kind"] == "cpu")
            seats = [Seat(None, f"cpu place {index + 1} of {count}") for index in range(min(count, 1024))]
        limits = dict(told["limits"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"/functions/places: an answer of another version ({error!r})") from None
    if not seats:
        raise ArgumentError("the server has no place for functions that CUDA_VISIBLE_DEVICES names")
    return Seats(tuple(seats[:most]), seats[0].device is None, limits)


def visible(gpus: Sequence[Any], named: str | None) -> list[Any]:
    """Returns the GPUs of a server that a value of CUDA_VISIBLE_DEVICES names, in its order; all if it is empty or not
    set."""
    if not named or not named.strip():
        return list(gpus)
    found = []
    for name in named.split(","):
        name = name.strip()
        fits = [gpu for gpu in gpus if str(gpu["ordinal"]) == name or (name.startswith("GPU-") and
                str(gpu["uuid"]).startswith(name))]  # fmt: skip
        if len(fits) != 1:
            # As in CUDA, names after an invalid name do not count.
            break
        found += [gpu for gpu in fits if gpu not in found]
    return found


@dataclass
class Call:
    """Options that all calls of a function share."""

    head: dict[str, Any]
    timeout: float


@dataclass
class Answer:
    """The answer to one call."""

    status: str
    reason: str
    printed: str
    run_ms: float
    records: list[dict[str, Any]] = field(default_factory=list)
    # Bytes of the records.
    size: int = 0


async def call(transport: Transport, seat: Seat, wanted: Call, program: bytes) -> Answer:
    """Sends one call and returns its answer."""
    head = {**wanted.head, **({"device": seat.device} if seat.device else {})}
    encoded = json.dumps(head).encode()
    body = b"".join([struct.pack("<I", len(encoded)), encoded, program])
    raw = await transport.exchange("/functions/calls", body, wanted.timeout + _WAIT_S)
    return parsed(raw)


def parsed(raw: bytes) -> Answer:
    """Parses an answer of the server."""
    view = memoryview(raw)
    try:
        (length,) = struct.unpack_from("<I", view)
        head = json.loads(bytes(view[4 : 4 + length]))
        answer = Answer(str(head["status"]), str(head.get("reason") or ""), str(head["printed"]), float(head["run_ms"]))
        begin = 4 + length
        answer.size = len(view) - begin
        while begin < len(view):
            (length,) = struct.unpack_from("<I", view, begin)
            if begin + 4 + length > len(view):
                raise ValueError("a record that ends early")
            record = ValueReader(view[begin + 4 : begin + 4 + length]).value()
            if not isinstance(record, dict):
                raise ValueError("a record that is none")
            answer.records.append(record)
            begin += 4 + length
    except (ValueError, KeyError, TypeError, struct.error, RecursionError, NotData) as error:
        raise ProtocolError(f"/functions/calls: an answer that cannot be read: {error}") from None
    return answer
