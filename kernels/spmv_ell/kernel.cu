// y = A * x for a sparse matrix in ELL form: one thread per row.
//
// Place k of row i is element k * rows + i, so neighbouring threads read neighbouring elements. A
// column of -1 is a place that holds nothing.
extern "C" __global__ void spmv_ell(int rows, int width, const int* __restrict__ col_index,
                                    const float* __restrict__ values, const float* __restrict__ x,
                                    float* __restrict__ y) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (int k = 0; k < width; ++k) {
        const int col = col_index[k * rows + row];
        if (col >= 0) {
            sum = fmaf(values[k * rows + row], x[col], sum);
        }
    }
    y[row] = sum;
}
