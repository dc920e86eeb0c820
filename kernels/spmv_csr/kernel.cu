// y = A * x for a sparse matrix in CSR form: LANES threads of a warp for each row.
//
// Neighbouring lanes read neighbouring non-zeros, so loads of `values` and `col_index` are contiguous;
// the lanes' partial sums are combined by shuffles. LANES is a power of two, best near the number of
// non-zeros in a row (`-DLANES=32` for long ones).
#ifndef LANES
#define LANES 4
#endif

constexpr unsigned FULL_WARP = 0xffffffffu;

extern "C" __global__ void spmv_csr(int rows, const int* __restrict__ row_ptr,
                                    const int* __restrict__ col_index,
                                    const float* __restrict__ values, const float* __restrict__ x,
                                    float* __restrict__ y) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = thread / LANES;
    const int lane = thread % LANES;
    float sum = 0.0f;
    if (row < rows) {
        for (int i = row_ptr[row] + lane; i < row_ptr[row + 1]; i += LANES) {
            sum = fmaf(values[i], x[col_index[i]], sum);
        }
    }
    // All threads of the warp are here: those beyond the last row have nothing to add.
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(FULL_WARP, sum, offset, LANES);
    }
    if (row < rows && lane == 0) {
        y[row] = sum;
    }
}
