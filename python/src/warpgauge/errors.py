"""Errors of this package, each with a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .models import ErrorBody, ValidationError


class WarpgaugeError(Exception):
    """Base of all errors of this package. A wrong kernel is a report and no error."""


class ArgumentError(WarpgaugeError, ValueError):
    """The arguments do not make a request: an element type, a shape, or a kernel of unknown kind."""


class ServerUnavailableError(WarpgaugeError, ConnectionError):
    """No server answers at the address, or a server was absent, full or shutting down for longer than `patience`."""


class ProtocolError(WarpgaugeError):
    """No server of this version gives such an answer: it comes from another version or another program."""


class AnswerTooLargeError(WarpgaugeError):
    """The answer has more bytes than the client accepts (`max_answer_bytes`)."""


class JobFailedError(WarpgaugeError):
    """The job ended without a report: `state` is `failed` or `cancelled`, `code` has the reason."""

    def __init__(self, job_id: str, state: str, code: str | None, message: str | None) -> None:
        self.job_id, self.state, self.code = job_id, state, code
        why = f": {message}" if message else ""
        super().__init__(f"job {job_id} is {state}{f' ({code})' if code else ''}{why}")


class Failure(NamedTuple):
    """Why a function, or one iteration of a loop, has no result."""

    #: Number of the iteration; `None`: the function as a whole.
    iteration: int | None
    #: `raised`, `died`, `timed_out`, `too_large`, `out_of_memory`, `not_data`, `broken`, `unavailable`.
    code: str
    message: str
    #: The traceback on the server, with lines of the caller's files.
    traceback: str = ""


class FunctionError(WarpgaugeError):
    """A function on a server raised or did not end: `failures` has the iterations with their reasons.

    Results of other iterations are kept, and a repeated call computes only those that are missing. `completed` is
    their number.
    """

    def __init__(self, name: str, failures: Sequence[Failure], completed: int, count: int | None) -> None:
        self.failures, self.completed, self.count = tuple(failures), completed, count
        first = failures[0]
        if first.iteration is None:
            text = f"{name} failed on the server ({first.code}): {first.message}"
        else:
            which = ", ".join(str(failure.iteration) for failure in failures[:20])
            more = ", …" if len(failures) > 20 else ""
            text = (
                f"{name}: {len(failures)} of {count} iterations failed ({which}{more}); {completed} results are kept, "
                f"the same call again makes the others. Iteration {first.iteration} ({first.code}): {first.message}"
            )
        super().__init__(f"{text}\n{first.traceback}" if first.traceback else text)


_ADVICE = {
    400: "correct the request at `path`",
    401: "give the client a key: api_key=, or the variable WARPGAUGE_API_KEY",
    403: "use a key that may do this",
    404: "see whether the job was another key's or has been removed, and whether the URL is the server's",
    409: "use another idempotency key, or look at the job",
    413: "send less data, let the server generate inputs (`Tensor(init=...)`), or raise its limits",
    429: "send less at once, or give the client more patience",
    500: "look at the server's log, under the id in `details`",
    503: "see `client.capabilities()` for what the server lacks",
}


class ApiError(WarpgaugeError):
    """The server rejected a request.

    `status` is that of HTTP, `code` is stable, `path` names the field (`kernel.io.args[0].name`), `message` is for
    people, `advice` is the remedy, and `validation_errors` has every problem of a contract.
    """

    def __init__(self, status: int, body: ErrorBody) -> None:
        self.status = status
        self.code: str = body["code"]
        self.message: str = body["error"]
        self.path: str | None = body.get("path")
        self.job_id: str | None = body.get("job_id")
        self.details: str | None = body.get("details")
        self.validation_errors: Sequence[ValidationError] = body.get("validation_errors", [])
        self.advice = _ADVICE.get(status, "see the server's log")
        place = f" at `{self.path}`" if self.path and self.path not in self.message else ""
        super().__init__(f"{self.message}{place} [{self.code}, HTTP {status}]; {self.advice}")
