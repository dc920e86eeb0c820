"""Ctrl-C in `map`: jobs that run are cancelled, and the program ends at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

from conftest import Scripted, http

SCRIPT = """
import signal, sys, warpgauge
# A shell has what it starts in the background ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
with warpgauge.Client(sys.argv[1]) as client:
    try:
        list(client.map(["__global__ void k() {}"] * 9, concurrency=2))
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_in_map_cancels_what_runs(scripted: Callable[..., Scripted]) -> None:
    deleted = {"job_id": "j", "outcome": "cancelled", "state": "cancelled"}

    def answer(request: bytes) -> bytes:
        if request.startswith(b"POST"):
            server.wait_for(6)
            return b""
        if request.startswith(b"GET"):
            return http(200, {"jobs": [{"job_id": "j"}]})
        return http(200, deleted)

    server = scripted(*[answer] * 6)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, server.url], stdout=subprocess.PIPE)
    server.wait_for(2)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == b"interrupted\n" and process.returncode == 0
    kinds = [request.split(b" ")[0] for request in server.requests]
    assert kinds.count(b"DELETE") == 2
    assert kinds.count(b"POST") == 2
