"""The client of the Remote GPU Execution Service, by its names, on top of `Client`.

A program that was written for that service changes its import::

    from warpgauge.remote_gpu import RemoteGPUClient

and has the same methods. Arrays are lists or anything that numpy makes an array of; the latter travel as bytes.
"""

from __future__ import annotations

import base64
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .client import Client
from .errors import ArgumentError, WarpgaugeError

_FLOATS = ("values", "x")
_INTEGERS = ("col_indices", "row_ptr")


class SpmvError(WarpgaugeError):
    """A product that was not made: the kernel does not compile, crashed, or gave another one.

    `answer` is the service's whole answer; its `job_id` names the job with the report.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = dict(answer)
        self.job_id: str | None = answer.get("job_id")
        super().__init__(str(answer.get("error") or "the service gave no product and no reason"))


class RemoteGPUClient:
    """A server, as the Remote GPU Execution Service's client sees it.

    `server_url` and `api_key` default to the variables WARPGAUGE_SERVER and WARPGAUGE_API_KEY. `timeout` is how
    long, in seconds, a server that is away or full is asked again.
    """

    def __init__(self, server_url: str | None = None, api_key: str | None = None, *, timeout: float = 120.0) -> None:
        self._client = Client(server_url, api_key=api_key, patience=timeout)

    def __enter__(self) -> RemoteGPUClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def health(self) -> dict[str, Any]:
        """What `GET /health` says."""
        return self._call("GET", "/health")

    def health_check(self) -> bool:
        """Whether the server answers, and is healthy."""
        try:
            return self.health().get("status") == "healthy"
        except WarpgaugeError:
            return False

    def get_info(self) -> dict[str, Any]:
        """What `GET /info` says."""
        return self._call("GET", "/info")

    def get_gpu_info(self) -> dict[str, Any]:
        """The device that kernels run on: `device_name`, `compute_capability` and more."""
        info = self.get_info().get("info")
        if not isinstance(info, dict):
            raise WarpgaugeError("the server has no device; see `get_info()`")
        return info

    def execute_spmv(
        self,
        kernel: bytes | str | Path,
        matrix_data: Mapping[str, Any],
        *,
        num_runs: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Multiplies a matrix in CSR form by a vector; gives `y`, `execution_time_ms` and more.

        `kernel` is a path (`.cubin`, `.fatbin`, `.cu`, `.ptx`, `.py`), the bytes of a cubin or, as `str` with
        `options={"kernel_type": "cuda"}`, source text. `matrix_data` has `num_rows`, `num_cols`, `nnz`, `values`,
        `col_indices`, `row_ptr` and `x`.
        """
        code, options = _kernel(kernel, options)
        double = options.get("dtype") == "float64"
        body: dict[str, Any] = {"kernel": code, "matrix_data": _matrix(matrix_data, double), "options": options}
        if num_runs is not None:
            body["num_runs"] = num_runs
        return _product(self._call("POST", "/execute_spmv", body))

    def compile_and_execute_spmv(
        self,
        kernel_file: str | Path,
        matrix_data: Mapping[str, Any],
        arch: str | None = None,
        *,
        num_runs: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """As `execute_spmv`, of a kernel in CUDA C++ that the server compiles for its own device.

        `arch` is what that device is taken for; a warning tells where it is another.
        """
        if arch is not None:
            self._warn_of(arch)
        source = Path(kernel_file).read_text()
        more = {"kernel_type": "cuda", **(options or {})}
        return self.execute_spmv(source, matrix_data, num_runs=num_runs, options=more)

    def upload_mtx(self, path: str | Path, filename: str | None = None) -> dict[str, Any]:
        """Uploads a Matrix Market file; its name there is the file's own, or `filename`."""
        path = Path(path)
        content = base64.b64encode(path.read_bytes()).decode()
        return self._call("POST", "/upload_mtx", {"filename": filename or path.name, "content": content})

    def check_mtx(self, filename: str) -> dict[str, Any]:
        """Whether there is such a matrix (`exists`), and what it consists of (`matrix`)."""
        return self._call("GET", f"/check_mtx/{quote(filename, safe='')}")

    def list_mtx(self) -> dict[str, Any]:
        """The names of one's matrices (`files`), and what they are (`matrices`)."""
        return self._call("GET", "/list_mtx")

    def execute_spmv_mtx(
        self,
        mtx_filename: str,
        kernel: bytes | str | Path | None = None,
        x: object = None,
        *,
        method: str = "custom",
        num_runs: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Multiplies an uploaded matrix, or a generated one such as `poisson2d:nx=512`, by `x` (default: ones).

        `method="cusparse"` takes no kernel, and needs a server with a GPU and cuSPARSE.
        """
        body: dict[str, Any] = {"mtx_filename": mtx_filename, "method": method}
        if kernel is None:
            options = dict(options or {})
        else:
            body["kernel"], options = _kernel(kernel, options)
        body["options"] = options
        if x is not None:
            body["x"] = _numbers("x", x, "<f8" if options.get("dtype") == "float64" else "<f4")
        if num_runs is not None:
            body["num_runs"] = num_runs
        return _product(self._call("POST", "/execute_spmv_mtx", body))

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return self._client.call(method, path, body)

    def _warn_of(self, arch: str) -> None:
        major, minor = (int(part) for part in self.get_gpu_info()["compute_capability"])
        here = f"sm_{major}{minor}"
        if arch.removesuffix("a") != here:
            warnings.warn(f"the server compiles for its own device, {here}, and not for {arch}", stacklevel=3)


_TYPES = {".cubin": "cubin", ".fatbin": "fatbin", ".cu": "cuda", ".cuh": "cuda", ".ptx": "ptx", ".py": "triton"}


def _kernel(kernel: bytes | str | Path, options: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """A kernel as it travels, and the options with its type."""
    options = dict(options or {})
    if isinstance(kernel, str) and "kernel_type" not in options:
        kernel = Path(kernel)
    if isinstance(kernel, Path):
        kind = _TYPES.get(kernel.suffix.lower())
        if kind is None:
            raise ArgumentError(f"{kernel}: expected a kernel: {', '.join(_TYPES)}")
        options.setdefault("kernel_type", kind)
        kernel = kernel.read_bytes() if kind in ("cubin", "fatbin") else kernel.read_text()
    if isinstance(kernel, bytes):
        return base64.b64encode(kernel).decode(), options
    return kernel, options


def _matrix(data: Mapping[str, Any], double: bool) -> dict[str, Any]:
    types = {**dict.fromkeys(_FLOATS, "<f8" if double else "<f4"), **dict.fromkeys(_INTEGERS, "<i4")}
    return {name: _numbers(name, value, types[name]) if name in types else value for name, value in data.items()}


def _numbers(name: str, value: object, dtype: str) -> object:
    """A list as it is; an array as base64 of its bytes."""
    if isinstance(value, (list, tuple)):
        return list(value)
    import numpy as np

    array = np.asarray(value)
    if array.ndim != 1:
        raise ArgumentError(f"{name}: expected one dimension, not {array.ndim}")
    # Integers that do not fit are no other integers.
    if dtype == "<i4" and (array.dtype.kind not in "iu" or (array.size and not _fits(array))):
        raise ArgumentError(f"{name}: expected integers of 32 bits, not {array.dtype}")
    if dtype != "<i4" and array.dtype.kind not in "fiu":
        raise ArgumentError(f"{name}: expected numbers, not {array.dtype}")
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()


def _fits(array: Any) -> bool:
    return bool(array.min() >= -(2**31) and array.max() < 2**31)


def _product(answer: dict[str, Any]) -> dict[str, Any]:
    result = answer.get("result")
    if not answer.get("success") or not isinstance(result, dict):
        raise SpmvError(answer)
    return {**result, "job_id": answer.get("job_id")}
