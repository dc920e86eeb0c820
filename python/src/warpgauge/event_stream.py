"""Parses server-sent events from the pieces of a stream."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import cast

from .errors import ProtocolError
from .models import Event

# Maximum length of an event, characters. Typical events have a few hundred.
MAX_EVENT = 1 << 20


@dataclass
class EventParser:
    """Takes pieces of a stream, returns whole events, and remembers the `id` of the last."""

    last_id: str | None = None
    _rest: str = ""
    _id: str | None = None
    _name: str = ""
    _data: list[str] = field(default_factory=list)
    _size: int = 0

    def feed(self, piece: str) -> list[Event]:
        """Returns the events that are complete with this piece."""
        text = self._rest + piece
        # A `\r` at the end may be half of `\r\n`.
        held = text.endswith("\r")
        lines = (text[:-1] if held else text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + ("\r" if held else "")
        if len(self._rest) > MAX_EVENT:
            raise ProtocolError(f"an event of more than {MAX_EVENT} characters")
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> Event | None:
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
            if self._size > MAX_EVENT:
                raise ProtocolError(f"an event of more than {MAX_EVENT} characters")
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _complete(self) -> Event | None:
        # Only a complete event counts as delivered.
        self.last_id = self._id or self.last_id
        data, name = "\n".join(self._data), self._name
        self._data, self._name, self._size = [], "", 0
        if not data:
            return None
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ProtocolError(f"an event whose data are no object: {data[:100]!r}")
        return cast(Event, {**value, "event": name or "message"})
