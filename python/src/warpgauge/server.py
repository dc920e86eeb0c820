"""A server that runs for the duration of a block of code."""

from __future__ import annotations

import queue
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from . import program
from .errors import ServerUnavailableError

_START_S = 120.0
# Maximum time in which a stopped server lets running evaluations finish, seconds; then it is killed.
_STOP_S = 40.0
_ANNOUNCED = re.compile(r"listens on (https?://[^\s\x1b]+)")
# Maximum number of output lines that are kept, to explain a failed start, and of their characters.
_LINES_KEPT, _LONGEST_LINE = 200, 4096


class Server:
    """A running server; `url` is its address."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        found: queue.Queue[str | None] = queue.Queue()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            threading.Thread(target=self._read, args=(stream, found), daemon=True).start()
        self.url = self._first(found)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """Returns the last lines of the server's output."""
        return "\n".join(self._lines)

    def _read(self, stream: IO[bytes], found: queue.Queue[str | None]) -> None:
        # The thread reads to the end, because a full pipe would block the server.
        while raw := stream.readline(_LONGEST_LINE):
            line = raw.decode("utf-8", "replace").rstrip()
            self._lines.append(line)
            if match := _ANNOUNCED.search(line):
                found.put(match.group(1).rstrip("/.,"))
        found.put(None)

    def _first(self, found: queue.Queue[str | None]) -> str:
        try:
            # Both streams end when the server dies.
            for _ in range(2):
                if url := found.get(timeout=_START_S):
                    return url
            why = f"it ended with {self._process.wait()}"
        except queue.Empty:
            why = f"it did not say where it listens within {_START_S:g} s"
        except BaseException:
            self.stop()
            raise
        self.stop()
        raise ServerUnavailableError(f"the server did not start: {why}; it said:\n{self.log}")

    def stop(self) -> None:
        """Stops the server: with SIGTERM, and after a while with SIGKILL."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """Kills the server, as in a crash: nothing is finished."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def serve(
    *,
    device: str = "auto",
    port: int = 0,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    program_path: str | Path | None = None,
) -> Server:
    """Starts a server on this machine, by default on a free port. `with` stops it at the end.

    `device` is `auto`, `emulator` or ordinals such as `0,1`. `args` are arguments of `warpgauge serve`, and `env` is
    added to the environment (`WARPGAUGE_DATA_DIR` is the directory of its jobs).
    """

    path = Path(program_path) if program_path else program.find()
    command = [str(path), "--device", device, "serve", "--host", "127.0.0.1", "--port", str(port), *args]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**program.environment(), "NO_COLOR": "1", **(env or {})},
            # Ctrl-C goes to this program alone, which then stops the server.
            start_new_session=True,
        )
    except OSError as error:
        raise ServerUnavailableError(f"cannot start {path}: {error.strerror}") from error
    return Server(process)
