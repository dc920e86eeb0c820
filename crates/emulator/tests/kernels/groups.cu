// Threads that wait for each other: cooperative groups, barriers, locks, flags.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

// The sum of all elements by halves, with the whole grid waiting after each step.
extern "C" __global__ void grid_reduce(long long* x, int n) {
    auto grid = cg::this_grid();
    for (int len = n; len > 1;) {
        int half = (len + 1) / 2;
        for (int i = grid.thread_rank(); i + half < len; i += grid.size()) x[i] += x[i + half];
        grid.sync();
        len = half;
    }
}

// Groups of a warp: tiles, labels, predicates, scans.
extern "C" __global__ void tiles(const int* x, int* sum4, int* scan16, int* label, int* ahead) {
    auto block = cg::this_thread_block();
    int i = blockIdx.x * blockDim.x + block.thread_rank();
    auto four = cg::tiled_partition<4>(block);
    sum4[i] = cg::reduce(four, x[i], cg::plus<int>());
    auto sixteen = cg::tiled_partition<16>(block);
    scan16[i] = cg::inclusive_scan(sixteen, x[i], cg::greater<int>());
    auto warp = cg::tiled_partition<32>(block);
#if __CUDA_ARCH__ >= 800
    auto same = cg::labeled_partition(warp, x[i] % 3);
#else
    auto same = cg::labeled_partition(cg::coalesced_threads(), x[i] % 3);
#endif
    label[i] = cg::reduce(same, 1 << (x[i] & 15), cg::bit_or<int>()) + 1000000 * same.size();
    ahead[i] = -1;
    if (x[i] % 5 < 2) {
        auto active = cg::coalesced_threads();
        ahead[i] = active.thread_rank() + 100 * active.shfl(x[i], active.size() - 1);
    }
}

// Sums by instructions over some lanes of the warp.
extern "C" __global__ void lane_sums(const unsigned* x, unsigned* out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned peers = __match_any_sync(~0u, x[t] % 4);
    int all;
    unsigned whole = __match_all_sync(~0u, x[t] / 100, &all);
#if __CUDA_ARCH__ >= 800
    out[t] = __reduce_add_sync(peers, x[t]) + __reduce_max_sync(peers, x[t]) * 1000 +
             (__reduce_xor_sync(~0u, x[t]) << 24);
#else
    unsigned sum = 0, most = 0, bits = 0;
    for (int l = 0; l < 32; l++) {
        unsigned v = __shfl_sync(~0u, x[t], l);
        bits ^= v;
        if (peers >> l & 1) sum += v, most = max(most, v);
    }
    out[t] = sum + most * 1000 + (bits << 24);
#endif
    out[t] += (whole != 0) + 2 * all;
}

// Rows come through shared memory with asynchronous copies: by a group, and in a pipeline of two stages.
extern "C" __global__ void copy_rows(const float* in, float* out, int rows) {
    __shared__ float s[128];
    auto block = cg::this_thread_block();
    for (int r = blockIdx.x; r < rows; r += gridDim.x) {
        cg::memcpy_async(block, s, in + r * 128, sizeof(float) * 128);
        cg::wait(block);
        out[r * 128 + threadIdx.x] = s[127 - threadIdx.x];
        block.sync();
    }
}

extern "C" __global__ void pipelined(const float4* in, float* sum, int tiles) {
    __shared__ float4 stage[2][64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;
    float total = 0;
    for (int fetched = 0, i = 0; i < tiles; i++) {
        for (; fetched < tiles && fetched < i + 2; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[fetched & 1][t], &in[(blockIdx.x * tiles + fetched) * 64 + t],
                               cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        float4 v = stage[i & 1][63 - t];
        total += v.x + 2 * v.y + 3 * v.z + 4 * v.w;
        __syncthreads();
        pipe.consumer_release();
    }
    sum[blockIdx.x * 64 + t] = total;
}

// Arrive early, wait late: a barrier object in shared memory instead of a barrier of the block.
extern "C" __global__ void split_barrier(const int* in, int* out, int rounds) {
    __shared__ cuda::barrier<cuda::thread_scope_block> ready, taken;
    __shared__ int s[128];
    if (threadIdx.x == 0) init(&ready, blockDim.x), init(&taken, blockDim.x);
    __syncthreads();
    int v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int r = 0; r < rounds; r++) {
        s[threadIdx.x] = v;
        auto token = ready.arrive();
        int own = v * 3 + r;
        ready.wait(cuda::std::move(token));
        v = own + s[(threadIdx.x + 37) % blockDim.x];
        taken.arrive_and_wait();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

// One warp makes, another one uses; two named barriers of 64 threads hand a buffer over.
extern "C" __global__ void named_barriers(const int* in, int* out, int rounds) {
    __shared__ int s[32];
    int lane = threadIdx.x % 32, pair = threadIdx.x / 64, user = threadIdx.x / 32 % 2;
    int full = 1, empty = 2;
    if (pair) return;
    int sum = 0;
    for (int r = 0; r < rounds; r++) {
        if (!user) {
            asm volatile("bar.sync %0, 64;" ::"r"(empty) : "memory");
            s[lane] = in[r * 32 + lane];
            asm volatile("bar.arrive %0, 64;" ::"r"(full) : "memory");
        } else {
            asm volatile("bar.arrive %0, 64;" ::"r"(empty) : "memory");
            asm volatile("bar.sync %0, 64;" ::"r"(full) : "memory");
            sum += s[31 - lane] * (r + 1);
        }
    }
    if (user) out[blockIdx.x * 32 + lane] = sum;
}

// The first blocks make, the last ones use what flags say is there.
extern "C" __global__ void hand_over(int* data, int* flag, long long* sum, int len) {
    int pairs = gridDim.x / 2, me = blockIdx.x % pairs;
    if (blockIdx.x < pairs) {
        for (int i = threadIdx.x; i < len; i += blockDim.x) data[me * len + i] = me * 1000 + i;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicExch(&flag[me], 1);
        return;
    }
    if (threadIdx.x == 0)
        while (atomicAdd(&flag[me], 0) == 0) __nanosleep(50);
    __syncthreads();
    __threadfence();
    long long s = 0;
    for (int i = threadIdx.x; i < len; i += blockDim.x) s += data[me * len + i];
    atomicAdd((unsigned long long*)&sum[me], (unsigned long long)s);
}

// The last block to end adds up what the others have left.
__device__ unsigned ended;
extern "C" __global__ void last_block(const int* x, long long* part, long long* total, int n) {
    __shared__ bool last;
    __shared__ long long s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    long long v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    atomicAdd((unsigned long long*)&s, (unsigned long long)v);
    __syncthreads();
    if (threadIdx.x == 0) {
        part[blockIdx.x] = s;
        __threadfence();
        last = atomicInc(&ended, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x) return;
    long long sum = 0;
    for (int b = 0; b < gridDim.x; b++) sum += *(volatile long long*)&part[b];
    *total = sum;
}

// A fair lock that every lane takes, within one warp and over all blocks.
extern "C" __global__ void tickets(unsigned* next, unsigned* serving, int* order, int* at) {
    unsigned mine = atomicAdd(next, 1);
    while (*(volatile unsigned*)serving != mine) {}
    __threadfence();
    int i = *(volatile int*)at;
    order[i] = (int)mine;
    *(volatile int*)at = i + 1;
    __threadfence();
    atomicExch(serving, mine + 1);
}

// A queue of one cell from block 0 to block 1 with acquire and release.
extern "C" __global__ void channel(int* cell, int* state, long long* got, int n) {
    cuda::atomic_ref<int, cuda::thread_scope_device> s(*state);
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        for (int i = 0; i < n; i++) {
            while (s.load(cuda::memory_order_acquire) != 0) {}
            *cell = i * i;
            s.store(1, cuda::memory_order_release);
        }
    } else {
        long long sum = 0;
        for (int i = 0; i < n; i++) {
            while (s.load(cuda::memory_order_acquire) != 1) {}
            sum = sum * 3 + *cell;
            s.store(0, cuda::memory_order_release);
        }
        *got = sum;
    }
}
