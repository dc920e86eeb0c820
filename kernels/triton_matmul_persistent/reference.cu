// C = A * B^T for row-major fp16 A [m, k], B [n, k], C [m, n], with sums in double precision.
#include <cuda_fp16.h>

extern "C" __global__ void reference(const __half* a, const __half* b, __half* c, int m, int n,
                                     int k) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) {
        return;
    }
    const int row = i / n;
    const int col = i % n;
    double sum = 0.0;
    for (int j = 0; j < k; ++j) {
        sum += static_cast<double>(__half2float(a[row * k + j])) * __half2float(b[col * k + j]);
    }
    c[i] = __double2half(sum);
}
