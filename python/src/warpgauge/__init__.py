"""Evaluates GPU kernels: whether they compile, whether they are correct, and how fast they are.

`Client` and `AsyncClient` use a server, `serve()` starts one. Names are imported at their first use, so that ``import
warpgauge`` takes hardly any time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_client import AsyncClient
    from .async_job import AsyncJob
    from .client import Client, Job
    from .decorator import ClusterFunction, cluster, configure
    from .errors import (
        AnswerTooLargeError,
        ApiError,
        ArgumentError,
        Failure,
        FunctionError,
        JobFailedError,
        ProtocolError,
        ServerUnavailableError,
        WarpgaugeError,
    )
    from .kernels import Kernel
    from .report import ComparisonReport, Report, SweepReport
    from .server import Server, serve
    from .submitted import AsyncJobResult
    from .tensor_client import TensorClient
    from .tensors import InOut, Out, Shared, Surface, Tensor, Texture

__version__ = "0.1.0"

_HOMES = {
    "AnswerTooLargeError": "errors",
    "ApiError": "errors",
    "ArgumentError": "errors",
    "AsyncClient": "async_client",
    "AsyncJob": "async_job",
    "AsyncJobResult": "submitted",
    "Client": "client",
    "ClusterFunction": "decorator",
    "ComparisonReport": "report",
    "Failure": "errors",
    "FunctionError": "errors",
    "InOut": "tensors",
    "Job": "client",
    "JobFailedError": "errors",
    "Kernel": "kernels",
    "Out": "tensors",
    "ProtocolError": "errors",
    "Report": "report",
    "Server": "server",
    "ServerUnavailableError": "errors",
    "Shared": "tensors",
    "Surface": "tensors",
    "SweepReport": "report",
    "Tensor": "tensors",
    "TensorClient": "tensor_client",
    "Texture": "tensors",
    "WarpgaugeError": "errors",
    "cluster": "decorator",
    "configure": "decorator",
    "serve": "server",
}

__all__ = [
    "AnswerTooLargeError",
    "ApiError",
    "ArgumentError",
    "AsyncClient",
    "AsyncJob",
    "AsyncJobResult",
    "Client",
    "ClusterFunction",
    "ComparisonReport",
    "Failure",
    "FunctionError",
    "InOut",
    "Job",
    "JobFailedError",
    "Kernel",
    "Out",
    "ProtocolError",
    "Report",
    "Server",
    "ServerUnavailableError",
    "Shared",
    "Surface",
    "SweepReport",
    "Tensor",
    "TensorClient",
    "Texture",
    "WarpgaugeError",
    "__version__",
    "cluster",
    "configure",
    "serve",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
