"""`@cluster` and `Client.map` of functions at a real server, which has two places on the CPU."""

from __future__ import annotations

import math
import os
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import needs

import warpgauge
from warpgauge import ApiError, ArgumentError, Client, FunctionError, cluster, configure
from warpgauge.calls import visible
from warpgauge.decorator import bytes_of

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

SCALE = 3
TABLE = np.arange(10.0)
SEEN: list[int] = []
COUNT = 0


def counted() -> int:
    global COUNT
    COUNT += 1
    return COUNT


class Own:
    __slots__ = ()
    factor = 5

    def times(self, x: int) -> int:
        return self.factor * x


def scaled(x: float) -> float:
    return x * SCALE


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


@pytest.fixture(scope="module")
def places(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[warpgauge.Server]:
    """A server with two places, on whatever machine."""
    if torch is None:
        needs("PyTorch")
    config = tmp_path_factory.mktemp("config") / "config.toml"
    config.write_text("[devices]\ntorch_places = 2\n")
    data = os.environ.get("WARPGAUGE_TEST_DATA")
    env = {"WARPGAUGE_DATA_DIR": data} if data else {}
    args = ["--config", str(config)]
    with warpgauge.serve(device="emulator", program_path=program, env=env, args=args) as started:
        with Client(started.url) as client:
            if not client._loop.run(client._client._transport.call("GET", "/functions/places"))["allowed"]:
                needs("PyTorch beside the server")
        configure(server=started.url)
        yield started


@cluster(cores=4, memory="2GB", auto_gpu_parallel=True)
def gpu_computation() -> list[float]:
    results = []
    for _ in range(40):
        x = torch.randn(50, 50).cuda()
        y = torch.mm(x, x.t())
        results.append(y.trace().item())
    return results


def test_the_loop_of_the_function_itself_runs_on_all_places(places: warpgauge.Server) -> None:
    values = gpu_computation()
    assert len(values) == len(set(values)) == 40 and all(1500 < value < 3500 for value in values)
    assert gpu_computation() == values
    plan = gpu_computation.plan
    assert plan.parallel and len(plan.places) == 2 and plan.tally is not None
    assert sum(plan.tally.iterations.values()) == 40
    told = gpu_computation.explain()
    assert "is split, 40 iterations" in told and "the CPU stands in" in told


def test_random_numbers_do_not_depend_on_the_places(places: warpgauge.Server) -> None:
    def drawn(n: int) -> list[Any]:
        r = []
        for _ in range(n):
            r.append((random.random(), np.random.rand(), torch.rand(2)))
        return r

    one = cluster(max_gpu_parallel_jobs=1)(drawn)(12)
    two = cluster(max_gpu_parallel_jobs=2)(drawn)(12)
    other = cluster(seed=1)(drawn)(12)
    for a, b, c in zip(one, two, other, strict=True):
        assert a[:2] == b[:2] and torch.equal(a[2], b[2]) and a[0] != c[0]
    assert len({a[0] for a in one}) == 12


def test_results_are_joined_by_their_types(places: warpgauge.Server) -> None:
    @cluster
    def joined(xs: list[int]) -> Any:
        rows, by_key, total, best = [], {}, 0.0, -1
        for i, x in enumerate(xs):
            if x % 5 == 4:
                continue
            rows.append(np.full(2, x))
            by_key[f"k{x}"] = torch.full((2,), float(x))
            total += 0.1 * x
            best = max(best, i)
        return rows, by_key, total, best

    def by_hand() -> float:
        total = 0.0
        for x in range(30):
            if x % 5 != 4:
                total += 0.1 * x
        return total

    rows, by_key, total, best = joined(list(range(30)))
    assert joined.plan.parallel, joined.explain()
    assert [row[0] for row in rows] == [x for x in range(30) if x % 5 != 4] and rows[0].dtype == np.full(2, 1).dtype
    assert list(by_key) == [f"k{x}" for x in range(30) if x % 5 != 4] and by_key["k3"].tolist() == [3.0, 3.0]
    assert total == by_hand() and best == 28, "added in order, to the last bit"


def test_what_comes_after_the_loop_runs_once(places: warpgauge.Server) -> None:
    @cluster
    def mean(n: int) -> Any:
        offset = torch.ones(3)
        with torch.no_grad():
            return torch.stack([offset * scaled(i) for i in range(n)]).mean(0)

    @cluster
    def filled(n: int) -> Any:
        out = np.zeros((n, 2))
        for i in range(n):
            out[i] = i
        return out.sum(axis=0), out[-1]

    assert mean(5).tolist() == [6.0, 6.0, 6.0] and mean.plan.parallel, mean.explain()
    total, last = filled(11)
    assert filled.plan.parallel and total.tolist() == [55.0, 55.0] and last.tolist() == [10.0, 10.0]


def test_functions_bring_what_they_use(places: warpgauge.Server) -> None:
    offset = np.float32(0.5)

    @cluster
    def uses(n: int, *, shift: float = 1.0) -> Any:
        """A docstring."""
        from collections import Counter

        return [(scaled(i) + shift + offset + math.sqrt(TABLE[i]), even(i), Own().times(i), Counter("a")["a"])
                for i in range(n)]  # fmt: skip

    want = [(scaled(i) + 2.0 + offset + math.sqrt(TABLE[i]), even(i), 5 * i, 1) for i in range(6)]
    assert uses(6, shift=2.0) == want and uses.plan.parallel, uses.explain()
    assert uses.local(6, shift=2.0) == want


def test_what_is_not_split_runs_once_and_says_why(places: warpgauge.Server) -> None:
    @cluster
    def carried(n: int) -> list[int]:
        x, r = 1, []
        for _ in range(n):
            x = x * 2
            r.append(x)
        return r

    @cluster(auto_gpu_parallel=False)
    def asked(n: int) -> list[int]:
        return [i for i in range(n)]

    @cluster
    def early(n: int) -> list[int]:
        if n < 100:
            return [-1]
        return [i for i in range(n)]

    assert carried(4) == [2, 4, 8, 16] and not carried.plan.parallel
    assert "line" in carried.explain() and "`x`" in carried.explain()
    assert asked(3) == [0, 1, 2] and "auto_gpu_parallel is off" in asked.explain()
    assert early(3) == [-1] and "before it comes to the loop" in early.explain()


def test_state_that_only_running_shows_is_found(places: warpgauge.Server) -> None:
    def note(store: list[int], i: int) -> int:
        store.append(i)
        return len(store)

    @cluster
    def hidden(n: int) -> list[int]:
        store: list[int] = []
        r = []
        for i in range(n):
            r.append(note(store, i))
        return r

    @cluster
    def generator(n: int) -> list[float]:
        rng = np.random.default_rng(1)
        return [rng.random() for _ in range(n)]

    @cluster
    def module_global(n: int) -> list[int]:
        return [note(SEEN, i) for i in range(n)]

    @cluster
    def statistics(n: int) -> list[float]:
        layer = torch.nn.BatchNorm1d(3)
        return [layer(torch.randn(4, 3)).sum().item() for _ in range(n)]

    @cluster
    def by_global(n: int) -> list[int]:
        return [counted() for _ in range(n)]

    @cluster
    def kept_by_default(n: int) -> list[int]:
        def helper(x: int, seen: list[int] = []) -> int:  # noqa: B006
            seen.append(x)
            return len(seen)

        return [helper(i) for i in range(n)]

    @cluster
    def kept_by_closure(n: int) -> list[int]:
        count = {"n": 0}

        def bump() -> int:
            count["n"] += 1
            return count["n"]

        r = []
        for _ in range(n):
            r.append(bump())
        return r

    assert kept_by_default(4) == [1, 2, 3, 4] and "`helper`" in kept_by_default.explain()
    assert kept_by_closure(4) == [1, 2, 3, 4] and "`bump`" in kept_by_closure.explain()
    assert len(statistics(3)) == 3 and "`layer`" in statistics.explain()
    assert by_global(3) == [1, 2, 3] and "globals: COUNT" in by_global.explain() and COUNT == 0
    assert hidden(5) == [1, 2, 3, 4, 5] and "`store`" in hidden.explain()
    rng = np.random.default_rng(1)
    assert generator(5) == [rng.random() for _ in range(5)] and "`rng`" in generator.explain()
    assert module_global(3) == [1, 2, 3] and "`SEEN`" in module_global.explain() and SEEN == []


def test_failures_say_which_iterations_and_where(places: warpgauge.Server) -> None:
    @cluster
    def fails(n: int) -> list[int]:
        r = []
        for i in range(n):
            if i in (3, 7):
                raise ValueError(f"no {i}")
            r.append(i)
        return r

    for _ in range(2):
        with pytest.raises(FunctionError) as caught:
            fails(10)
        error = caught.value
        assert [failure.iteration for failure in error.failures] == [3, 7] and (error.completed, error.count) == (8, 10)
        assert error.failures[0].code == "raised" and "test_cluster.py" in error.failures[0].traceback
        assert "raise ValueError" in error.failures[0].traceback and "ValueError: no 3" in str(error)
    assert "8 results of an earlier attempt" in fails.explain()

    @cluster
    def no_such_name() -> int:
        return no_such_thing  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(FunctionError, match="no_such_thing") as caught:
        no_such_name()
    assert caught.value.failures[0].iteration is None


def test_iterations_that_end_their_process_are_told_apart(places: warpgauge.Server) -> None:
    @cluster(timeout=60)
    def dies(n: int) -> list[int]:
        r = []
        for i in range(n):
            if i == 4:
                os._exit(7)
            r.append(i)
        return r

    with pytest.raises(FunctionError) as caught:
        dies(9)
    (failure,) = caught.value.failures
    assert (failure.iteration, failure.code) == (4, "died") and "exit code 7" in failure.message
    assert caught.value.completed == 8
    assert dies.plan.tally is not None and dies.plan.tally.retries == 1


def test_map_gives_results_in_order(places: warpgauge.Server) -> None:
    with Client(places.url) as client:
        assert list(client.map(scaled, range(20))) == [3 * x for x in range(20)]
        assert list(client.map(lambda x: x + SCALE, [1, 2])) == [4, 5]
        assert list(client.map(scaled, [])) == []
        came = list(client.map(lambda x: 1 // x, [1, 0, 2], errors="return"))
        assert came[0] == 1 and isinstance(came[1], FunctionError) and came[2] == 0
        with pytest.raises(FunctionError, match="ZeroDivisionError"):
            list(client.map(lambda x: 1 // x, [1, 0]))
        with pytest.raises(ArgumentError, match="items"):
            list(client.map(scaled))
        with pytest.raises(ArgumentError, match="timeout"):
            list(client.map(scaled, [1], num_trials=3))


def test_what_cannot_be_sent_is_an_error_before_anything_is(places: warpgauge.Server) -> None:
    lock, file = threading.Lock(), Path(__file__).open()  # noqa: SIM115
    generator = (i for i in range(3))
    meta = torch.empty(2, device="meta")
    instance = Own()
    with socket.socket() as connection, file:
        for used, words in (
            (connection, "socket"),
            (file, "read the file first"),
            (lock, "iterations share nothing"),
            (generator, "make a list"),
            (meta, "tensor on meta"),
            (instance, "Own"),
        ):

            @cluster
            def function(used: Any = used) -> int:
                return len([used])

            with pytest.raises(ArgumentError, match=words):
                function()


def test_pickled_objects_travel_where_that_is_wanted(places: warpgauge.Server) -> None:
    layer = torch.nn.Linear(2, 1)

    def applied(n: int) -> list[Any]:
        return [layer(torch.full((2,), float(i))) for i in range(n)]

    with pytest.raises(ArgumentError, match="pickles=True"):
        cluster(applied)(3)
    came = cluster(pickles=True)(applied)(3)
    assert all(torch.allclose(value, layer(torch.full((2,), float(i)))) for i, value in enumerate(came))


def test_a_key_without_the_right_is_told(program: Path) -> None:
    data = os.environ.get("WARPGAUGE_TEST_DATA")
    env = {"WARPGAUGE_API_KEYS": "plain", **({"WARPGAUGE_DATA_DIR": data} if data else {})}
    with (
        warpgauge.serve(device="emulator", program_path=program, env=env) as server,
        Client(server.url, api_key="plain") as client,
        pytest.raises(ApiError, match="function_keys") as caught,
    ):
        list(client.map(scaled, [1]))
    assert caught.value.status == 403


def test_devices_are_chosen_as_cuda_does() -> None:
    gpus = [{"ordinal": number, "uuid": f"GPU-{number}{number}"} for number in range(4)]
    chosen = {
        None: [0, 1, 2, 3], "": [0, 1, 2, 3], "0": [0], "2,0": [2, 0], "1,9,2": [1], "GPU-33": [3],
        "-1": [], "1,1": [1],
    }  # fmt: skip
    for named, ordinals in chosen.items():
        assert [gpu["ordinal"] for gpu in visible(gpus, named)] == ordinals, named


def test_memory_is_read_as_it_is_written() -> None:
    assert [bytes_of(text) for text in ("16GB", "512 MiB", "1.5k", 7)] == [16 * 10**9, 512 << 20, 1500, 7]
    for wrong in ("", "lots", "-1GB", 0):
        with pytest.raises(ArgumentError):
            bytes_of(wrong)
