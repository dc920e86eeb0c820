// y = A * x for a sparse matrix in CSR form: one warp per row.
//
// Neighbouring lanes read neighbouring non-zeros of the row, so loads of `values` and `col_index`
// are contiguous; the lanes' partial sums are combined by shuffles.
constexpr unsigned FULL_WARP = 0xffffffffu;

extern "C" __global__ void spmv_csr(int rows, const int* __restrict__ row_ptr,
                                    const int* __restrict__ col_index,
                                    const float* __restrict__ values, const float* __restrict__ x,
                                    float* __restrict__ y) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) {
        return;  // The whole warp: all its lanes have the same row.
    }
    float sum = 0.0f;
    for (int i = row_ptr[row] + lane; i < row_ptr[row + 1]; i += 32) {
        sum = fmaf(values[i], x[col_index[i]], sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(FULL_WARP, sum, offset);
    }
    if (lane == 0) {
        y[row] = sum;
    }
}
