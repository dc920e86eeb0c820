"""Tensors that a server holds and that any number of processes have open.

`TensorClient` has the methods of the GPU Tensor Server's client, and a few more.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

from .absence import absent
from .errors import ApiError, ArgumentError, ServerUnavailableError
from .transport import error_of, parse_object

if TYPE_CHECKING:
    import httpx

    from .models import SharedTensor, TensorHandle, TensorList

_TIMEOUT_S = 300.0
# Number of heartbeats in the duration of a lease, so that one may be late.
_BEATS = 3
# Represents no lease: the thread only computes the time of its next heartbeat.
_LOOK = ""

Library = Literal["auto", "numpy", "torch", "cupy", "memory"]


class TensorClient:
    """A client of a server's shared tensors, for programs without asyncio. Threads may share a client.

    `host` (a name, or a whole URL) and `port` are the server's address, or `url`, or else the variable
    WARPGAUGE_SERVER. A thread sends heartbeats for open tensors. Their leases are released when the arrays are
    collected, or by `close`. If a process ends without either, its leases expire.
    """

    def __init__(
        self,
        host: str | None = None,
        port: int = 8000,
        *,
        url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        import httpx

        if url is None and host is not None and "://" in host:
            url = host
        if url is None:
            given = os.environ.get("WARPGAUGE_SERVER") if host is None else None
            url = given or f"http://{host or '127.0.0.1'}:{port}"
        if not url.startswith(("http://", "https://")):
            raise ArgumentError(f"{url!r} is no URL of a server; it begins with http:// or https://")
        key = api_key or os.environ.get("WARPGAUGE_API_KEY") or None
        headers = {"Accept-Encoding": "identity", "User-Agent": "warpgauge-python/0.1.0"}
        authority = os.environ.get("WARPGAUGE_CA_CERT")
        self.url = url.rstrip("/")
        verify: Any = True
        if authority and url.startswith("https://"):
            import ssl

            verify = ssl.create_default_context(cafile=authority)
        self._http = httpx.Client(
            base_url=self.url,
            headers={**headers, **({"X-API-Key": key} if key else {})},
            timeout=httpx.Timeout(_TIMEOUT_S, connect=10.0),
            verify=verify,
        )
        # Duration of each lease, seconds.
        self._leases: dict[str, float] = {}
        # Leases to release, and None at the end. Finalizers also use the queue, at any moment, which this class of
        # queue supports.
        self._told: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._heart: threading.Thread | None = None

    def __enter__(self) -> TensorClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases all leases and closes the connections. Arrays in use may lose their memory."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            heart = self._heart
        if heart is not None:
            self._told.put(None)
            heart.join()
        for lease in list(self._leases):
            self.release(lease)
        self._http.close()

    # Methods of the GPU Tensor Server's client.

    def upload_wav_file(self, path: str | Path, cuda_device: int = 0, **options: Any) -> str:
        """Uploads a WAV file and returns the tensor's id. Options are those of `upload_file`."""
        return self.upload_file(path, cuda_device, **options)

    def access_shared_tensor(self, tensor_id: str, library: Library = "auto") -> Any:
        """Returns the tensor without a copy: all processes see changes of it.

        In the host's memory `auto` is a tensor of PyTorch if that is installed, else an array of NumPy. On a GPU it is
        a tensor of PyTorch, or else an array of CuPy. On an emulated device it is a tensor of PyTorch for the CPU, or
        else `memory`: an object that reads and writes device memory through the driver alone (`CudaMemory`).
        """
        from .shared_memory import opened

        handle = self.get_handle(tensor_id)
        lease = handle["lease_id"]
        try:
            return opened(handle, library, lambda: self._told.put(lease))
        except BaseException:
            self.release(lease)
            raise

    def get_tensor_handle(self, tensor_id: str) -> TensorHandle:
        """Does the same as `get_handle`."""
        return self.get_handle(tensor_id)

    def upload_cpu_tensor(self, tensor: object, sample_rate: int | None = None, cuda_device: int = 0) -> str:
        """Uploads a tensor of PyTorch, from the CPU or a GPU, and returns the id of the shared tensor."""
        if getattr(tensor, "is_cuda", False):
            tensor = tensor.cpu()  # type: ignore[attr-defined]
        return self.upload_array(tensor, cuda_device, sample_rate=sample_rate)

    def delete_tensor(self, tensor_id: str) -> Mapping[str, Any] | Literal[False]:
        """Deletes a tensor. Returns false if it is absent already. Its memory stays until no process has it open."""
        try:
            return self._json("DELETE", f"/tensors/{tensor_id}")
        except ApiError as error:
            if error.status not in (404, 410):
                raise
            return False

    def get_tensor_info(self, tensor_id: str) -> SharedTensor:
        """Returns the properties of a tensor."""
        return cast("SharedTensor", self._json("GET", f"/tensors/{tensor_id}"))

    def list_tensors(self) -> list[SharedTensor]:
        """Returns the tensors of this key."""
        return self.tensor_list()["tensors"]

    def get_cuda_info(self) -> Mapping[str, Any]:
        """Returns the CUDA GPUs of the server."""
        return self._json("GET", "/cuda/info")

    # Further methods.

    def tensor_list(self) -> TensorList:
        """Returns the whole answer of `GET /tensors`: `tensors`, their number, and their bytes."""
        return cast("TensorList", self._json("GET", "/tensors"))

    def upload_file(
        self,
        path: str | Path,
        cuda_device: int = 0,
        *,
        tensor: str | None = None,
        sample_rate: int | None = None,
        ttl_s: float | None = None,
        evict: bool = False,
    ) -> str:
        """Uploads a WAV, `.npy` or `.safetensors` file and returns the tensor's id; `tensor` names one of several."""
        fields = {"cuda_device": str(cuda_device), "evict": "true" if evict else "false"}
        more = {"tensor": tensor, "sample_rate": sample_rate, "ttl_s": ttl_s}
        fields |= {name: str(value) for name, value in more.items() if value is not None}
        with Path(path).open("rb") as file:
            told = self._json("POST", "/tensors", data=fields, files={"wav_file": (Path(path).name, file)})
        return cast(str, told["tensor_id"])

    def upload_array(
        self,
        array: object,
        cuda_device: int = 0,
        *,
        sample_rate: int | None = None,
        name: str | None = None,
        ttl_s: float | None = None,
        evict: bool = False,
    ) -> str:
        """Uploads an array of NumPy or PyTorch and returns the tensor's id."""
        from .tensors import data_of

        data = data_of(array, "array")
        more = {"sample_rate": sample_rate, "name": name, "ttl_s": ttl_s}
        body = {
            "cuda_device": cuda_device,
            "data_b64": data["data_b64"],
            "dtype": data["dtype"],
            "shape": data["shape"],
            "evict": evict,
            **{key: value for key, value in more.items() if value is not None},
        }
        return cast(str, self._json("POST", "/tensors/from-array", json=body)["tensor_id"])

    def get_data(self, tensor_id: str, format: Literal["npy", "safetensors", "raw"] = "npy") -> bytes:
        """Returns a copy of the present content, as a file."""
        answer = self._send("GET", f"/tensors/{tensor_id}/data", params={"format": format})
        return answer.content

    def get_handle(self, tensor_id: str) -> TensorHandle:
        """Returns the handle that opens the tensor, with a lease that this client renews until `release`."""
        handle = cast("TensorHandle", self._json("GET", f"/tensors/{tensor_id}/handle"))
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            self._leases[handle["lease_id"]] = handle["lease_s"]
            if self._heart is None:
                self._heart = threading.Thread(target=self._beat, name="warpgauge-leases", daemon=True)
                self._heart.start()
        # The thread computes the time of its next heartbeat anew.
        self._told.put(_LOOK)
        return handle

    def release(self, lease_id: str) -> None:
        """Releases a lease, if this client still has it. The tensor must not be used any more."""
        import httpx

        if self._leases.pop(lease_id, None) is None:
            return
        # A server that is absent, or no longer has the lease, needs no release.
        with contextlib.suppress(httpx.HTTPError, RuntimeError):
            self._http.delete(f"/tensor-leases/{lease_id}")

    def _beat(self) -> None:
        last = time.monotonic()
        while True:
            period = min(list(self._leases.values()), default=None)
            due = None if period is None else max(0.0, last + period / _BEATS - time.monotonic())
            try:
                told = self._told.get(timeout=due)
            except queue.Empty:
                last = time.monotonic()
                for lease in list(self._leases):
                    self._renew(lease)
                continue
            if told is None:
                return
            self.release(told)

    def _renew(self, lease: str) -> None:
        import httpx

        # If the server does not answer, the next heartbeat retries.
        with contextlib.suppress(httpx.HTTPError, RuntimeError):
            if self._http.put(f"/tensor-leases/{lease}").status_code == 404:
                self._leases.pop(lease, None)

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        import httpx

        try:
            answer = self._http.request(method, path, **more)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise absent(self.url, error) from None
        except httpx.TransportError as error:
            raise ServerUnavailableError(
                f"{self.url} did not answer ({type(error).__name__}: {error}); see that the server runs there"
            ) from error
        if answer.status_code >= 400:
            raise error_of(answer.status_code, answer.content)
        return answer

    def _json(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        return parse_object(self._send(method, path, **more).content, path)
