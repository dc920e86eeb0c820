"""A plug-in for pytest: a test fails when a kernel is wrong, or slower than its baseline.

    @pytest.mark.warpgauge("kernels/scale/contract.yaml", baseline="stored:main")
    def test_scale(): ...

Times are never compared with stored numbers: the baseline runs beside the kernel, by the rules of the gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from .client import Client

_STORED = "stored:"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("warpgauge")
    help_text = "server of warpgauge; without one, a server is started for the session"
    group.addoption("--warpgauge-server", metavar="URL", default=None, help=help_text)
    group.addoption(
        "--warpgauge-device",
        metavar="WHICH",
        default="auto",
        help="devices of a server that is started",
    )
    parser.addini("warpgauge_server", help_text, default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "warpgauge(contract, baseline=None, inconclusive='fail', **policy): fails if the kernel is wrong, or "
        "slower than the baseline (a contract, or 'stored:NAME')",
    )


@pytest.fixture(scope="session")
def warpgauge_client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Provides a client of the server that the options name, or of a server that it starts."""
    import os

    from .client import Client
    from .server import serve

    config = request.config
    url = config.getoption("--warpgauge-server") or config.getini("warpgauge_server")
    url = url or os.environ.get("WARPGAUGE_SERVER")
    if url:
        with Client(url) as client:
            yield client
        return
    with (
        serve(device=config.getoption("--warpgauge-device")) as server,
        Client(server.url) as client,
    ):
        yield client


@pytest.fixture
def warpgauge_check(warpgauge_client: Client, request: pytest.FixtureRequest) -> Any:
    """Provides `check(contract, baseline=None, …)`, which fails the test like the marker, and returns the report."""

    def check_here(contract: object, **more: Any) -> Any:
        return check(warpgauge_client, request.node.nodeid, request.node.path.parent, contract, **more)

    return check_here


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = getattr(item, "fixturenames", None)
        if item.get_closest_marker("warpgauge") and names is not None and "warpgauge_client" not in names:
            names.insert(0, "warpgauge_client")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Runs the marker's check before the test."""
    marker = pyfuncitem.get_closest_marker("warpgauge")
    if marker is not None:
        client = pyfuncitem.funcargs["warpgauge_client"]
        check(client, pyfuncitem.nodeid, pyfuncitem.path.parent, *marker.args, **marker.kwargs)


def check(
    client: Any,
    name: str,
    directory: Path,
    contract: object,
    *,
    baseline: object = None,
    inconclusive: Literal["fail", "skip", "pass"] = "fail",
    **policy: Any,
) -> Any:
    """Fails the test if the kernel is wrong, or worse than the baseline."""
    from .contract import load

    contract = load(_beside(contract, directory))
    if baseline is None:
        report = client.evaluate(contract)
        if report.correct is not True:
            pytest.fail(report.explain(), pytrace=False)
        return report
    case: dict[str, Any] = {
        "name": name.encode()[-128:].decode("utf-8", "ignore"),
        "contract": contract,
    }
    suite: dict[str, Any] = {"cases": [case], "suite": "pytest"}
    if isinstance(baseline, str) and baseline.startswith(_STORED):
        suite["baseline"] = baseline.removeprefix(_STORED)
        # The name of the case in the suite of the stored baseline.
        case["name"] = policy.pop("case", case["name"])
    else:
        case["baseline"] = load(_beside(baseline, directory))
    if policy:
        case["policy"] = policy
    answer = client.gate(suite)
    verdict = answer["verdict"]
    if verdict == "INCONCLUSIVE" and inconclusive != "fail":
        if inconclusive == "skip":
            pytest.skip(_told(answer))
    elif verdict != "PASS":
        pytest.fail(_told(answer), pytrace=False)
    return answer


def _beside(contract: object, directory: Path) -> object:
    return directory / contract if isinstance(contract, (str, Path)) else contract


def _told(answer: Any) -> str:
    from .report import plain

    lines = [f"{answer['verdict']}: {answer.get('statement', '')}"]
    lines += [
        f"{c.get('name')}: {c.get('outcome')} ({c.get('reason')}) {c.get('detail')}" for c in answer.get("cases", [])
    ]
    return "\n".join(plain(line) for line in lines)
