// y = A * x for a sparse matrix in BSR form with blocks of 4 x 4: one thread per row.
//
// The four threads of a row of blocks read the same blocks, each its own row of them. Blocks at the
// end reach beyond the matrix; there is no x there, and their values are zero.
constexpr int BLOCK = 4;

extern "C" __global__ void spmv_bsr(int rows, int cols, const int* __restrict__ row_ptr,
                                    const int* __restrict__ col_index,
                                    const float* __restrict__ values, const float* __restrict__ x,
                                    float* __restrict__ y) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    const int block_row = row / BLOCK;
    float sum = 0.0f;
    for (int b = row_ptr[block_row]; b < row_ptr[block_row + 1]; ++b) {
        const float* own = values + (b * BLOCK + row % BLOCK) * BLOCK;
        for (int c = 0; c < BLOCK; ++c) {
            const int col = col_index[b] * BLOCK + c;
            if (col < cols) {
                sum = fmaf(own[c], x[col], sum);
            }
        }
    }
    y[row] = sum;
}
