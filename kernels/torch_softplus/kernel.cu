// log(1 + exp(βx)) / β, as PyTorch defines it: beyond a threshold it is x, where exp would overflow.
extern "C" __global__ void softplus(const float* x, float* y, float beta, float threshold, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float scaled = beta * x[i];
    y[i] = scaled > threshold ? x[i] : log1pf(expf(scaled)) / beta;
}
