"""Writes the gate's comment on a pull request, or replaces the one that an earlier run wrote.

  python3 comment.py COMMENT.md

From the environment: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_TOKEN and PULL_REQUEST (the number). The token needs
`pull-requests: write`. Python's own library is enough. The first line of the file names the suite; the comment of the
same author that begins with it is replaced.

The exit code is 0 where the comment is written, and where the token may not write comments, as that of a pull request
from a fork: a warning says so.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from typing import Any

# GitHub lists at most 100 comments at a time.
PAGE = 100
# Comments that are looked at: the newest request needs no more, and a loop has an end.
MAX_PAGES = 30
# Bytes of an answer that are read.
MAX_ANSWER = 64 << 20
TIMEOUT_S = 30


class Refused(Exception):
    """The token may not do this."""


def ask(method: str, url: str, token: str, body: dict[str, str] | None = None) -> Any:
    """Returns the answer of the API; `Refused` for 401, 403 and 404."""
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("Accept", "application/vnd.github+json")
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("X-GitHub-Api-Version", "2022-11-28")
    request.add_header("User-Agent", "warpgauge-gate")
    if body is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(MAX_ANSWER))
    except urllib.error.HTTPError as error:
        said = error.read(500).decode(errors="replace")
        message = f"{method} {url}: {error.code} {error.reason}: {said}"
        if error.code in (401, 403, 404):
            raise Refused(message) from error
        raise SystemExit(f"comment.py: {message}") from error
    except (OSError, ValueError) as error:
        raise SystemExit(f"comment.py: {method} {url}: {error}") from error


def own_login(api: str, token: str) -> str | None:
    """The user of a personal token; none for a workflow's token, whose comments are those of a bot."""
    try:
        return str(ask("GET", f"{api}/user", token)["login"])
    except Refused:
        return None


def earlier(comments: str, token: str, mark: str, login: str | None) -> int | None:
    """The comment of an earlier run. Comments of other users are not looked at: they could be made to look like it."""
    for page in range(1, MAX_PAGES + 1):
        found = ask("GET", f"{comments}?per_page={PAGE}&page={page}", token)
        for comment in found:
            user = comment.get("user") or {}
            is_own = user.get("type") == "Bot" if login is None else user.get("login") == login
            if is_own and str(comment.get("body") or "").splitlines()[:1] == [mark]:
                return int(comment["id"])
        if len(found) < PAGE:
            return None
    return None


def variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise SystemExit(f"comment.py: the environment has no {name}")
    return value


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: comment.py COMMENT.md")
    with open(sys.argv[1], encoding="utf-8") as file:
        body = file.read()
    mark = body.split("\n", 1)[0]
    number, repository = variable("PULL_REQUEST"), variable("GITHUB_REPOSITORY")
    if not number.isdecimal() or not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise SystemExit(f"comment.py: there is no pull request {number} of {repository}")
    api, token = variable("GITHUB_API_URL").rstrip("/"), variable("GITHUB_TOKEN")
    repository = f"{api}/repos/{repository}"
    comments = f"{repository}/issues/{number}/comments"
    try:
        found = earlier(comments, token, mark, own_login(api, token))
        if found is None:
            ask("POST", comments, token, {"body": body})
        else:
            ask("PATCH", f"{repository}/issues/comments/{found}", token, {"body": body})
    except Refused as error:
        said = str(error).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        advice = "give the job `permissions: {pull-requests: write}`; pull requests from forks have no such token"
        print(f"::warning title=warpgauge gate::no comment on the pull request: {advice} ({said})")


if __name__ == "__main__":
    main()
