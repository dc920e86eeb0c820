// Causal attention, a block for each query and head, a thread for each of the 64 dimensions: scores
// first, each thread some of them, then their softmax in double precision.
#include <cuda_fp16.h>

extern "C" __global__ void reference(const __half* q, const __half* k, const __half* v, __half* o,
                                     float* lse, int length, float scale) {
    constexpr int HEAD = 64;
    __shared__ double scores[1024];  // >= length
    const int query = blockIdx.x;
    const int head = blockIdx.y;
    const __half* mine = q + (head * length + query) * HEAD;
    for (int key = threadIdx.x; key <= query; key += HEAD) {
        const __half* other = k + (head * length + key) * HEAD;
        float sum = 0.0f;
        for (int i = 0; i < HEAD; ++i) {
            sum = fmaf(__half2float(mine[i]), __half2float(other[i]), sum);
        }
        scores[key] = static_cast<double>(sum) * scale;
    }
    __syncthreads();

    double largest = scores[0];
    for (int key = 1; key <= query; ++key) {
        largest = fmax(largest, scores[key]);
    }
    // All have read them.
    __syncthreads();
    for (int key = threadIdx.x; key <= query; key += HEAD) {
        scores[key] = exp(scores[key] - largest);
    }
    __syncthreads();

    double weight = 0.0;
    double total = 0.0;
    for (int key = 0; key <= query; ++key) {
        weight += scores[key];
        total += scores[key] * __half2float(v[(head * length + key) * HEAD + threadIdx.x]);
    }
    o[(head * length + query) * HEAD + threadIdx.x] = __double2half(total / weight);
    if (threadIdx.x == 0) {
        lse[head * length + query] = static_cast<float>(largest + log(weight));
    }
}
