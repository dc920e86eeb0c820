// y += A * x for a sparse matrix in CSC form: one thread per column.
//
// A column has one element of x, which is read once; its products go to the rows of its entries.
extern "C" __global__ void spmv_csc(int cols, const int* __restrict__ col_ptr,
                                    const int* __restrict__ row_index,
                                    const float* __restrict__ values, const float* __restrict__ x,
                                    float* __restrict__ y) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) {
        return;
    }
    const float factor = x[col];
    for (int i = col_ptr[col]; i < col_ptr[col + 1]; ++i) {
        atomicAdd(&y[row_index[i]], values[i] * factor);
    }
}
