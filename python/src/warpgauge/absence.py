"""Errors of servers that cannot be connected to: the reason and the remedy."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from typing import TYPE_CHECKING

from .errors import ServerUnavailableError

if TYPE_CHECKING:
    import httpx

_LOG = logging.getLogger("warpgauge")
# Maximum number of errors that are followed from an error to its causes.
_MOST_CAUSES = 20


class Presence:
    """Whether a server is known to exist, and how long the client waits while it refuses connections.

    For a server that has never answered the client waits `wait_s` seconds, 0 by default. A server that has answered
    within the last `patience_s` seconds may restart, so the client waits `patience_s` seconds for it.
    """

    def __init__(self, url: str, patience_s: float, wait_s: float) -> None:
        self._url, self._patience_s, self._wait_s = url, patience_s, wait_s
        self._seen: float | None = None

    def saw(self) -> None:
        """Records that the server accepted a connection just now."""
        self._seen = time.monotonic()

    def seconds(self, since: float) -> float:
        """Returns the maximum wait in seconds from `since` on (`time.monotonic`) while connections fail."""
        if self._seen is not None and since - self._seen <= self._patience_s:
            return max(self._patience_s, self._wait_s)
        return self._wait_s

    def warn(self, problem: Exception, seconds: float) -> None:
        """Logs that the client waits, so that the wait is not silent."""
        _LOG.warning("%s refuses connections (%s); waiting for it, up to %g s", self._url, reason(problem), seconds)

    def error(self, problem: httpx.TransportError, waited_s: float = 0.0) -> ServerUnavailableError:
        """Returns the error of a server that cannot be connected to."""
        return absent(self._url, problem, waited_s)


def absent(url: str, problem: BaseException, waited_s: float = 0.0) -> ServerUnavailableError:
    """Returns the error of a server that cannot be connected to, with a remedy."""
    waited = f" within {waited_s:g} s" if waited_s > 0 else ""
    return ServerUnavailableError(
        f"no server of warpgauge answers at {url}{waited} ({reason(problem)}); {_advice(problem)}"
    )


def reason(problem: BaseException) -> str:
    """Returns why a connection failed, in a few words."""
    cause = _cause(problem)
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(cause, socket.gaierror):
        return "unknown host name"
    if isinstance(cause, ssl.SSLError):
        return f"TLS: {cause.reason or cause}"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    if "Timeout" in type(problem).__name__:
        return "no connection within the time limit"
    return f"{type(problem).__name__}: {problem}".rstrip(": ")


def _advice(problem: BaseException) -> str:
    cause = _cause(problem)
    if isinstance(cause, ssl.SSLError):
        return "see that the server speaks TLS, and name its authorities' certificates in WARPGAUGE_CA_CERT"
    if isinstance(cause, socket.gaierror):
        return "correct the address in `Client(url)` or WARPGAUGE_SERVER"
    return (
        "start one with `warpgauge serve`, or from Python with `warpgauge.serve()`, or name another address in "
        "`Client(url)` or WARPGAUGE_SERVER; `wait_for_server=SECONDS` waits for a server that is about to start"
    )


def _cause(problem: BaseException) -> BaseException | None:
    """Returns the error of the operating system below the errors of libraries. A refused connection precedes others."""
    found: BaseException | None = None
    todo: list[BaseException] = [problem]
    for _ in range(_MOST_CAUSES):
        if not todo:
            break
        one = todo.pop(0)
        if isinstance(one, ConnectionRefusedError):
            return one
        if found is None and isinstance(one, OSError) and type(one) is not OSError:
            found = one
        # Attempts over several addresses are a group of errors.
        todo += [inner for inner in getattr(one, "exceptions", ()) if isinstance(inner, BaseException)]
        todo += [inner for inner in (one.__cause__, one.__context__) if inner is not None]
    return found
