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


def test_a_wrong_kernel_is_an_error_with_a_job(remote: RemoteGPUClient) -> None:
    options = {"kernel_type": "cuda"}
    with pytest.raises(SpmvError, match="the product is wrong") as caught:
        remote.execute_spmv(KERNEL.replace("+=", "-="), MATRIX, options=options, num_runs=1)
    assert caught.value.job_id
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
    with pytest.raises(ApiError, match="never fall"):
        remote.execute_spmv(source, {**MATRIX, "row_ptr": [0, 3, 2, 4]})
    with pytest.raises(ArgumentError, match="expected a kernel"):
        remote.execute_spmv("kernel.txt", MATRIX)
    with pytest.raises(SpmvError, match="no ELF file"):
        remote.execute_spmv(b"no cubin", MATRIX)
