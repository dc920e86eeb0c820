#!/usr/bin/env python3
"""Products of sparse matrices beside cuSPARSE, on a running server with a GPU.

    beside_cusparse.py [--server URL] [--only PART] [--runs N]

The example `kernels/spmv_csr` multiplies generated matrices at the server, as `/execute_spmv_mtx` does;
cuSPARSE (`cusparseSpMV`, CSR, default algorithm, binary32) multiplies matrices of the same structure in this
process, between CUDA events, with L2 flushed before each product. Matrices come from the server as `.mtx`
files up to 20 million entries; larger ones are made here, with the same places of their entries.
A table is printed as Markdown. The server must allow such sizes: limits.max_decoded_bytes of 4 GiB.

Needs PyTorch with CUDA (for memory and events), NumPy, SciPy and libcusparse.
"""
import argparse
import ctypes
import ctypes.util
import io
import json
import os
import statistics
import time
import urllib.error
import urllib.request

import numpy as np
import scipy.io
import scipy.sparse
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "..", "..", "kernels", "spmv_csr", "kernel.cu")) as file:
    SOURCE = file.read()

# Name, and threads for each row; the fastest of several counts.
MATRICES = [
    ("poisson2d:nx=1024", (2, 4)),
    ("poisson2d:nx=4400", (2,)),
    ("poisson3d:nx=128", (2, 4)),
    ("poisson3d:nx=240", (4,)),
    ("banded:n=1000000,half=8", (4, 8)),
    ("banded:n=4000000,half=12", (8,)),
    ("block:n=262144,size=16", (4, 8, 16)),
    ("block:n=524288,size=16", (8,)),
    ("diagonal:n=8000000", (1,)),
    ("random:rows=1000000,cols=1000000,nnz_per_row=16,long_rows=0", (8, 16)),
    ("rmat:scale=18,edges=16", (8, 32)),
    ("rmat:scale=20,edges=16", (32,)),
]


def call(server, path, body=None):
    request = urllib.request.Request(server + path, json.dumps(body).encode() if body is not None else None,
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        return error.read()


def product(server, name, lanes, runs):
    """Mean and deviation of the launches at the server, ms, and what the request took."""
    body = {
        "mtx_filename": name, "method": "custom", "kernel": SOURCE, "num_runs": runs,
        "options": {
            "kernel_type": "cuda", "kernel_name": "spmv_csr",
            "args": ["num_rows", "row_ptr", "col_indices", "values", "x", "y"],
            "compiler_options": [f"-DLANES={lanes}"],
            "launch": {"grid": {"x": f"ceil_div(num_rows, {256 // lanes})"}, "block": {"x": 256}},
            "timeout": 300,
        },
    }
    began = time.perf_counter()
    answer = json.loads(call(server, "/execute_spmv_mtx", body))
    took = time.perf_counter() - began
    if not answer.get("success"):
        job = json.loads(call(server, f"/jobs/{answer.get('job_id')}"))
        raise SystemExit(f"{name}: {answer}\n{json.dumps(job, indent=1)[:4000]}")
    return answer["result"], took


def band(n, half):
    """Ones within `half` of the diagonal."""
    offsets = list(range(-half, half + 1))
    return scipy.sparse.diags([np.ones(n - abs(k), "f4") for k in offsets], offsets, format="csr", dtype="f4")


def structure(server, name, nnz):
    """The matrix as CSR of SciPy's."""
    if nnz <= 20_000_000:
        return scipy.io.mmread(io.BytesIO(call(server, f"/check_mtx/{name}/data?format=mtx"))).tocsr().astype("f4")
    kind, _, parameters = name.partition(":")
    numbers = {key: int(value) for key, value in (pair.split("=") for pair in parameters.split(","))}
    if kind in ("poisson2d", "poisson3d"):
        n = numbers["nx"]
        line, one = band(n, 1), scipy.sparse.identity(n, dtype="f4", format="csr")
        matrix = scipy.sparse.kron(one, line, format="csr") + scipy.sparse.kron(line, one, format="csr")
        if kind == "poisson3d":
            plane = scipy.sparse.identity(n * n, dtype="f4", format="csr")
            matrix = scipy.sparse.kron(one, matrix, format="csr") + scipy.sparse.kron(line, plane, format="csr")
        return matrix.tocsr()
    if kind == "banded":
        return band(numbers["n"], numbers["half"])
    raise SystemExit(f"{name} is too large, and not made here")


class CuSparse:
    """`cusparseSpMV` for one matrix."""

    def __init__(self):
        for place in ("libcusparse.so.12", "libcusparse.so.13", ctypes.util.find_library("cusparse")):
            try:
                self.library = ctypes.CDLL(place)
                break
            except (OSError, TypeError):
                continue
        else:
            raise SystemExit("libcusparse is not there")
        self.handle = ctypes.c_void_p()
        self.check(self.library.cusparseCreate(ctypes.byref(self.handle)))

    def check(self, status):
        if status != 0:
            raise SystemExit(f"cuSPARSE failed with status {status}")

    def times(self, matrix, runs):
        """Milliseconds of each product."""
        pointer, i64 = lambda tensor: ctypes.c_void_p(tensor.data_ptr()), ctypes.c_int64
        row_ptr = torch.from_numpy(matrix.indptr.astype("i4")).cuda()
        columns = torch.from_numpy(matrix.indices.astype("i4")).cuda()
        values = torch.from_numpy(matrix.data).cuda()
        x = torch.ones(matrix.shape[1], device="cuda")
        y = torch.zeros(matrix.shape[0], device="cuda")
        a, dense_x, dense_y = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        # CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_BASE_ZERO = 0, CUDA_R_32F = 0.
        self.check(self.library.cusparseCreateCsr(
            ctypes.byref(a), i64(matrix.shape[0]), i64(matrix.shape[1]), i64(matrix.nnz),
            pointer(row_ptr), pointer(columns), pointer(values), 2, 2, 0, 0))
        self.check(self.library.cusparseCreateDnVec(ctypes.byref(dense_x), i64(len(x)), pointer(x), 0))
        self.check(self.library.cusparseCreateDnVec(ctypes.byref(dense_y), i64(len(y)), pointer(y), 0))
        stream = torch.cuda.current_stream().cuda_stream
        self.check(self.library.cusparseSetStream(self.handle, ctypes.c_void_p(stream)))
        alpha, beta, size = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_size_t()
        # CUSPARSE_OPERATION_NON_TRANSPOSE = 0, CUSPARSE_SPMV_ALG_DEFAULT = 0.
        common = (self.handle, 0, ctypes.byref(alpha), a, dense_x, ctypes.byref(beta), dense_y, 0, 0)
        self.check(self.library.cusparseSpMV_bufferSize(*common, ctypes.byref(size)))
        scratch = torch.empty(max(size.value, 1), dtype=torch.uint8, device="cuda")
        if hasattr(self.library, "cusparseSpMV_preprocess"):
            self.check(self.library.cusparseSpMV_preprocess(*common, pointer(scratch)))
        flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
        for _ in range(5):
            self.check(self.library.cusparseSpMV(*common, pointer(scratch)))
        for begin, end in events:
            flush.zero_()
            begin.record()
            self.check(self.library.cusparseSpMV(*common, pointer(scratch)))
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in events]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="http://127.0.0.1:8000")
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    cusparse = CuSparse()
    print("| matrix | rows | entries | threads per row | here, mean | cuSPARSE, mean | share of cuSPARSE's speed | "
          "GFLOP/s here | the whole request |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name, choices in MATRICES:
        if options.only not in name:
            continue
        tried = [(*product(options.server, name, lanes, options.runs), lanes) for lanes in choices]
        result, took, lanes = min(tried, key=lambda one: one[0]["execution_time_ms"])
        matrix = structure(options.server, name, result["nnz"])
        assert matrix.nnz == result["nnz"] and matrix.shape[0] == result["num_rows"], (name, matrix.shape, matrix.nnz)
        times = cusparse.times(matrix, options.runs)
        theirs, ours = statistics.mean(times), result["execution_time_ms"]
        print(f"| `{name}` | {result['num_rows']} | {result['nnz']} | {lanes} | {ours * 1e3:.1f} µs "
              f"± {result['execution_time_std_ms'] * 1e3:.1f} | {theirs * 1e3:.1f} µs "
              f"± {statistics.stdev(times) * 1e3:.1f} | {theirs / ours:.2f} | {result['gflops']:.0f} | {took:.1f} s |",
              flush=True)


if __name__ == "__main__":
    main()
