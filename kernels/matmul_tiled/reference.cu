// C = A * B with products and sums in double precision.
extern "C" __global__ void reference(const float* a, const float* b, float* c, int m, int n,
                                     int k) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) {
        return;
    }
    const int row = i / n;
    const int col = i % n;
    double sum = 0.0;
    for (int j = 0; j < k; ++j) {
        sum += static_cast<double>(a[row * k + j]) * static_cast<double>(b[j * n + col]);
    }
    c[i] = static_cast<float>(sum);
}
