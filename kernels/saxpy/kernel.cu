// y = a * x + y, four elements per thread and step where the length allows it.
//
// `x` and `y` come from the allocator and are 16-byte aligned, so they can be read as float4.
extern "C" __global__ void saxpy(float a, const float* __restrict__ x, float* __restrict__ y,
                                 int n) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    const int quads = n / 4;

    const float4* x4 = reinterpret_cast<const float4*>(x);
    float4* y4 = reinterpret_cast<float4*>(y);
    for (int i = thread; i < quads; i += threads) {
        const float4 xv = x4[i];
        float4 yv = y4[i];
        yv.x = fmaf(a, xv.x, yv.x);
        yv.y = fmaf(a, xv.y, yv.y);
        yv.z = fmaf(a, xv.z, yv.z);
        yv.w = fmaf(a, xv.w, yv.w);
        y4[i] = yv;
    }
    for (int i = 4 * quads + thread; i < n; i += threads) {
        y[i] = fmaf(a, x[i], y[i]);
    }
}
