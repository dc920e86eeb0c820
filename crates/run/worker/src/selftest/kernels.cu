// Kernels of the self-test: well-behaved ones, faulty ones, and ones that look for secrets.

typedef unsigned int u32;
typedef unsigned long long u64;

#define SECRET 0x5EC4E75EC4E75EC4ull

extern "C" __global__ void st_nothing(void* a) {}

extern "C" __global__ void st_scale(float* out, const float* in, float factor, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * factor;
}

extern "C" __global__ void st_scale_in_place(float* data, float factor, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * factor;
}

extern "C" __global__ void st_change_input(float* out, float* in, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
    if (i == n - 1) in[i] = 0.0f;
}

extern "C" __global__ void st_null(u32* out) { *(volatile u32*)0 = 1; }

extern "C" __global__ void st_misaligned(char* out) { *(volatile u32*)(out + 1) = 1; }

extern "C" __global__ void st_trap(u32* out) { asm volatile("trap;"); }

extern "C" __global__ void st_spin(volatile u32* out) {
    while (out[0] != 12345) {
    }
}

extern "C" __global__ void st_print(u32* out, u32 lines) {
    for (u32 i = 0; i < lines; i++) printf("line %u of the self-test\n", i);
    out[0] = lines;
}

// Counts how often all of the block's shared memory was reached.
extern __shared__ u64 shared_words[];

extern "C" __global__ void st_big_shared(u32* out, u32 words) {
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) shared_words[i] = i;
    __syncthreads();
    u32 wrong = 0;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x)
        wrong += shared_words[words - 1 - i] != words - 1 - i;
    if (threadIdx.x == 0) out[blockIdx.x] = 1;
    if (wrong) out[blockIdx.x] = 0;
}

extern "C" __global__ void st_cluster(u32* out) {
#if __CUDA_ARCH__ >= 900
    u32 rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    out[blockIdx.x] = size * 100 + rank;
#endif
}

// Every block waits for all others: ends only if all are resident at once.
extern "C" __global__ void st_cooperative(u32* arrived, u32* out) {
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile u32*)arrived < gridDim.x) {
        }
        out[blockIdx.x] = *(volatile u32*)arrived;
    }
}

// ---- secrets: `hide` kernels write SECRET, `seek` kernels count it in what they did not write.

__device__ u64 hidden_words[4096];

extern "C" __global__ void st_hide_global(u64* out, u32 n) {
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) out[i] = SECRET;
    for (u32 i = threadIdx.x; i < 4096; i += blockDim.x) hidden_words[i] = SECRET;
}

// Looks from its own buffer to the end of the 2 MiB that the driver maps at once.
extern "C" __global__ void st_seek_global(u32* found) {
    const volatile u64* from = (const volatile u64*)((u64)found & ~((2ull << 20) - 1));
    for (u32 i = threadIdx.x; i < (2u << 20) / 8; i += blockDim.x)
        if (from[i] == SECRET) atomicAdd(found, 1);
}

extern "C" __global__ void st_hide_shared(u32* out, u32 words) {
    volatile u64* all = shared_words;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) all[i] = SECRET;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = all[words - 1] == SECRET;
}

extern "C" __global__ void st_seek_shared(u32* found, u32 words) {
    volatile u64* all = shared_words;
    u32 count = 0;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) count += all[i] == SECRET;
    if (count) atomicAdd(found, count);
}

// The arrays are declared in assembly: reading one that was not written has no meaning in C++.
extern "C" __global__ void st_hide_local(u32* out) {
    u32 stored = 0;
    asm volatile(
        "{ .local .align 8 .b8 hidden[512]; .reg .u32 i; .reg .u64 a, v; .reg .pred p;\n"
        "mov.u32 i, 0; mov.u64 a, hidden;\n"
        "HIDE: st.local.u64 [a], %1; add.u64 a, a, 8; add.u32 i, i, 8;\n"
        "setp.lt.u32 p, i, 512; @p bra HIDE;\n"
        // Read back, so that the stores have a use.
        "mov.u32 i, 0; mov.u64 a, hidden; mov.u32 %0, 0;\n"
        "BACK: ld.local.u64 v, [a]; setp.eq.u64 p, v, %1; @p add.u32 %0, %0, 8;\n"
        "add.u64 a, a, 8; add.u32 i, i, 8; setp.lt.u32 p, i, 512; @p bra BACK; }"
        : "=&r"(stored) : "l"(SECRET) : "memory");
    if (threadIdx.x == 0) out[blockIdx.x] = stored;
}

extern "C" __global__ void st_seek_local(u32* found) {
    u32 count = 0;
    asm volatile(
        "{ .local .align 8 .b8 hidden[512]; .reg .u32 i; .reg .u64 a, v; .reg .pred p;\n"
        "mov.u32 i, 0; mov.u64 a, hidden; mov.u32 %0, 0;\n"
        "SEEK: ld.local.u64 v, [a]; setp.eq.u64 p, v, %1; @p add.u32 %0, %0, 1;\n"
        "add.u64 a, a, 8; add.u32 i, i, 8; setp.lt.u32 p, i, 512; @p bra SEEK; }"
        : "=&r"(count) : "l"(SECRET) : "memory");
    if (count) atomicAdd(found, count);
}
