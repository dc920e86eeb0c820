"""The client by the names of the Remote GPU Execution Service, at a real server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpgauge
from warpgauge import ApiError, ArgumentError
from warpgauge.remote_gpu import RemoteGPUClient, SpmvError

KERNEL = """
extern "C" __global__ void csr_spmv_kernel(int num_rows, const float* values, const int* col_indices,
                                           const int* row_ptr, const float* x, float* y) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_indices[i]];
    y[row] = sum;
}
"""
MATRIX = {
    "num_rows": 3,
    "num_cols": 3,
    "nnz": 4,
    "values": [4.0, -1.0, 2.5, 1.0],
    "col_indices": [0, 2, 1, 2],
    "row_ptr": [0, 2, 3, 4],
    "x": [1.0, 2.0, 3.0],
}


def as_arrays(dtype: str = "f4") -> dict[str, object]:
    types = {"values": dtype, "x": dtype, "col_indices": "i8", "row_ptr": "i4"}
    return {name: np.array(value, types[name]) if name in types else value for name, value in MATRIX.items()}


@pytest.fixture
def remote(server: warpgauge.Server):
    with RemoteGPUClient(server_url=server.url, api_key="your-api-key") as one:
        yield one


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "simple_spmv.cu"
    file.write_text(KERNEL)
    return file


def test_the_example_of_the_readme(remote: RemoteGPUClient, source: Path) -> None:
    assert remote.health_check()
    gpu_info = remote.get_gpu_info()
    assert gpu_info["device_name"]
    with pytest.warns(UserWarning, match="compiles for its own device"):
        result = remote.compile_and_execute_spmv(str(source), MATRIX, arch="sm_70")
    assert result["y"] == [1.0, 5.0, 3.0] and result["execution_time_ms"] > 0
    major, minor = gpu_info["compute_capability"]
    result = remote.compile_and_execute_spmv(source, as_arrays(), arch=f"sm_{major}{minor}", num_runs=2)
    assert result["y"] == [1.0, 5.0, 3.0] and result["num_runs"] == 2


def test_health_and_info(remote: RemoteGPUClient) -> None:
    assert remote.health()["status"] == "healthy" and remote.get_info()["info"]["multiprocessor_count"] > 0
    with RemoteGPUClient("http://127.0.0.1:9", timeout=0) as nobody:
        assert nobody.health_check() is False


def test_matrices_are_uploaded_found_and_multiplied(remote: RemoteGPUClient, source: Path, tmp_path: Path) -> None:
    file = tmp_path / "python-small.mtx"
    file.write_text("%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 2\n1 3 1\n2 2 4\n")
    assert remote.upload_mtx(file)["matrix"]["nnz"] == 3
    assert remote.check_mtx("python-small.mtx")["exists"] and not remote.check_mtx("other.mtx")["exists"]
    assert "python-small.mtx" in remote.list_mtx()["files"]
    assert remote.execute_spmv_mtx("python-small.mtx", source)["y"] == [3.0, 4.0]
    assert remote.execute_spmv_mtx("python-small.mtx", source, np.array([1, 2, 3]))["y"] == [5.0, 8.0]
    assert len(remote.execute_spmv_mtx("poisson2d:nx=4", source, num_runs=1)["y"]) == 16
    with pytest.raises(ApiError, match="no_such_matrix"):
        remote.execute_spmv_mtx("none.mtx", source)
    with pytest.raises(ApiError):
        remote.check_mtx("../etc/passwd")


def test_the_whole_way_by_the_names_of_the_original(remote: RemoteGPUClient, source: Path, tmp_path: Path) -> None:
    assert remote.get_server_arch() == "sm_{}{}".format(*remote.get_gpu_info()["compute_capability"])
    cubin = remote.compile_cuda_kernel(str(source))
    assert cubin == str(source.with_suffix(".cubin"))
    # On the emulated device it is PTX, under a name that says otherwise.
    result = remote.execute_spmv_csr(cubin, as_arrays(), 2)
    assert result["y"] == [1.0, 5.0, 3.0] and result["num_runs"] == 2
    assert remote.execute_spmv_csr(Path(cubin).read_bytes(), MATRIX, num_runs=1)["y"] == [1.0, 5.0, 3.0]
    other = remote.compile_cuda_kernel(source, tmp_path / "other.cubin", "sm_90")
    assert Path(other).read_bytes().startswith(b"\x7fELF")
    broken = tmp_path / "broken.cu"
    broken.write_text("__global__ void f() { nonsense; }")
    with pytest.raises(RuntimeError, match=r"CUDA compilation failed:(.|\n)*nonsense"):
        remote.compile_cuda_kernel(str(broken))

    file = tmp_path / "original.mtx"
    text = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 2\n1 3 1\n2 2 4\n"
    file.write_text(text)
    assert remote.upload_mtx_file(str(file))["info"]["num_cols"] == 3
    assert remote.check_mtx_exists("original.mtx")["info"]["nnz"] == 3
    assert "original.mtx" in [matrix["filename"] for matrix in remote.list_mtx_files()]
    x = np.array([1, 2, 3], np.float32)
    for arguments in [(cubin, "original.mtx", x), ("original.mtx", cubin, x), (source, "original.mtx", x)]:
        assert remote.execute_spmv_mtx(*arguments, "custom", 1)["y"] == [5.0, 8.0]
    assert remote.execute_spmv_mtx(mtx_filename="original.mtx", kernel=cubin, num_runs=1)["y"] == [3.0, 4.0]
    with pytest.raises(ArgumentError, match="name of a matrix"):
        remote.execute_spmv_mtx(cubin)

    assert remote.upload_and_execute_spmv(str(source), str(file), x, None, "custom", 1)["y"] == [5.0, 8.0]
    # A file that has changed is another matrix.
    file.write_text(text.replace("2 2 4", "2 2 5"))
    assert remote.upload_and_execute_spmv(str(source), str(file), [1, 2, 3], num_runs=1)["y"] == [5.0, 10.0]
    assert len(remote.upload_and_execute_spmv(str(source), str(file), num_runs=1)["y"]) == 2
    with pytest.raises(ArgumentError, match="needs a kernel"):
        remote.upload_and_execute_spmv(None, file)


def test_the_variables_of_the_original_are_read(server: warpgauge.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPGAUGE_SERVER", raising=False)
    monkeypatch.setenv("GPU_SERVER_URL", server.url)
    monkeypatch.setenv("GPU_API_KEY", "your-secret-api-key-here")
    with RemoteGPUClient() as one:
        assert one.health_check()
        assert one._client._client._transport.settings.api_key == "your-secret-api-key-here"
    monkeypatch.setenv("WARPGAUGE_SERVER", "http://127.0.0.1:9")
    with RemoteGPUClient(timeout=0) as other:
        assert not other.health_check()


def test_a_matrix_without_entries_is_multiplied(remote: RemoteGPUClient, source: Path) -> None:
    empty = {**MATRIX, "nnz": 0, "values": [], "col_indices": [], "row_ptr": [0, 0, 0, 0]}
    assert remote.compile_and_execute_spmv(source, empty, num_runs=1)["y"] == [0.0, 0.0, 0.0]


def test_a_wrong_kernel_is_an_error_with_a_job(remote: RemoteGPUClient) -> None:
    options = {"kernel_type": "cuda"}
    with pytest.raises(SpmvError, match="the product is wrong") as caught:
        remote.execute_spmv(KERNEL.replace("+=", "-="), MATRIX, options=options, num_runs=1)
    assert caught.value.job_id and caught.value.y == [-1.0, -5.0, -3.0]
    with pytest.raises(SpmvError, match="the kernel hung"):
        hang = KERNEL.replace("y[row] = sum;", "while (row_ptr[0] == 0) y[row] += 1;")
        remote.execute_spmv(hang, MATRIX, 1, options={**options, "timeout": 1})
    with pytest.raises(SpmvError, match="does not compile"):
        remote.execute_spmv("nonsense", MATRIX, options=options)


def test_arrays_that_are_no_matrix_are_refused(remote: RemoteGPUClient, source: Path) -> None:
    wide = {**as_arrays(), "col_indices": np.array([0, 2, 1, 2**40])}
    with pytest.raises(ArgumentError, match="col_indices"):
        remote.execute_spmv(source, wide)
    with pytest.raises(ArgumentError, match="row_ptr"):
        remote.execute_spmv(source, {**as_arrays(), "row_ptr": np.array([0.0, 2.0, 3.0, 4.0])})
    with pytest.raises(ArgumentError, match="one dimension"):
        remote.execute_spmv(source, {**as_arrays(), "x": np.ones((3, 1))})
    with pytest.raises(ApiError, match="must not decrease"):
        remote.execute_spmv(source, {**MATRIX, "row_ptr": [0, 3, 2, 4]})
    with pytest.raises(ArgumentError, match="expected a kernel"):
        remote.execute_spmv("kernel.txt", MATRIX)
    with pytest.raises(SpmvError, match="not an ELF file"):
        remote.execute_spmv(b"no cubin", MATRIX)
