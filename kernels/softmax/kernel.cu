// Row-wise softmax of x [rows, cols]: one block per row.
//
// The row's maximum is subtracted before the exponential, so that large inputs do not overflow.
constexpr unsigned FULL_WARP = 0xffffffffu;

__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ float added(float a, float b) { return a + b; }

// Combines one value per thread over the whole block; every thread gets the result.
// `scratch` holds one value per warp.
template <float (*combine)(float, float)>
__device__ float block_reduce(float value, float* scratch) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value = combine(value, __shfl_xor_sync(FULL_WARP, value, offset));
    }
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = scratch[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) {
        value = combine(value, scratch[warp]);
    }
    // The caller may use `scratch` again.
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int rows,
                                   int cols) {
    __shared__ float scratch[32];
    const int row = blockIdx.x;
    if (row >= rows) {
        return;
    }
    const float* in = x + static_cast<size_t>(row) * cols;
    float* out = y + static_cast<size_t>(row) * cols;

    float largest = -INFINITY;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        largest = fmaxf(largest, in[i]);
    }
    largest = block_reduce<larger>(largest, scratch);

    float total = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        const float e = expf(in[i] - largest);
        out[i] = e;
        total += e;
    }
    total = block_reduce<added>(total, scratch);

    const float scale = 1.0f / total;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        out[i] *= scale;
    }
}
