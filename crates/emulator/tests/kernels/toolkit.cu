// Architectures: 75 90
// Synchronisation and arithmetic of the toolkit's C++ library.
#include <cooperative_groups.h>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/complex>

namespace cg = cooperative_groups;

extern "C" __global__ void latch(int* out) {
    using Latch = cuda::latch<cuda::thread_scope_block>;
    __shared__ alignas(Latch) char memory[sizeof(Latch)];
    __shared__ int s[256];
    Latch* l = (Latch*)memory;
    if (threadIdx.x == 0) new (l) Latch(blockDim.x);
    __syncthreads();
    s[threadIdx.x] = threadIdx.x * 3;
    l->arrive_and_wait();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

// A plain variable under a lock that every thread takes.
extern "C" __global__ void semaphore(int* out, int rounds) {
    using Semaphore = cuda::binary_semaphore<cuda::thread_scope_block>;
    __shared__ alignas(Semaphore) char memory[sizeof(Semaphore)];
    __shared__ int v;
    Semaphore* s = (Semaphore*)memory;
    if (threadIdx.x == 0) new (s) Semaphore(1), v = 0;
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        s->acquire();
        v = v + 1;
        s->release();
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = v;
}

// A pipeline of two stages that the whole block shares.
extern "C" __global__ void block_pipeline(const int* in, int* out, int n) {
    auto block = cg::this_thread_block();
    __shared__ int buffer[2][64];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int f = 0, i = 0; i < n; i++) {
        for (; f < n && f < i + 2; f++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, buffer[f & 1], in + f * 64, sizeof(int) * 64, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += buffer[i & 1][63 - threadIdx.x] * (i + 1);
        pipe.consumer_release();
    }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}

// The first warp fetches, the second one adds up.
extern "C" __global__ void roles(const int* in, int* out, int n) {
    auto block = cg::this_thread_block();
    __shared__ int buffer[2][32];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    bool fetches = threadIdx.x < 32;
    auto role = fetches ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (fetches) {
            pipe.producer_acquire();
            cuda::memcpy_async(&buffer[i & 1][threadIdx.x], in + i * 32 + threadIdx.x, sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum += buffer[i & 1][63 - threadIdx.x] * (i + 1);
            pipe.consumer_release();
        }
    }
    if (!fetches) out[blockIdx.x * 32 + threadIdx.x - 32] = sum;
}

extern "C" __global__ void complex(cuda::std::complex<double>* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    auto z = x[i];
    x[i] = exp(z) * sqrt(z) / (z + cuda::std::complex<double>(1, 2)) - cuda::std::conj(z) * abs(z);
}

// Bytes and half-words in a word.
extern "C" __global__ void packed(const unsigned* x, const unsigned* y, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = x[i], b = y[i], *o = out + i * 16;
    o[0] = __vadd4(a, b), o[1] = __vsub4(a, b), o[2] = __vabsdiffs4(a, b), o[3] = __vabsdiffu4(a, b);
    o[4] = __vmaxs4(a, b), o[5] = __vminu2(a, b), o[6] = __vsadu4(a, b), o[7] = __vcmpgts4(a, b);
    o[8] = __vsetleu2(a, b), o[9] = __vavgu4(a, b), o[10] = __vhaddu4(a, b), o[11] = __vaddss4(a, b);
    o[12] = __vsubus2(a, b), o[13] = __vnegss2(a), o[14] = __vabsss4(a), o[15] = __vsads2(a, b);
}
