"""Streams of events in whatever pieces they come."""

from __future__ import annotations

import pytest

from warpgauge import ProtocolError
from warpgauge.event_stream import MAX_EVENT, EventParser

TEXT = ': c\r\n\r\nid: 1\r\nevent: progress\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: end\ndata: {}\n\nevent: x\n\n'


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pieces_of_any_size_give_the_same_events(size: int) -> None:
    parser, found = EventParser(), []
    for at in range(0, len(TEXT), size):
        found += parser.feed(TEXT[at : at + size])
    assert found == [{"a": 1, "event": "progress"}, {"event": "end"}]
    assert parser.last_id == "1"


@pytest.mark.parametrize("text", ["data: [1]\n\n", "data: {\n\n", "x" * (MAX_EVENT + 1)])
def test_other_data_are_refused(text: str) -> None:
    with pytest.raises(ProtocolError):
        EventParser().feed(text)


def test_an_event_that_never_ends_is_refused() -> None:
    parser = EventParser()
    with pytest.raises(ProtocolError):
        for _ in range(MAX_EVENT):
            parser.feed("data: " + "x" * 1000 + "\n")
