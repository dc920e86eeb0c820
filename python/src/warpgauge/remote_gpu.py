"""The client of the Remote GPU Execution Service, by its names, on top of `Client`.

A program that was written for that service changes its import::

    from warpgauge.remote_gpu import RemoteGPUClient

and has the same methods, with the arguments of that client in their order. Arrays are lists or anything that numpy
makes an array of; the latter travel as bytes.
"""

from __future__ import annotations

import base64
import os
import random
import struct
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .client import Client
from .errors import ArgumentError, WarpgaugeError

_FLOATS = ("values", "x")
_INTEGERS = ("col_indices", "row_ptr")


# Maximum wait for a check of the server's health, seconds, as in that service's client.
_HEALTH_S = 5.0


class SpmvError(WarpgaugeError, RuntimeError):
    """A product was not computed: the kernel does not compile, crashed, or computed a wrong product.

    `answer` is the service's whole answer; its `job_id` names the job with the report. `y` is the wrong product of a
    kernel.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = dict(answer)
        self.job_id: str | None = answer.get("job_id")
        self.y: list[float | None] | None = answer.get("y")
        super().__init__(str(answer.get("error") or "the service gave no product and no reason"))


class RemoteGPUClient:
    """A server, with the interface of the Remote GPU Execution Service's client.

    `server_url` and `api_key` default to the variables WARPGAUGE_SERVER and WARPGAUGE_API_KEY, or else GPU_SERVER_URL
    and GPU_API_KEY. `timeout` is how long the client retries while a server restarts or is full, seconds. If no server
    answers at the address, calls fail at once.
    """

    def __init__(self, server_url: str | None = None, api_key: str | None = None, *, timeout: float = 120.0) -> None:
        url = server_url or _variable("WARPGAUGE_SERVER", "GPU_SERVER_URL")
        key = api_key or _variable("WARPGAUGE_API_KEY", "GPU_API_KEY")
        self._client = Client(url, api_key=key, patience=timeout)
        self._impatient = Client(url, api_key=key, patience=min(timeout, _HEALTH_S))
        # Uploads of this client by path: the file's state, and the hash of the content at the server.
        self._uploaded: dict[Path, tuple[tuple[int, int], str]] = {}

    def __enter__(self) -> RemoteGPUClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()
        self._impatient.close()

    def health(self) -> dict[str, Any]:
        """Returns the answer of `GET /health`."""
        return self._call("GET", "/health")

    def health_check(self) -> bool:
        """Returns whether the server answers within five seconds, and is healthy."""
        try:
            return self._impatient.call("GET", "/health").get("status") == "healthy"
        except WarpgaugeError:
            return False

    def get_info(self) -> dict[str, Any]:
        """Returns the answer of `GET /info`."""
        return self._call("GET", "/info")

    def get_gpu_info(self) -> dict[str, Any]:
        """Returns the device that kernels run on: `device_name`, `compute_capability` and more."""
        info = self.get_info().get("info")
        if not isinstance(info, dict):
            raise WarpgaugeError("the server has no device; see `get_info()`")
        return info

    def get_server_arch(self) -> str | None:
        """Returns the architecture of the device, such as `sm_90`, or `None` if the server has no device."""
        info = self.get_info().get("info")
        if not isinstance(info, dict):
            return None
        major, minor = info["compute_capability"]
        return f"sm_{major}{minor}"

    def compile_cuda_kernel(
        self, cu_file: str | Path, output_cubin: str | Path | None = None, arch: str | None = None
    ) -> str:
        """Compiles a kernel at the server and returns the path of the image. The default is `cu_file` with the ending
        `.cubin`.

        Without `arch` the image is for the server's device. For an emulated device it is PTX.
        """
        source = Path(cu_file)
        body: dict[str, Any] = {
            "kernel": {"kernel_type": "cuda", "source_code": source.read_text()},
            "return_image": True,
        }
        if arch is not None:
            body["arch"] = arch
        answer = self._call("POST", "/compile", body)
        if not answer.get("compiled"):
            message = f"CUDA compilation failed:\n{answer.get('compilation_error')}"
            raise SpmvError({**answer, "error": message})
        target = Path(output_cubin) if output_cubin is not None else source.with_suffix(".cubin")
        target.write_bytes(base64.b64decode(answer["image_b64"]))
        return str(target)

    def execute_spmv_csr(
        self,
        cubin_file: bytes | str | Path,
        matrix_data: Mapping[str, Any],
        num_runs: int | None = None,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Does the same as `execute_spmv`."""
        return self.execute_spmv(cubin_file, matrix_data, num_runs, options=options)

    def execute_spmv(
        self,
        kernel: bytes | str | Path,
        matrix_data: Mapping[str, Any],
        num_runs: int | None = None,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Multiplies a matrix in CSR form by a vector. Returns `y`, `execution_time_ms` and more.

        `kernel` is a path (`.cubin`, `.fatbin`, `.cu`, `.ptx`, `.py`), the bytes of a cubin, a fat binary or PTX, or,
        as `str` with `options={"kernel_type": "cuda"}`, source text. `matrix_data` has `num_rows`, `num_cols`, `nnz`,
        `values`, `col_indices`, `row_ptr` and `x`.
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
        num_runs: int | None = None,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Does the same as `execute_spmv` with a kernel in CUDA C++, which the server compiles for its device.

        `arch` is the expected architecture of that device; a warning reports another one.
        """
        if arch is not None:
            self._warn_of(arch)
        source = Path(kernel_file).read_text()
        more = {"kernel_type": "cuda", **(options or {})}
        return self.execute_spmv(source, matrix_data, num_runs, options=more)

    def upload_mtx(self, path: str | Path, filename: str | None = None) -> dict[str, Any]:
        """Uploads a Matrix Market file. Its name at the server is that of the file, or `filename`."""
        path = Path(path)
        content = base64.b64encode(path.read_bytes()).decode()
        return self._call("POST", "/upload_mtx", {"filename": filename or path.name, "content": content})

    def upload_mtx_file(self, mtx_file_path: str | Path) -> dict[str, Any]:
        """Uploads a file under its name, like `upload_mtx`."""
        return self.upload_mtx(mtx_file_path)

    def check_mtx_exists(self, mtx_filename: str) -> dict[str, Any]:
        """Does the same as `check_mtx`."""
        return self.check_mtx(mtx_filename)

    def list_mtx_files(self) -> list[dict[str, Any]]:
        """Returns the caller's matrices: `filename`, `num_rows`, `num_cols`, `nnz` and more of each."""
        return list(self.list_mtx()["matrices"])

    def check_mtx(self, filename: str) -> dict[str, Any]:
        """Returns whether there is such a matrix (`exists`), and its properties (`matrix`)."""
        return self._call("GET", f"/check_mtx/{quote(filename, safe='')}")

    def list_mtx(self) -> dict[str, Any]:
        """Returns the names of the caller's matrices (`files`), and their properties (`matrices`)."""
        return self._call("GET", "/list_mtx")

    def execute_spmv_mtx(
        self,
        cubin_file: bytes | str | Path | None = None,
        mtx_filename: bytes | str | Path | None = None,
        x: object = None,
        method: str = "custom",
        num_runs: int | None = None,
        *,
        kernel: bytes | str | Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Multiplies an uploaded matrix, or a generated one such as `poisson2d:nx=512`, by `x` (default: ones).

        The kernel is as in `execute_spmv`. Kernel and matrix may be in either order if their names distinguish them;
        `kernel` is another name of `cubin_file`. `method="cusparse"` takes no kernel, and needs a server with a GPU
        and cuSPARSE.
        """
        kernel, mtx_filename = _kernel_and_matrix(cubin_file, mtx_filename, kernel)
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

    def upload_and_execute_spmv(
        self,
        cu_file: str | Path | None,
        mtx_file: str | Path,
        x: object = None,
        arch: str | None = None,
        method: str = "custom",
        num_runs: int | None = None,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Uploads a matrix, compiles a kernel, and multiplies. A file that this client uploaded before is not uploaded
        again if the server still has it. Without `x` the vector is random."""
        path = Path(mtx_file)
        info = self._uploaded_matrix(path)
        if x is None:
            x = _Packed(random.gauss(0.0, 1.0) for _ in range(info["num_cols"]))
        if method == "cusparse":
            return self.execute_spmv_mtx(None, path.name, x, method, num_runs, options=options)
        if cu_file is None:
            raise ArgumentError(f"cu_file: the method {method!r} needs a kernel")
        if arch is not None:
            self._warn_of(arch)
        more = {"kernel_type": "cuda", **(options or {})}
        return self.execute_spmv_mtx(Path(cu_file).read_text(), path.name, x, method, num_runs, options=more)

    def _uploaded_matrix(self, path: Path) -> dict[str, Any]:
        path = path.resolve()
        state = path.stat()
        now = (state.st_mtime_ns, state.st_size)
        matrix = self.check_mtx(path.name).get("matrix")
        # A file at the server with this name and another content is another matrix.
        if matrix is None or self._uploaded.get(path) != (now, matrix["blake3"]):
            matrix = self.upload_mtx(path)["matrix"]
            self._uploaded[path] = (now, matrix["blake3"])
        return dict(matrix)

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return self._client.call(method, path, body)

    def _warn_of(self, arch: str) -> None:
        here = self.get_server_arch()
        if here is not None and arch.removesuffix("a") != here:
            warnings.warn(f"the server compiles for its own device, {here}, and not for {arch}", stacklevel=3)


class _Packed:
    """Numbers that are sent as bytes, in the element type of the request."""

    def __init__(self, numbers: Iterable[float]) -> None:
        self._numbers = list(numbers)

    def base64(self, dtype: str) -> str:
        letter = "d" if dtype == "<f8" else "f"
        return base64.b64encode(struct.pack(f"<{len(self._numbers)}{letter}", *self._numbers)).decode()


def _variable(*names: str) -> str | None:
    """Returns the first of these variables that is set and not empty."""
    return next((value for name in names if (value := os.environ.get(name))), None)


# The server examines the content of a `.cubin` file, which may be a fat binary or PTX.
_TYPES = {".cubin": "cubin", ".fatbin": "fatbin", ".cu": "cuda", ".cuh": "cuda", ".ptx": "ptx", ".py": "triton"}


def _kernel(kernel: bytes | str | Path, options: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Returns a kernel in the form of a request, and the options with its type."""
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


def _kernel_and_matrix(
    first: bytes | str | Path | None, second: bytes | str | Path | None, kernel: bytes | str | Path | None
) -> tuple[bytes | str | Path | None, str]:
    """Returns the kernel and the name of the matrix. Earlier versions of the client had the matrix first."""
    given = [one for one in (first, second, kernel) if one is not None]
    if kernel is None:
        kernel = next((one for one in given if _is_kernel(one)), None)
        # The name of source text does not show that it is a kernel.
        if kernel is None and len(given) == 2:
            kernel = first
    names = [one for one in given if one is not kernel]
    if len(names) != 1 or isinstance(names[0], bytes):
        raise ArgumentError("execute_spmv_mtx: give a kernel, where the method takes one, and the name of a matrix")
    return kernel, str(names[0])


def _is_kernel(value: bytes | str | Path) -> bool:
    return isinstance(value, bytes) or Path(value).suffix.lower() in _TYPES or "\n" in str(value)


def _matrix(data: Mapping[str, Any], double: bool) -> dict[str, Any]:
    types = {**dict.fromkeys(_FLOATS, "<f8" if double else "<f4"), **dict.fromkeys(_INTEGERS, "<i4")}
    return {name: _numbers(name, value, types[name]) if name in types else value for name, value in data.items()}


def _numbers(name: str, value: object, dtype: str) -> object:
    """Returns a list unchanged, and an array as base64 of its bytes."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, _Packed):
        return value.base64(dtype)
    import numpy as np

    array = np.asarray(value)
    if array.ndim != 1:
        raise ArgumentError(f"{name}: expected one dimension, not {array.ndim}")
    # Integers that do not fit must not become other integers.
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
