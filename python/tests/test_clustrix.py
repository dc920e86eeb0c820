"""Functions as programs for ClustriX write them: its options, its README's examples, methods, and what is printed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import needs

import warpgauge
from warpgauge import ArgumentError, Client, FunctionError, cluster, configure
from warpgauge.clustrix import seconds_of

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def configured(server: warpgauge.Server) -> None:
    if torch is None:
        needs("PyTorch")
    with Client(server.url) as client:
        if not client._loop.run(client._client._transport.call("GET", "/functions/places"))["allowed"]:
            needs("PyTorch beside the server")
    configure(server=server.url)


# What the examples of ClustriX's README do: code for a program of its own, in which the GPUs are counted or used.


@cluster(cores=2, memory="8GB")
def gpu_count() -> dict[str, Any]:
    import subprocess

    code = "import torch; print(f'GPUS {torch.cuda.device_count()}')"
    pipe = subprocess.PIPE
    ended = subprocess.run(["python", "-c", code], stdout=pipe, stderr=pipe, universal_newlines=True, timeout=30)  # noqa: UP021
    return {"output": ended.stdout}


def trace_on(gpu: int) -> Any:
    def task() -> dict[str, Any]:
        import subprocess

        code = f"""
import torch
torch.cuda.set_device({gpu})
device = torch.device('cuda:{gpu}')
square = torch.eye(50, device=device)
print(f'{gpu}: {{torch.mm(square, square).trace().item()}}')
"""
        ended = subprocess.run(["python", "-c", code], capture_output=True, text=True, timeout=60)
        return {"output": ended.stdout, "success": ended.returncode == 0}

    return task


@cluster(cores=2, memory="8GB")
def traces() -> list[float]:
    results = []
    for _ in range(100):
        matrix = torch.randn(100, 100).cuda()
        results.append(torch.mm(matrix, matrix.t()).trace().item())
    return results


@cluster(cores=1, memory="4GB", auto_gpu_parallel=False)
def squares() -> list[int]:
    return [index * index for index in range(3)]


def test_what_the_examples_of_the_readme_do() -> None:
    assert gpu_count()["output"].startswith("GPUS ")
    tasks = [cluster(trace_on(gpu))() for gpu in range(2)]
    assert tasks == [{"output": f"{gpu}: 50.0\n", "success": True} for gpu in range(2)]
    configure(auto_gpu_parallel=True, max_gpu_parallel_jobs=4)
    assert len(traces()) == 100 and traces.plan.parallel
    assert squares() == [0, 1, 4] and not squares.plan.parallel
    configure(max_gpu_parallel_jobs=8)


@cluster
def programs() -> list[Any]:
    import os
    import subprocess

    came: list[Any] = []
    for start in (
        lambda: subprocess.run(["nvidia-smi"]),
        lambda: subprocess.check_output("python -c 1", shell=True),
        lambda: subprocess.run(["python", "script.py"]),
        lambda: os.system("true"),
    ):
        try:
            came.append(start())
        except PermissionError as error:
            came.append(str(error))
    code = "import sys; print(sys.argv, sys.stdin.read())"
    came.append(subprocess.check_output(["python3", "-c", code, "a"], input=b"in"))
    wrong = subprocess.run(["python", "-c", "print('x'); 1 / 0"], capture_output=True, text=True)
    came.append((wrong.returncode, wrong.stdout, wrong.stderr.splitlines()[-1]))
    came.append(subprocess.run(["python", "-c", "import sys; sys.exit(3)"]).returncode)
    try:
        subprocess.run(["python", "-c", "while True: pass"], timeout=0.2)
    except subprocess.TimeoutExpired as late:
        came.append(late.timeout)
    return came


def test_a_program_that_a_function_starts_is_refused_with_the_reason() -> None:
    *refused, output, wrong, code, late = programs()
    assert all("starts no programs" in reason for reason in refused), refused
    assert output == b"['-c', 'a'] in\n"
    assert wrong == (1, "x\n", "ZeroDivisionError: division by zero")
    assert (code, late) == (3, 0.2)

    @cluster
    def unhandled():
        import subprocess

        subprocess.run(["nvidia-smi"])

    with pytest.raises(FunctionError, match=r"nvidia-smi.*starts no programs"):
        unhandled()


@dataclass
class Base:
    scale: int

    def scaled(self, x: int) -> int:
        return self.scale * x


class Model(Base):
    def __init__(self, scale: int) -> None:
        super().__init__(scale)
        self.__secret = 1
        self.itself = self

    @cluster
    def times(self, x: int) -> int:
        return self.scaled(x) + self.__secret + (self.itself is self)

    @cluster(auto_gpu_parallel=False)
    def scaled(self, x: int) -> int:
        return super().scaled(x) * 10

    @cluster
    def rows(self, count: int) -> list[int]:
        rows = []
        for index in range(count):
            rows.append(index * self.scale)
        return rows


class Slotted:
    __slots__ = ("x",)

    def __init__(self) -> None:
        self.x = 1

    @cluster
    def get(self) -> int:
        return self.x


def test_methods_run_with_their_instance() -> None:
    model = Model(3)
    assert model.times(5) == 3 * 5 * 10 + 2 == model.times.local(5)
    assert model.scaled(2) == 60
    assert model.rows(4) == [0, 3, 6, 9] and model.rows.plan.parallel
    assert "is split" in model.rows.explain()
    with pytest.raises(ArgumentError, match="Slotted"):
        Slotted().get()


# fmt: off
def indented() -> Any:
    if True:

        @cluster
        def left(n: int) -> Any:
            text = """
at column 0
        indented by eight
"""
# A comment at column 0.
            return text, n

    return left
# fmt: on


def test_an_indented_function_may_have_anything_at_column_0() -> None:
    assert indented()(4) == ("\nat column 0\n        indented by eight\n", 4)


# fmt: off
@cluster
def several_lines(x: int) -> Any:
    return (1 +
            x +
            len("a"
                "b") + [
                x // 0])
# fmt: on


def test_a_traceback_has_the_lines_of_an_expression_over_several_lines() -> None:
    with pytest.raises(FunctionError) as caught:
        several_lines(1)
    lines = Path(__file__).read_text().splitlines()
    number = next(index for index, line in enumerate(lines, 1) if "x // 0]" in line)
    assert f'File "<{Path(__file__).name}>", line {number}, in several_lines' in caught.value.failures[0].traceback


@cluster
def prints(n: int) -> int:
    print("once\x1b[2J\r")
    if n == 0:
        raise ValueError
    return n


@cluster
def prints_in_a_loop(n: int) -> list[int]:
    rows = []
    for index in range(n):
        print("iteration", index)
        rows.append(index)
    return rows


def test_what_is_printed_reaches_the_caller(server: warpgauge.Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert prints(1) == 1
    # What would control a terminal does not come.
    assert capsys.readouterr().out == "once[2J\n"
    with pytest.raises(FunctionError):
        prints(0)
    assert capsys.readouterr().out.startswith("once")
    assert len(prints_in_a_loop(20)) == 20
    assert prints_in_a_loop.plan.parallel
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("iteration")]
    assert printed == [f"iteration {index}" for index in range(20)]
    with Client(server.url) as client:
        assert list(client.map(lambda x: print("item", x), [1])) == [None]
    assert capsys.readouterr().out == "item 1\n"


def test_options_of_clustrix_are_taken_and_explained() -> None:
    with pytest.warns(UserWarning, match="has no effect here") as warned:

        @cluster(cores=1, time="00:10:00", partition="gpu", queue="long", environment="conda", parallel=False)
        def whole(n: int) -> list[int]:
            rows = []
            for index in range(n):
                rows.append(index)
            return rows

    assert [str(one.message).split()[0] for one in warned] == ["partition", "queue", "environment"]
    assert warned[0].filename == __file__
    assert whole(3) == [0, 1, 2] and not whole.plan.parallel
    assert "partition has no effect here: calls wait in the server's one queue" in whole.explain()
    assert whole._options().timeout == 600.0
    with pytest.raises(ArgumentError, match="did you mean partition"):
        cluster(partitoin="gpu")
    with pytest.raises(ArgumentError, match="cluster_hots"):
        configure(cluster_hots="h")

    submitted = cluster(async_submit=True)(lambda x: x + 1)(2)
    assert submitted.get_result(timeout=60) == 3
    assert submitted.is_complete() and submitted.get_status() == "completed" and submitted.get_runtime() > 0
    failed = cluster(async_submit=True)(prints)(0)
    with pytest.raises(FunctionError):
        failed.wait(60)
    assert failed.get_status() == "failed"


CONFIGURED = """
import sys, warnings
from warpgauge import cluster, configure
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    configure(cluster_type="slurm", cluster_host="cluster.example.org", username="me", k8s_namespace="n",
              default_cores=1, default_memory="1GB", default_time="00:05:00", auto_parallel=False, server=sys.argv[1])
print([str(one.message).split()[0] for one in caught])

def rows(n):
    made = []
    for index in range(n):
        made.append(index)
    return made

made = cluster(rows)
print(made(3), made.plan.parallel, made._options().timeout)
print("cluster_type has no effect here" in made.explain())
"""


def test_a_configuration_of_clustrix_is_taken_and_explained(server: warpgauge.Server, tmp_path: Path) -> None:
    # In a process of its own, since it is for all functions.
    script = tmp_path / "configured.py"
    script.write_text(CONFIGURED)
    command = [sys.executable, str(script), server.url]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert ended.stdout.splitlines() == [
        "['cluster_type', 'cluster_host', 'username', 'k8s_namespace']",
        "[0, 1, 2] False 300.0",
        "True",
    ]


def test_times_are_read_as_batch_systems_write_them() -> None:
    written = {"01:00:00": 3600, "90:30": 5430, "5": 300, 2: 120, "1-00": 86400, "1-12:30": 131400, "2-0:0:5": 172805}
    assert {text: seconds_of(text) for text in written} == written
    for wrong in ("", "soon", "1:2:3:4", "00:00:00", "-1", 0):
        with pytest.raises(ArgumentError):
            seconds_of(wrong)
