// y = a * x + y in double precision: the product of two floats is exact there.
extern "C" __global__ void reference(float a, const float* x, float* y, int n) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    for (int i = thread; i < n; i += threads) {
        y[i] = static_cast<float>(static_cast<double>(a) * x[i] + y[i]);
    }
}
