// Adds the sum of x[0..n) to *sum: one block, double precision, a plain tree in shared memory.
constexpr int THREADS = 256;  // = blockDim.x

extern "C" __global__ void reference(const float* x, float* sum, int n) {
    __shared__ double partial[THREADS];
    double value = 0.0;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        value += x[i];
    }
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int width = THREADS / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) {
            partial[threadIdx.x] += partial[threadIdx.x + width];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *sum = static_cast<float>(*sum + partial[0]);
    }
}
