"""How many small evaluations a second `AsyncClient.map` does, beside plain HTTP requests at the same server.

    python rate.py SERVER [EVALUATIONS] [ROUNDS]

The plain requests are the same bodies over as many kept connections, by the standard library, with no key, no
report and no arrays. Both take turns in rounds of EVALUATIONS each, so that what else the machine does meets both.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from urllib.parse import urlsplit

from warpgauge import AsyncClient, Report, Tensor
from warpgauge.contract import build

CONCURRENCY = 16
SOURCE = 'extern "C" __global__ void k(int* y) { y[threadIdx.x] = threadIdx.x; }'
ARGS = {"y": Tensor([32], "int32", "output")}
MORE = {"launch": {"grid": 1, "block": 32}, "num_trials": 1, "return_outputs": "all"}


def plain(url: str, count: int) -> float:
    """Seconds that plain requests take."""
    address = urlsplit(url)
    raw = json.dumps(build(SOURCE, ARGS, **MORE).body).encode()  # type: ignore[arg-type]
    work: SimpleQueue[bool] = SimpleQueue()
    for _ in range(count):
        work.put(True)
    for _ in range(CONCURRENCY):
        work.put(False)

    def client() -> None:
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        while work.get():
            connection.request("POST", "/evaluate", raw, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body
        connection.close()

    begin = time.perf_counter()
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        for done in [pool.submit(client) for _ in range(CONCURRENCY)]:
            done.result()
    return time.perf_counter() - begin


def mapped(url: str, count: int) -> float:
    """Seconds that the client takes, from making the requests to the reports."""

    async def main() -> float:
        async with AsyncClient(url) as client:
            begin = time.perf_counter()
            seen = 0
            async for report in client.map([SOURCE] * count, ARGS, concurrency=CONCURRENCY, **MORE):
                assert isinstance(report, Report) and report.compiled
                seen += 1
            assert seen == count
            return time.perf_counter() - begin

    return asyncio.run(main())


def main() -> None:
    url = sys.argv[1]
    count, rounds = (int(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((2, 1000), (3, 3)))
    plain(url, 2 * CONCURRENCY)
    mapped(url, 2 * CONCURRENCY)
    shares, slow, fast = [], 0.0, 0.0
    for turn in range(rounds):
        order = (plain, mapped) if turn % 2 == 0 else (mapped, plain)
        took = {measure: measure(url, count) for measure in order}
        shares.append(took[plain] / took[mapped])
        slow, fast = slow + took[mapped], fast + took[plain]
    done = count * rounds
    print(f"plain {done / fast:.1f}/s, map {done / slow:.1f}/s, share {fast / slow:.3f}")
    print(f"by round: {', '.join(f'{share:.3f}' for share in shares)}; median {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
