// C = A * B for row-major A [m, k], B [k, n], C [m, n]; one element of C per thread.
//
// Every element of A is read n times and every element of B m times from global memory: the
// baseline that matmul_tiled improves on.
extern "C" __global__ void matmul_naive(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int m, int n, int k) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
        sum = fmaf(a[row * k + i], b[i * n + col], sum);
    }
    c[row * n + col] = sum;
}
