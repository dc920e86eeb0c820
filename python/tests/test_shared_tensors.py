"""Shared tensors: what one process changes, all see."""

from __future__ import annotations

import base64
import ctypes
import gc
import io
import subprocess
import sys
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Scripted, http, needs

import warpgauge
from warpgauge import ApiError, ArgumentError, ProtocolError, TensorClient
from warpgauge.cuda_memory import CudaError, CudaMemory

# The client in a process of its own: opens a tensor, changes it in place, and ends.
CHANGE = """
import sys
from warpgauge import TensorClient
with TensorClient(url=sys.argv[1]) as client:
    shared = client.access_shared_tensor(sys.argv[2], {library!r})
    {change}
    del shared
"""


@pytest.fixture
def tensors(server: warpgauge.Server) -> Iterator[TensorClient]:
    with TensorClient(url=server.url) as one:
        yield one
        for left in one.list_tensors():
            one.delete_tensor(left["tensor_id"])


def elsewhere(tensors: TensorClient, tensor_id: str, change: str, library: str = "numpy") -> None:
    code = CHANGE.format(change=change, library=library)
    subprocess.run([sys.executable, "-c", code, tensors.url, tensor_id], check=True, timeout=300)


def content(tensors: TensorClient, tensor_id: str) -> Any:
    return np.load(io.BytesIO(tensors.get_data(tensor_id)))


def test_a_change_in_one_process_is_seen_in_all(tensors: TensorClient, tmp_path: Path) -> None:
    samples = (np.arange(-50, 50) * 100).astype("<i2")
    with wave.open(str(tmp_path / "audio.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples.tobytes())
    tensor_id = tensors.upload_wav_file(tmp_path / "audio.wav", cuda_device=-1)
    info = tensors.get_tensor_info(tensor_id)
    assert (info["shape"], info["sample_rate"], info["name"]) == ([100], 16_000, "audio.wav")
    shared = tensors.access_shared_tensor(tensor_id, "numpy")
    np.testing.assert_array_equal(shared, (samples / 32768).astype("f4"))
    shared *= 2.0
    np.testing.assert_array_equal(content(tensors, tensor_id), shared)
    before = shared.copy()
    elsewhere(tensors, tensor_id, "shared += 1.0; shared[0] = 7.0")
    assert shared[0] == 7.0
    np.testing.assert_array_equal(shared[1:], before[1:] + 1.0)
    np.testing.assert_array_equal(content(tensors, tensor_id), shared)


def test_a_tensor_of_pytorch_shares_its_memory(tensors: TensorClient) -> None:
    try:
        import torch
    except ImportError:
        needs("PyTorch")
    tensor_id = tensors.upload_array(torch.arange(6.0).reshape(2, 3), -1)
    shared = tensors.access_shared_tensor(tensor_id)
    shared.mul_(2.0)
    np.testing.assert_array_equal(content(tensors, tensor_id), np.arange(6.0).reshape(2, 3) * 2)
    elsewhere(tensors, tensor_id, "shared.zero_()", "torch")
    assert shared.sum() == 0.0


def test_device_memory_is_shared_through_the_driver(tensors: TensorClient) -> None:
    values = np.arange(1000, dtype="f4")
    tensor_id = tensors.upload_array(values, 0)
    shared = tensors.access_shared_tensor(tensor_id, "memory")
    assert isinstance(shared, CudaMemory)
    assert shared.__cuda_array_interface__["shape"] == (1000,)
    np.testing.assert_array_equal(np.frombuffer(shared.read(), "f4"), values)
    elsewhere(tensors, tensor_id, "shared.write(bytes(4000))", "memory")
    assert shared.read() == bytes(4000)
    shared.write((values * 2).tobytes())
    np.testing.assert_array_equal(content(tensors, tensor_id), values * 2)
    with pytest.raises(ArgumentError):
        shared.write(b"short")
    with pytest.raises(ArgumentError):
        tensors.access_shared_tensor(tensor_id, "numpy")
    with pytest.raises(ArgumentError):
        shared.as_cupy()
    # Whatever is an array, its bytes count.
    shared.write(values.reshape(10, 100) + 1)
    np.testing.assert_array_equal(content(tensors, tensor_id), values + 1)
    for wrong in (values[:999], values.astype("f8"), "text"):
        with pytest.raises(ArgumentError):
            shared.write(wrong)
    assert tensors.get_tensor_info(tensor_id)["leases"] == 1


# The example of the GPU Tensor Server's README, in a process of its own.
README_EXAMPLE = """
import sys
from warpgauge import TensorClient
client = TensorClient(host="localhost", port=int(sys.argv[1]))
tensor_id = client.upload_wav_file(sys.argv[2], cuda_device=0)
shared_tensor = client.access_shared_tensor(tensor_id)
shared_tensor.mul_(2.0)
print(tensor_id, float(shared_tensor.sum()), flush=True)
sys.stdin.readline()
assert client.delete_tensor(tensor_id)
assert client.delete_tensor(tensor_id) is False
# Its lease would end by itself, but other tests count what is held.
client.close()
"""


def test_the_example_of_the_readme(tensors: TensorClient, tmp_path: Path) -> None:
    try:
        import torch
    except ImportError:
        needs("PyTorch")
    samples = (np.arange(100) * 100).astype("<i2")
    with wave.open(str(tmp_path / "audio.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples.tobytes())
    command = [sys.executable, "-c", README_EXAMPLE, tensors.url.rsplit(":")[-1], str(tmp_path / "audio.wav")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        tensor_id, total = other.stdout.readline().split()
        shared = tensors.access_shared_tensor(tensor_id)
        assert isinstance(shared, torch.Tensor) and shared.shape == (100,)
        np.testing.assert_allclose(shared.numpy(), samples / 16384, rtol=1e-6)
        assert float(total) == pytest.approx(float(shared.sum()))
        assert tensors.get_tensor_info(tensor_id)["original_filename"] == "audio.wav"
        other.stdin.write("end\n")
        other.stdin.flush()
        assert other.wait(60) == 0
    # The memory stays for who has it open.
    assert shared[1] == pytest.approx(100 / 16384)


def test_a_tensor_of_pytorch_goes_to_a_device_and_back(tensors: TensorClient) -> None:
    try:
        import torch
    except ImportError:
        needs("PyTorch")
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        tensor_id = tensors.upload_cpu_tensor(torch.arange(6).reshape(2, 3).to(dtype), 16_000, 0)
        assert tensors.get_tensor_handle(tensor_id)["sample_rate"] == 16_000
        shared = tensors.access_shared_tensor(tensor_id, "torch")
        assert (shared.dtype, shared.tolist()) == (dtype, [[0, 1, 2], [3, 4, 5]])
        shared.add_(1)
        assert tensors.access_shared_tensor(tensor_id).sum() == 21
    # Opened by two arrays, and given back with the last of them.
    part = tensors.access_shared_tensor(tensor_id)[1:]
    gc.collect()
    assert part.tolist() == [[4, 5, 6]]


def ask(tensors: TensorClient, method: str, path: str, **more: Any) -> tuple[int, Any]:
    answer = tensors._http.request(method, path, **more)
    return answer.status_code, answer.json()


def test_answers_have_what_the_suite_of_the_gpu_tensor_server_looks_for(tensors: TensorClient) -> None:
    assert ask(tensors, "GET", "/") == (200, {"message": "GPU Tensor Server is running"})
    assert ask(tensors, "GET", "/cuda/info")[1]["cuda_available"] is False
    status, listed = ask(tensors, "GET", "/tensors")
    assert (status, listed["count"], listed["tensors"]) == (200, 0, [])
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(200))
    wav = {"wav_file": ("sine_wave.wav", buffer.getvalue(), "audio/wav")}
    status, told = ask(tensors, "POST", "/tensors", files=wav, data={"cuda_device": 999})
    assert status == 400 and "Invalid CUDA device" in told["detail"]
    text = {"wav_file": ("test.txt", b"not a wav file", "text/plain")}
    status, told = ask(tensors, "POST", "/tensors", files=text, data={"cuda_device": 0})
    assert status == 400 and "Only WAV files are supported" in told["detail"]
    for method, path in [("GET", ""), ("DELETE", ""), ("GET", "/handle")]:
        status, told = ask(tensors, method, f"/tensors/nonexistent-tensor-id{path}")
        assert status == 404 and "Tensor not found" in told["detail"]
    for more in ({"data": {"cuda_device": 0}, "files": {"other": b"x"}}, {"files": wav, "data": {"cuda_device": "x"}}):
        assert ask(tensors, "POST", "/tensors", **more)[0] == 422
    for body in ({"cuda_device": 0}, {"data_b64": 5}):
        assert ask(tensors, "POST", "/tensors/from-array", json=body)[0] == 422

    status, made = ask(tensors, "POST", "/tensors", files=wav, data={"cuda_device": 0})
    assert status == 200 and made["device"] == "cuda:0" and made["dtype"] == "torch.float32"
    path = f"/tensors/{made['tensor_id']}"
    assert ask(tensors, "GET", path)[1]["original_filename"] == "sine_wave.wav"
    handle = ask(tensors, "GET", f"{path}/handle")[1]
    assert len(base64.b64decode(handle["ipc_handle"])) == 64
    assert handle["data_ptr"] > 0 and handle["element_size"] == 4 and handle["numel"] == 100
    tensors._http.delete(f"/tensor-leases/{handle['lease_id']}")
    status, told = ask(tensors, "DELETE", path)
    assert status == 200 and told["message"] == f"Tensor {made['tensor_id']} deleted successfully"
    assert ask(tensors, "GET", path)[0] == 404


# Changes a tensor on a stream that is held up until a line comes.
HELD_UP = """
import ctypes, sys
from warpgauge import TensorClient
with TensorClient(url=sys.argv[1]) as client:
    shared = client.access_shared_tensor(sys.argv[2], "memory")
    driver, stream = shared._driver, ctypes.c_void_p()
    assert driver.cuCtxSetCurrent(shared._context) == 0
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    held_up = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: print(sys.stdin.readline(), end=""))
    assert driver.cuLaunchHostFunc(stream, held_up, None) == 0
    address, count = ctypes.c_uint64(shared.address), ctypes.c_size_t(shared.nbytes)
    assert driver.cuMemsetD8Async(address, ctypes.c_ubyte(17), count, stream) == 0
    shared.record(stream.value)
    print("recorded", flush=True)
    assert driver.cuStreamSynchronize(stream) == 0
"""
NOT_READY = 600


def test_streams_of_processes_wait_for_each_other(tensors: TensorClient) -> None:
    tensor_id = tensors.upload_array(np.zeros(1000, "u1"), 0)
    shared = tensors.access_shared_tensor(tensor_id, "memory")
    driver, stream = shared._driver, ctypes.c_void_p()
    assert driver.cuCtxPushCurrent_v2(shared._context) == 0
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    shared.wait(stream.value)
    assert driver.cuStreamSynchronize(stream) == 0, "nobody has recorded anything"
    command = [sys.executable, "-c", HELD_UP, tensors.url, tensor_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "recorded\n"
        shared.wait(stream.value)
        assert driver.cuStreamQuery(stream) == NOT_READY
        other.stdin.write("go on\n")
        other.stdin.flush()
        assert driver.cuStreamSynchronize(stream) == 0
        assert shared.read() == bytes([17]) * 1000
        assert other.wait(60) == 0
    with pytest.raises(ArgumentError):
        shared.wait("a stream")
    assert driver.cuStreamDestroy_v2(stream) == 0
    assert driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0


def test_memory_is_shared_where_the_event_is_not(tensors: TensorClient) -> None:
    tensor_id = tensors.upload_array(np.ones(8, "u1"), 0)
    handle = tensors.get_handle(tensor_id)
    given_back = list[str]()
    nowhere = base64.b64encode(bytes(64)).decode()
    for event, told in [(None, "no event came"), (nowhere, "/dev/shm")]:
        shared = CudaMemory({**handle, "event_handle": event}, lambda: given_back.append("closed"))
        for call in (shared.wait, shared.record):
            with pytest.raises(CudaError, match=told):
                call()
        assert shared.read() == bytes([1]) * 8
        del shared, call
        gc.collect()
    assert given_back == ["closed", "closed"]
    tensors.release(handle["lease_id"])


def test_what_is_collected_or_closed_is_given_back(tensors: TensorClient) -> None:
    tensor_id = tensors.upload_array(np.ones((3, 4), "i8"), -1)
    shared = tensors.access_shared_tensor(tensor_id, "numpy")
    part = shared[1:, ::2]
    del shared
    gc.collect()
    part += 1
    assert content(tensors, tensor_id)[2].tolist() == [2, 1, 2, 1]
    assert tensors.get_tensor_info(tensor_id)["leases"] == 1
    del part
    gc.collect()
    # The heartbeat's thread gives it back; each look is a question to the server.
    while tensors.get_tensor_info(tensor_id)["leases"]:
        pass
    with TensorClient(url=tensors.url) as other:
        kept = other.access_shared_tensor(tensor_id, "numpy")
    assert kept[0, 0] == 1
    assert tensors.get_tensor_info(tensor_id)["leases"] == 0


def test_deletion_waits_for_those_who_have_it_open(tensors: TensorClient) -> None:
    tensor_id = tensors.upload_array(np.zeros(8, "f8"), -1, name="mine")
    shared = tensors.access_shared_tensor(tensor_id, "numpy")
    deleted = tensors.delete_tensor(tensor_id)
    assert deleted and deleted["leases"] == 1
    shared += 3
    with pytest.raises(ApiError) as caught:
        tensors.get_tensor_info(tensor_id)
    assert (caught.value.status, caught.value.code) == (404, "no_such_tensor")
    assert tensors.tensor_list()["held_bytes"] == 64
    assert shared.sum() == 24


def test_lists_are_those_of_the_gpu_tensor_servers_client(tensors: TensorClient) -> None:
    ids = [tensors.upload_array(np.zeros(4, "f4"), -1) for _ in range(2)]
    listed = tensors.list_tensors()
    assert isinstance(listed, list) and sorted(one["tensor_id"] for one in listed) == sorted(ids)
    whole = tensors.tensor_list()
    same = [one["tensor_id"] for one in whole["tensors"]]
    assert (same, whole["count"], whole["held_bytes"]) == ([one["tensor_id"] for one in listed], 2, 32)


def handle_of(file: Path) -> dict[str, Any]:
    return {
        "tensor_id": "t", "kind": "shared_memory", "ipc_handle": None, "event_handle": None,
        "shared_memory": str(file), "offset": 0, "nbytes": 8, "allocation_bytes": 8, "shape": [2], "strides": [1],
        "dtype": "torch.float32", "element_type": "float32", "device": "cpu", "device_uuid": None, "data_ptr": 0,
        "element_size": 4, "numel": 2, "sample_rate": None, "lease_id": "l", "lease_s": 0.1,
    }  # fmt: skip


def test_heartbeats_come_until_the_lease_is_given_back_or_gone(
    scripted: Callable[..., Scripted], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(bytes(8))
    lease = http(200, {"lease_id": "l", "tensor_id": "t", "lease_s": 0.1})
    gone = http(404, {"error": "there is no lease l", "code": "no_such_lease", "status": "error"})
    server = scripted(http(200, handle_of(tmp_path / "file")), lease, lease, gone)
    with TensorClient(url=server.url) as one:
        shared = one.access_shared_tensor("t", "numpy")
        server.wait_for(4)
        assert shared.tolist() == [0.0, 0.0]
    lines = [request.split(b"\r\n")[0] for request in server.requests]
    assert lines == [b"GET /tensors/t/handle HTTP/1.1"] + [b"PUT /tensor-leases/l HTTP/1.1"] * 3


def test_a_handle_that_contradicts_itself_is_not_mapped(scripted: Callable[..., Scripted], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(8))
    wrong = [{"shape": [3]}, {"nbytes": 80, "numel": 20, "shape": [20]}, {"offset": 4}, {"offset": -4}]
    for more in wrong:
        handle = {**handle_of(tmp_path / "file"), **more, "lease_s": 60.0}
        server = scripted(http(200, handle), http(200, {}))
        with TensorClient(url=server.url) as one, pytest.raises(ProtocolError):
            one.access_shared_tensor("t", "numpy")
        assert server.requests[1].startswith(b"DELETE /tensor-leases/l ")


def test_errors_say_what_to_do(tensors: TensorClient, tmp_path: Path) -> None:
    with pytest.raises(ApiError) as caught:
        tensors.upload_array(np.zeros(1, "f4"), 9)
    assert (caught.value.status, caught.value.path) == (400, "cuda_device")
    (tmp_path / "x.wav").write_bytes(b"RIFF\0\0\0\0WAVE")
    with pytest.raises(ApiError) as caught:
        tensors.upload_wav_file(tmp_path / "x.wav")
    assert caught.value.path == "wav_file"
    with pytest.raises(ArgumentError):
        TensorClient(url="localhost:8000")


INCREMENT = """
extern "C" __global__ void increment(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1.0f;
}
"""


def test_a_kernel_reads_a_shared_tensor_and_leaves_another(server: warpgauge.Server, tensors: TensorClient) -> None:
    values = np.arange(64, dtype="f4")
    given = tensors.upload_array(values, -1)
    wanted = tensors.upload_array(values + 1, -1)
    launch = {"grid": "ceil_div(n, 64)", "block": 64}
    args = {"x": warpgauge.Shared(given), "y": warpgauge.Tensor([64], role="output"), "n": 64}
    with warpgauge.Client(server.url) as client:
        report = client.evaluate(
            INCREMENT,
            args,
            launch=launch,
            expected={"y": warpgauge.Shared(wanted)},
            num_trials=2,
            keep_outputs={"y": {"cuda_device": -1, "name": "incremented"}},
        )
        assert report.correct, report
        np.testing.assert_array_equal(report.outputs["y"], values + 1)
        assert {one["tensor_id"] for one in report.raw["tensors"]} == {given, wanted}
        kept = report.raw["kept_outputs"]["y"]["tensor_id"]
        np.testing.assert_array_equal(content(tensors, kept), values + 1)
        assert tensors.get_tensor_info(kept)["name"] == "incremented"
        # What came of one kernel is what the next one reads.
        args["x"] = warpgauge.Shared(kept, shape=[64], dtype="float32")
        report = client.evaluate(INCREMENT, args, launch=launch, num_trials=2)
        np.testing.assert_array_equal(report.outputs["y"], values + 2)
        args["x"] = warpgauge.Shared("00000000-0000-4000-8000-000000000000")
        with pytest.raises(ApiError) as refused:
            client.evaluate(INCREMENT, args, launch=launch, num_trials=2)
    assert (refused.value.code, refused.value.path) == (
        "no_such_tensor",
        "kernel.io.args[0].tensor_spec.data.tensor_id",
    )
