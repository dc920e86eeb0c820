"""What the tests share: a server on the emulated device, and one that answers as a test says."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import warpgauge

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]

VECTOR_ADD = (ROOT / "kernels/vector_add/kernel.cu").read_text()
LAUNCH = {"grid": "ceil_div(n, 256)", "block": 256}


def needs(what: str) -> None:
    """Where something must be there, its absence is a failure."""
    if os.environ.get("WARPGAUGE_TESTS_NEED_ALL"):
        pytest.fail(f"needs {what}")
    pytest.skip(f"needs {what}")


@pytest.fixture(scope="session")
def program() -> Path:
    if "WARPGAUGE_BIN" not in os.environ:
        needs("the program, in WARPGAUGE_BIN")
    return Path(os.environ["WARPGAUGE_BIN"])


@pytest.fixture(scope="session")
def server(program: Path) -> Iterator[warpgauge.Server]:
    data = os.environ.get("WARPGAUGE_TEST_DATA")
    env = {"WARPGAUGE_DATA_DIR": data} if data else {}
    with warpgauge.serve(device="emulator", program_path=program, env=env) as started:
        yield started


@pytest.fixture(scope="session")
def client(server: warpgauge.Server) -> Iterator[warpgauge.Client]:
    with warpgauge.Client(server.url) as one:
        yield one


@pytest.fixture
def own_data(program: Path) -> Callable[[Path], None]:
    """Makes a directory a data directory of its own, with the compilers that are installed."""

    def make(directory: Path) -> None:
        user = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "warpgauge"
        shared = Path(os.environ.get("WARPGAUGE_TEST_DATA") or user)
        for name in ("cubins", "toolchain"):
            (directory / name).symlink_to((shared / name).resolve())

    return make


class Scripted:
    """A server that answers one request after another from a list; bytes are sent as they are."""

    def __init__(self, answers: list[bytes | Callable[[bytes], bytes]]) -> None:
        self.answers, self.requests = list(answers), list[bytes]()
        self.asked = threading.Condition()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            request = read_request(connection)
            if not request:
                return
            with self.asked:
                self.requests.append(request)
                answer = self.answers.pop(0) if self.answers else http(500, {"error": "no answer is left"})
                self.asked.notify_all()
            try:
                connection.sendall(answer if isinstance(answer, bytes) else answer(request))
            except OSError:
                return

    def wait_for(self, count: int) -> None:
        with self.asked:
            assert self.asked.wait_for(lambda: len(self.requests) >= count, 30), self.requests

    def close(self) -> None:
        # A thread that waits in `accept` would take one connection more.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def read_request(connection: socket.socket) -> bytes:
    raw = b""
    while b"\r\n\r\n" not in raw:
        part = connection.recv(65536)
        if not part:
            return b""
        raw += part
    head, _, body = raw.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < (lengths[0] if lengths else 0):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http(status: int, body: object, *headers: str) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = "".join(f"{header}\r\n" for header in headers)
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n{more}\r\n"
    return head.encode() + raw


REPORT = {
    "job_id": "j1",
    "status": "success",
    "kernel_exec_result": {"compiled": True, "correctness": True, "metadata": {}},
    "validation": {"status": "passed"},
    "timings": {},
}


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    made: list[Scripted] = []

    def make(*answers: bytes | Callable[[bytes], bytes]) -> Scripted:
        made.append(Scripted(list(answers)))
        return made[-1]

    yield make
    for one in made:
        with contextlib.suppress(OSError):
            one.close()
