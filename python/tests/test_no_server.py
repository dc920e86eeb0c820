"""No server at the address: an error at once, with what to do; a server that was there is waited for."""

from __future__ import annotations

import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import REPORT, Scripted, http

import warpgauge
from warpgauge import Client, ServerUnavailableError, TensorClient

Make = Callable[..., Scripted]
KERNEL = "__global__ void k() {}"


@pytest.fixture
def closed() -> Iterator[socket.socket]:
    """A socket that has a port and does not listen, so that connections are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken


@pytest.fixture
def nowhere(closed: socket.socket) -> str:
    return f"http://127.0.0.1:{closed.getsockname()[1]}"


def test_a_refused_connection_is_an_error_at_once(nowhere: str) -> None:
    calls: list[Callable[[Client], object]] = [
        lambda client: client.evaluate(KERNEL),
        lambda client: client.info(),
        lambda client: list(client.map([KERNEL] * 3)),
        lambda client: list(client.job("j1").events()),
    ]
    for call in calls:
        with Client(nowhere) as client:
            began = time.monotonic()
            with pytest.raises(ServerUnavailableError, match="connection refused") as caught:
                call(client)
            assert time.monotonic() - began < 5  # of the 120 s of patience
        for part in (nowhere, "warpgauge serve", "warpgauge.serve()", "WARPGAUGE_SERVER", "wait_for_server"):
            assert part in str(caught.value)
        # No pages of what httpx called.
        assert "httpcore" not in "".join(traceback.format_exception(caught.value))


def test_tensors_say_the_same(nowhere: str) -> None:
    with pytest.raises(ServerUnavailableError, match=r"connection refused.*warpgauge serve"):
        TensorClient(nowhere).list_tensors()


def test_an_unknown_host_is_called_so() -> None:
    with Client("http://no-such-host.invalid:8000") as client, pytest.raises(ServerUnavailableError) as caught:
        client.info()
    assert "http://no-such-host.invalid:8000" in str(caught.value) and "correct the address" in str(caught.value)


def test_a_server_without_tls_is_told(closed: socket.socket, nowhere: str) -> None:
    def answer() -> None:
        connection, _ = closed.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")

    closed.listen()
    threading.Thread(target=answer, daemon=True).start()
    url = nowhere.replace("http:", "https:")
    with Client(url) as client, pytest.raises(ServerUnavailableError, match=r"TLS.*WARPGAUGE_CA_CERT"):
        client.info()


def test_a_server_that_starts_is_waited_for_where_that_is_wanted(
    closed: socket.socket, nowhere: str, caplog: pytest.LogCaptureFixture
) -> None:
    waits = threading.Event()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "waiting for it" in record.getMessage():
                waits.set()

    def start() -> None:
        assert waits.wait(30)
        closed.listen()
        connection, _ = closed.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(http(200, {"version": "9"}))

    heard = Heard()
    logging.getLogger("warpgauge").addHandler(heard)
    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    try:
        with Client(nowhere, wait_for_server=60) as client:
            assert client.info() == {"version": "9"}
        thread.join(30)
    finally:
        logging.getLogger("warpgauge").removeHandler(heard)
    assert caplog.text.count("waiting for it") == 1 and "connection refused" in caplog.text


def test_waiting_ends(nowhere: str) -> None:
    with (
        Client(nowhere, wait_for_server=0.3) as client,
        pytest.raises(ServerUnavailableError, match=r"within 0\.3 s \(connection refused\)"),
    ):
        client.info()


def test_a_server_that_was_there_gets_patience(scripted: Make, caplog: pytest.LogCaptureFixture) -> None:
    server = scripted(http(200, REPORT))
    with Client(server.url, patience=0.5) as client:
        client.evaluate(KERNEL)
        server.close()
        with pytest.raises(ServerUnavailableError, match=r"within 0\.5 s"):
            client.evaluate(KERNEL)
    assert "waiting for it, up to 0.5 s" in caplog.text


def test_a_server_that_was_there_long_ago_gets_none() -> None:
    from warpgauge.absence import Presence

    presence = Presence("http://x", 120.0, 3.0)
    assert presence.seconds(time.monotonic()) == 3.0
    presence.saw()
    assert presence.seconds(time.monotonic()) == 120.0
    assert presence.seconds(time.monotonic() + 121.0) == 3.0


def test_a_server_of_the_package_answers_the_first_call(program: Path) -> None:
    with warpgauge.serve(device="emulator", program_path=program) as server, Client(server.url) as client:
        assert client.info()["version"]
