// y += A * x for a sparse matrix in coordinate form: one thread per entry.
//
// Entries stand by row, so the threads of a warp add to few rows; empty rows need nothing done.
extern "C" __global__ void spmv_coo(int nnz, const int* __restrict__ row_index,
                                    const int* __restrict__ col_index,
                                    const float* __restrict__ values, const float* __restrict__ x,
                                    float* __restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < nnz) {
        atomicAdd(&y[row_index[i]], values[i] * x[col_index[i]]);
    }
}
