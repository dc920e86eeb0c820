// Layer normalisation of x [rows, cols] over cols, one block per row:
// y = (x - mean) / sqrt(variance + eps) * gamma + beta.
//
// The variance is taken from the differences to the mean in a second pass over the row: the
// one-pass form E[x^2] - E[x]^2 cancels badly when the mean is large.
constexpr unsigned FULL_WARP = 0xffffffffu;

// Sum over the whole block; every thread gets it. `scratch` holds one value per warp.
__device__ float block_sum(float value, float* scratch) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(FULL_WARP, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = 0.0f;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) {
        value += scratch[warp];
    }
    // The caller may use `scratch` again.
    __syncthreads();
    return value;
}

extern "C" __global__ void layernorm(const float* __restrict__ x, const float* __restrict__ gamma,
                                     const float* __restrict__ beta, float* __restrict__ y,
                                     int cols, float eps) {
    __shared__ float scratch[32];
    const float* in = x + static_cast<size_t>(blockIdx.x) * cols;
    float* out = y + static_cast<size_t>(blockIdx.x) * cols;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        sum += in[i];
    }
    const float mean = block_sum(sum, scratch) / cols;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        const float d = in[i] - mean;
        squares = fmaf(d, d, squares);
    }
    const float inv_std = rsqrtf(block_sum(squares, scratch) / cols + eps);

    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        out[i] = fmaf((in[i] - mean) * inv_std, gamma[i], beta[i]);
    }
}
