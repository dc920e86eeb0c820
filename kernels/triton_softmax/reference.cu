// Row-wise softmax in double precision, one thread per row.
extern "C" __global__ void reference(const float* x, float* y, int rows, int cols) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    double largest = x[row * cols];
    for (int i = 1; i < cols; ++i) {
        largest = fmax(largest, static_cast<double>(x[row * cols + i]));
    }
    double total = 0.0;
    for (int i = 0; i < cols; ++i) {
        total += exp(x[row * cols + i] - largest);
    }
    for (int i = 0; i < cols; ++i) {
        y[row * cols + i] = static_cast<float>(exp(x[row * cols + i] - largest) / total);
    }
}
