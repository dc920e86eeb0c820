#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define THREAD (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define ALL 0xffffffffu

__device__ inline float as_float(float v) { return v; }
__device__ inline float as_float(__half v) { return __half2float(v); }
__device__ inline float as_float(__nv_bfloat16 v) { return __bfloat162float(v); }

// Sums and largest values of a warp and of a block of a power of two threads; every thread gets them.
template <class T>
__device__ inline T warp_sum(T v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(ALL, v, step);
    return v;
}

template <class T>
__device__ inline T warp_max(T v) {
    for (int step = 16; step > 0; step /= 2) {
        T other = __shfl_xor_sync(ALL, v, step);
        v = other > v ? other : v;
    }
    return v;
}

template <class T>
__device__ inline T tree_sum(T v) {
    __shared__ T part[1024];
    __syncthreads();
    part[threadIdx.x] = v;
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    }
    __syncthreads();
    return part[0];
}

template <class T>
__device__ inline T tree_max(T v) {
    __shared__ T part[1024];
    __syncthreads();
    part[threadIdx.x] = v;
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step && part[threadIdx.x + step] > part[threadIdx.x])
            part[threadIdx.x] = part[threadIdx.x + step];
    }
    __syncthreads();
    return part[0];
}
