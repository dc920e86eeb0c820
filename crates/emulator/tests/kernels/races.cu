// Architectures: 80 90
// Copies that are waited for or not, and blocks that meet in global memory, in order or not.
#include <cuda_pipeline.h>

// Rows of 64 float4 through two or three stages: each thread sums the column that another one has fetched.
template <int KEEP, int STAGES>
__device__ void stages(const float4* in, float* out, int rows) {
    __shared__ float4 stage[STAGES][64];
    int t = threadIdx.x;
    float total = 0;
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < rows) __pipeline_memcpy_async(&stage[i][t], &in[i * 64 + t], 16);
        __pipeline_commit();
    }
    for (int i = 0; i < rows; i++) {
        int next = i + STAGES - 1;
        __pipeline_wait_prior(KEEP);
        __syncthreads();
        float4 v = stage[i % STAGES][63 - t];
        total += v.x + 2 * v.y + 3 * v.z + 4 * v.w;
        if (next < rows) __pipeline_memcpy_async(&stage[next % STAGES][t], &in[next * 64 + t], 16);
        __pipeline_commit();
    }
    out[t] = total;
}

extern "C" __global__ void two_stages(const float4* in, float* out, int rows) { stages<0, 2>(in, out, rows); }
extern "C" __global__ void three_stages(const float4* in, float* out, int rows) { stages<1, 3>(in, out, rows); }
extern "C" __global__ void waits_too_little(const float4* in, float* out, int rows) { stages<2, 3>(in, out, rows); }

extern "C" __global__ void never_waits(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = -1;
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    out[threadIdx.x] = s[threadIdx.x];  // Nothing has come yet.
}

extern "C" __global__ void writes_while_copied(const float* in, float* out) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    s[threadIdx.x] = -1;  // Is overwritten, or overwrites.
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void waits_after_barrier(const float* in, float* out) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __syncthreads();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[63 - threadIdx.x];  // What others have waited for, they alone know.
}

extern "C" __global__ void changes_source(float* in, float* out) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    in[threadIdx.x] = -1;
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x];
}

// One warp fetches, another one uses, with a barrier object between them; `wait`: whether it is waited for.
__device__ void handed_over(const float* in, float* out, int rounds, bool wait) {
    __shared__ float s[2][32];
    __shared__ __align__(8) unsigned long long full[2], empty[2];
    int lane = threadIdx.x % 32;
    unsigned f[2], e[2];
    for (int i = 0; i < 2; i++) {
        f[i] = (unsigned)__cvta_generic_to_shared(&full[i]);
        e[i] = (unsigned)__cvta_generic_to_shared(&empty[i]);
    }
    if (threadIdx.x < 2) {
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(f[threadIdx.x]) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(e[threadIdx.x]) : "memory");
    }
    __syncthreads();
    auto until = [](unsigned object, unsigned parity) {
        unsigned done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(object), "r"(parity) : "memory");
    };
    float sum = 0;
    for (int r = 0; r < rounds; r++) {
        int at = r & 1, turn = r >> 1 & 1;
        if (threadIdx.x < 32) {
            if (r >= 2) until(e[at], turn ^ 1);
            __pipeline_memcpy_async(&s[at][lane], &in[r * 32 + lane], 4);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(f[at]) : "memory");
        } else {
            if (wait) until(f[at], turn);
            sum += s[at][31 - lane] * (r + 1);
            asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(e[at]) : "memory");
        }
    }
    if (threadIdx.x >= 32) out[lane] = sum;
}

extern "C" __global__ void hands_over(const float* in, float* out, int n) { handed_over(in, out, n, true); }
extern "C" __global__ void takes_too_early(const float* in, float* out, int n) { handed_over(in, out, n, false); }

// Blocks in global memory, wrong.

extern "C" __global__ void adds_plainly(int* x, int v) {
    if (threadIdx.x == 0) *x += v + blockIdx.x;  // Should be an atomic.
}

extern "C" __global__ void reads_neighbour(const int* x, int* y, int* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + 1;
    z[i] = y[n - 1 - i];  // Of a block that may not have begun.
}

extern "C" __global__ void resets_a_sum(int* sum) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *sum = 7;  // Before or after the others?
    atomicAdd(sum, 1);
}

extern "C" __global__ void adds_beside_tickets(int* ticket, int* x) {
    if (threadIdx.x) return;
    int mine = atomicAdd(ticket, 1);
    *x += mine + 1;  // Tickets order nothing that comes after them.
}

extern "C" __global__ void ignores_the_flag(int* data, int* flag, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        out[blockIdx.x] = *data;  // Does not look at the flag.
    }
}

// Blocks in global memory, right.

extern "C" __global__ void sums_at_the_end(const int* x, int* part, int* count, int* total, int n) {
    __shared__ int own, last;
    if (threadIdx.x == 0) own = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&own, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        part[blockIdx.x] = own;
        __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    if (threadIdx.x == 0) *total = 0;
    __syncthreads();
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) atomicAdd(total, part[b]);
    __syncthreads();
    if (threadIdx.x == 0) *count = 0;
}

// Block b hands a number to block b + 1: by an atomic, by volatile flags, by a plain flag that is polled.
template <int HOW>
__device__ void chain(int* cell, int* flag) {
    if (threadIdx.x) return;
    int b = blockIdx.x, before = 0;
    if (b > 0) {
        if (HOW == 0) while (atomicAdd(&flag[b - 1], 0) == 0) {}
        if (HOW == 1 || HOW == 2) while (*(volatile int*)&flag[b - 1] == 0) {}
        if (HOW == 3) {
            int seen = 0;
            while (!seen) asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(flag + b - 1) : "memory");
        }
        __threadfence();
        before = cell[0];
    }
    cell[0] = before + b;
    __threadfence();
    if (HOW == 0) atomicExch(&flag[b], 1);
    if (HOW == 1) *(volatile int*)&flag[b] = 1;
    if (HOW == 2) flag[b] = 1;
    if (HOW == 3) asm volatile("st.release.gpu.s32 [%0], %1;" ::"l"(flag + b), "r"(1) : "memory");
}

extern "C" __global__ void chain_atomic(int* cell, int* flag) { chain<0>(cell, flag); }
extern "C" __global__ void chain_volatile(int* cell, int* flag) { chain<1>(cell, flag); }
extern "C" __global__ void chain_plain(int* cell, int* flag) { chain<2>(cell, flag); }
extern "C" __global__ void chain_release(int* cell, int* flag) { chain<3>(cell, flag); }

extern "C" __global__ void sets_a_flag(const int* x, int* any, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) *any = 1;
}

extern "C" __global__ void bytes_side_by_side(const unsigned char* x, unsigned char* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (y[i] & 1) + x[i] + 1;
}

// A maximum by compare-and-swap, which begins with a plain read.
extern "C" __global__ void largest(const float* x, int* most, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int old = *most;
    while (__int_as_float(old) < x[i]) {
        int seen = atomicCAS(most, old, __float_as_int(x[i]));
        if (seen == old) break;
        old = seen;
    }
}

// Blocks take rows as they come, and write to those alone.
extern "C" __global__ void rows_by_ticket(int* ticket, int* x, int rows) {
    __shared__ int row;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) row = atomicAdd(ticket, 1);
        __syncthreads();
        if (row >= rows) return;
        x[row * blockDim.x + threadIdx.x] += row;
    }
}

// Memory of the device's heap goes from one block to another.
extern "C" __global__ void reuses_memory(int* out) {
    if (threadIdx.x) return;
    int sum = 0;
    for (int i = 0; i < 8; i++) {
        int* p = (int*)malloc(64);
        if (!p) __trap();
        for (int k = 0; k < 16; k++) p[k] = blockIdx.x * 100 + k + i;
        for (int k = 0; k < 16; k++) sum += p[k];
        free(p);
    }
    out[blockIdx.x] = sum;
}

extern "C" __global__ void last_writer(int* x) {
    if (threadIdx.x == 0) *x = blockIdx.x;
}
