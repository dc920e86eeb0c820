"""HTTP with one server: which requests are retried, for how long, and how much of an answer is read."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from .absence import Presence, absent
from .errors import AnswerTooLargeError, ApiError, ProtocolError, ServerUnavailableError
from .models import ErrorBody

if TYPE_CHECKING:
    import httpx

# Statuses of a server that is full or restarts, or of a proxy without an answer.
_AGAIN_STATUS = (429, 502, 504)
# A 503 with another code means that the server lacks something, which waiting does not change.
_AGAIN_CODES = ("shutting_down", "queue_full", "quota_exceeded", "unavailable")
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.1, 5.0
# Maximum time for which a server's Retry-After is obeyed.
_LONGEST_RETRY_AFTER_S = 60.0
# After this time without an answer the client sends the request again on a new connection, as the same job.
_READ_TIMEOUT_S = 300.0
_CONNECT_TIMEOUT_S = 10.0
# Maximum size of an error's body that is read, bytes.
_MAX_ERROR_BYTES = 4 << 20


@dataclass(frozen=True)
class Settings:
    """The server's address, and limits of the client."""

    url: str
    api_key: str | None
    patience_s: float
    max_answer_bytes: int
    connections: int
    #: Maximum wait for a server that has not answered before, seconds.
    wait_s: float = 0.0


class Patience:
    """How long the client retries while a server is absent, full or shutting down."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._delay = _FIRST_DELAY_S
        #: Whether the user knows that the client waits.
        self.announced = False

    def reset(self) -> None:
        """Records that the server was reached."""
        self._since, self._delay = None, _FIRST_DELAY_S

    def begin(self, now: float) -> float:
        """Returns the time of the first failure in a row, which is `now` if there was none."""
        if self._since is None:
            self._since = now
        return self._since

    def next_delay(self, now: float, retry_after: float | None, at_most: float | None = None) -> float | None:
        """Returns the seconds to wait before the next attempt, or `None` if there is none.

        `at_most` replaces the total waiting time, in seconds, for this attempt.
        """
        since = self.begin(now)
        # The random factor keeps clients of one server from retrying at the same moment.
        own = self._delay * random.uniform(0.5, 1.0)
        delay = own if retry_after is None else min(retry_after, _LONGEST_RETRY_AFTER_S) + own
        self._delay = min(self._delay * 2, _LONGEST_DELAY_S)
        limit = self._seconds if at_most is None else at_most
        return delay if now + delay - since <= limit else None


class _Lines:
    """Connections of one event loop, each of them a client with one connection.

    A pool examines all of its connections whenever it returns one. With many connections that takes longer than the
    rest of a small request.
    """

    def __init__(self, connections: int) -> None:
        self.turn = asyncio.Semaphore(connections)
        self.idle: list[httpx.AsyncClient] = []


class Transport:
    """Sends requests. Each event loop has its connections, because they belong to it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._presence = Presence(settings.url, settings.patience_s, settings.wait_s)
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Lines]
        self._lines = weakref.WeakKeyDictionary()
        self._verify: Any = None

    def _of_this_loop(self) -> _Lines:
        loop = asyncio.get_running_loop()
        lines = self._lines.get(loop)
        if lines is None:
            lines = self._lines[loop] = _Lines(self.settings.connections)
        return lines

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[httpx.AsyncClient]:
        """Yields a connection for one exchange. The connection that was used last is the likeliest to be open."""
        lines = self._of_this_loop()
        client = lines.idle.pop() if lines.idle else self._new_client()
        try:
            yield client
        except BaseException:
            # An exchange that is cancelled at some moments keeps the only connection for good, and the next would
            # wait.
            await client.aclose()
            raise
        lines.idle.append(client)

    def _new_client(self) -> httpx.AsyncClient:
        import httpx

        # Compressed answers are not requested, so that the received bytes are those that count. Fields without a
        # value are null in reports with this preference, and have placeholders otherwise.
        headers = {
            "Accept-Encoding": "identity",
            "Prefer": "return=minimal",
            "User-Agent": "warpgauge-python/0.1.0",
        }
        if self.settings.api_key:
            headers["X-API-Key"] = self.settings.api_key
        return httpx.AsyncClient(
            base_url=self.settings.url,
            headers=headers,
            verify=self._authorities(),
            timeout=httpx.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
        )

    def _authorities(self) -> Any:
        """Returns the authorities that TLS trusts. They are read once, because that takes as long as some
        evaluations."""
        if self._verify is None:
            if self.settings.url.startswith("http://"):
                # There is no TLS; redirections, which could lead to it, are not followed.
                self._verify = False
            else:
                import ssl

                import httpx

                file = os.environ.get("WARPGAUGE_CA_CERT")
                self._verify = ssl.create_default_context(cafile=file) if file else httpx.create_ssl_context()
        return self._verify

    async def close(self) -> None:
        """Closes the connections of this event loop."""
        lines = self._lines.pop(asyncio.get_running_loop(), None)
        for client in lines.idle if lines else []:
            await client.aclose()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Sends an operation, and retries while the server is absent. The operation must be one that may be
        repeated."""
        import httpx

        content = encode(body) if body is not None else None
        sent = {**(headers or {}), **({"Content-Type": "application/json"} if content else {})}
        patience = Patience(self.settings.patience_s)
        while True:
            retry_after: float | None = None
            try:
                status, raw, told = await self._once(method, path, content, params, sent)
                if status < 400:
                    return parse_object(raw, path)
                error = error_of(status, raw)
                if not _worth_another(status, error.code):
                    raise error
                problem: Exception = error
                retry_after = told
            except httpx.ReadTimeout as timeout:
                # The server received the request. The next connection shows whether it still runs.
                patience.reset()
                problem = timeout
            except httpx.TransportError as failure:
                problem = failure
            await self._pause(patience, retry_after, problem)

    async def exchange(self, path: str, content: bytes, timeout_s: float) -> bytes:
        """Sends bytes once and returns those of the answer. The caller decides about a retry."""
        import httpx

        headers = {"Content-Type": "application/octet-stream"}
        timeout = httpx.Timeout(timeout_s, connect=_CONNECT_TIMEOUT_S)
        try:
            status, raw, _ = await self._once("POST", path, content, None, headers, timeout)
        except (httpx.ConnectError, httpx.ConnectTimeout) as failure:
            raise absent(self.settings.url, failure) from None
        except httpx.TransportError as failure:
            what = f"{type(failure).__name__}: {failure}".rstrip(": ")
            raise ServerUnavailableError(f"{self.settings.url} did not answer a call ({what})") from failure
        if status >= 400:
            raise error_of(status, raw)
        return raw

    async def _pause(self, patience: Patience, retry_after: float | None, problem: Exception) -> None:
        import httpx

        now = time.monotonic()
        if isinstance(problem, (httpx.ConnectError, httpx.ConnectTimeout)):
            limit = self._presence.seconds(patience.begin(now))
            if (delay := patience.next_delay(now, None, limit)) is None:
                # The causes are long tracebacks of other libraries, and the message has their content.
                raise self._presence.error(problem, limit) from None
            if not patience.announced:
                patience.announced = True
                self._presence.warn(problem, limit)
        else:
            self._presence.saw()
            delay = patience.next_delay(now, retry_after)
            if delay is None:
                self._give_up(problem)
        await asyncio.sleep(delay)

    def _give_up(self, problem: Exception) -> NoReturn:
        if isinstance(problem, ApiError):
            raise problem
        what = f"{type(problem).__name__}: {problem}".rstrip(": ")
        raise ServerUnavailableError(
            f"{self.settings.url} did not answer within {self.settings.patience_s:g} s ({what}); see that the "
            "server runs there, or give the client more `patience`"
        ) from problem

    async def _once(
        self,
        method: str,
        path: str,
        content: bytes | None,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        timeout: Any = None,
    ) -> tuple[int, bytes, float | None]:
        # Without a timeout that of the client applies.
        bounded = {} if timeout is None else {"timeout": timeout}
        async with (
            self._of_this_loop().turn,
            self._line() as client,
            client.stream(method, path, content=content, params=params, headers=headers, **bounded) as answer,
        ):
            limit = self.settings.max_answer_bytes if answer.status_code < 400 else _MAX_ERROR_BYTES
            self._presence.saw()
            raw = await _read(answer, limit, path)
            return answer.status_code, raw, _seconds(answer.headers.get("Retry-After"))

    @asynccontextmanager
    async def events(self, path: str, last_id: str | None) -> AsyncIterator[AsyncIterator[str]]:
        """Yields a stream of server-sent events as text. Errors of HTTP are those of httpx."""
        import httpx

        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
        # The server sends a comment every 15 s.
        timeout = httpx.Timeout(60.0, connect=_CONNECT_TIMEOUT_S)
        # Streams take no permit, so any number of them leaves calls possible.
        async with (
            self._line() as client,
            client.stream("GET", path, headers=headers, timeout=timeout) as answer,
        ):
            self._presence.saw()
            if answer.status_code != 200:
                raise error_of(answer.status_code, await _read(answer, _MAX_ERROR_BYTES, path))
            yield answer.aiter_text()


async def _read(answer: httpx.Response, limit: int, path: str) -> bytes:
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise ProtocolError(f"{path}: the answer is encoded ({encoding[:40]}), which was not asked for")
    parts, size = [], 0
    async for part in answer.aiter_raw():
        size += len(part)
        if size > limit:
            raise AnswerTooLargeError(
                f"{path}: the answer has more than {limit} bytes; ask for less (`return_outputs`), or give the "
                "client a larger `max_answer_bytes`"
            )
        parts.append(part)
    return b"".join(parts)


def encode(body: object) -> bytes:
    """Returns a body as JSON. A value that JSON lacks is an error here, and no text that the server misreads."""
    from .errors import ArgumentError

    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"the request cannot be written as JSON: {error}; floats must be finite, but for values of "
            "arguments, and everything else plain data"
        ) from None


def parse_object(raw: bytes, path: str) -> dict[str, Any]:
    """Parses a JSON object. The error asks whether this is a server of warpgauge."""
    try:
        value = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{path}: the answer is not JSON ({error}); is this a server of warpgauge?") from None
    if not isinstance(value, dict):
        raise ProtocolError(f"{path}: the answer is a {type(value).__name__}, not an object")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it has the number {name}")


def error_of(status: int, raw: bytes) -> ApiError:
    """Returns the error of a body, which a proxy may have written."""
    try:
        body = json.loads(raw)
        if isinstance(body, dict) and isinstance(body.get("error"), str):
            body.setdefault("code", f"http_{status}")
            return ApiError(status, cast(ErrorBody, body))
    except (ValueError, RecursionError):
        pass
    shown = raw[:200].decode("utf-8", "replace").strip()
    text = f"HTTP {status} with a body that is not warpgauge's: {shown!r}"
    return ApiError(status, {"status": "error", "code": f"http_{status}", "error": text})


def _worth_another(status: int, code: str) -> bool:
    return status in _AGAIN_STATUS or (status == 503 and (code in _AGAIN_CODES or code == "http_503"))


def _seconds(text: str | None) -> float | None:
    """Returns `Retry-After` in seconds, or `None` for a date or anything else."""
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None
