// Sorting and selection.

// Sorts up to 1024 keys of one block in shared memory; the rest is filled with the largest key.
extern "C" __global__ void bitonic_block(unsigned* keys, int n, int size) {
    extern __shared__ unsigned s[];
    for (int i = threadIdx.x; i < size; i += blockDim.x) s[i] = i < n ? keys[i] : 0xffffffffu;
    for (int k = 2; k <= size; k <<= 1)
        for (int j = k >> 1; j > 0; j >>= 1) {
            __syncthreads();
            for (int i = threadIdx.x; i < size; i += blockDim.x) {
                int other = i ^ j;
                if (other <= i) continue;
                bool up = (i & k) == 0;
                unsigned a = s[i], b = s[other];
                if ((a > b) == up) s[i] = b, s[other] = a;
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = s[i];
}

// One step of a bitonic sort of floats in global memory, with values that go along.
extern "C" __global__ void bitonic_step(float* keys, int* values, int j, int k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
    if (i >= n || other <= i) return;
    float a = keys[i], b = keys[other];
    if ((i & k) == 0 ? a > b : a < b) {
        keys[i] = b, keys[other] = a;
        int v = values[i];
        values[i] = values[other], values[other] = v;
    }
}

// How many keys of each block have each digit of four bits: counts[digit * blocks + block].
extern "C" __global__ void radix_count(const unsigned* keys, unsigned* counts, int n, int shift) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[keys[i] >> shift & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// Exclusive prefix sums, in place, by one block.
extern "C" __global__ void radix_offsets(unsigned* counts, int n) {
    __shared__ unsigned part[256], carry;
    if (threadIdx.x == 0) carry = 0;
    for (int base = 0; base < n; base += blockDim.x) {
        int i = base + threadIdx.x;
        unsigned v = i < n ? counts[i] : 0;
        part[threadIdx.x] = v;
        __syncthreads();
        for (int d = 1; d < blockDim.x; d <<= 1) {
            unsigned add = threadIdx.x >= d ? part[threadIdx.x - d] : 0;
            __syncthreads();
            part[threadIdx.x] += add;
            __syncthreads();
        }
        if (i < n) counts[i] = carry + part[threadIdx.x] - v;
        __syncthreads();
        if (threadIdx.x == 0) carry += part[blockDim.x - 1];
        __syncthreads();
    }
}

// Moves the keys to their places; equal digits keep their order.
extern "C" __global__ void radix_scatter(const unsigned* in, unsigned* out, const unsigned* offsets,
                                         int n, int shift) {
    __shared__ unsigned before[8][16];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int d = lane; d < 16; d += 32) before[warp][d] = 0;
    __syncwarp();
    unsigned key = i < n ? in[i] : 0, digit = i < n ? key >> shift & 15 : 16;
    unsigned peers = __match_any_sync(0xffffffffu, digit);
    unsigned rank = __popc(peers & ((1u << lane) - 1));
    if (i < n && rank == 0) before[warp][digit] = __popc(peers);
    __syncthreads();
    if (i >= n) return;
    for (int w = 0; w < warp; w++) rank += before[w][digit];
    out[offsets[digit * gridDim.x + blockIdx.x] + rank] = key;
}

// The K largest of a row and where they are, by a warp; ties go to the smaller index.
template <int K> __device__ void top(const float* x, int cols, float* value, int* where) {
    float v[K];
    int at[K];
    for (int k = 0; k < K; k++) v[k] = -__int_as_float(0x7f800000), at[k] = 0x7fffffff;
    for (int c = threadIdx.x; c < cols; c += 32) {
        float f = x[c];
        int p = c;
#pragma unroll
        for (int k = 0; k < K; k++)
            if (f > v[k]) {
                float tf = v[k];
                int tp = at[k];
                v[k] = f, at[k] = p, f = tf, p = tp;
            }
    }
    for (int k = 0; k < K; k++) {
        float best = v[0];
        int p = at[0];
        for (int d = 16; d; d >>= 1) {
            float o = __shfl_xor_sync(~0u, best, d);
            int q = __shfl_xor_sync(~0u, p, d);
            if (o > best || (o == best && q < p)) best = o, p = q;
        }
        if (threadIdx.x == 0) value[k] = best, where[k] = p;
        if (p == at[0]) {
#pragma unroll
            for (int m = 0; m + 1 < K; m++) v[m] = v[m + 1], at[m] = at[m + 1];
            v[K - 1] = -__int_as_float(0x7f800000), at[K - 1] = 0x7fffffff;
        }
    }
}

extern "C" __global__ void top_k(const float* x, int cols, float* value, int* where) {
    int r = blockIdx.x;
    top<8>(x + (size_t)r * cols, cols, value + r * 8, where + r * 8);
}

// The index of the largest element over all blocks: key and index packed in one atomic.
extern "C" __global__ void argmax(const float* x, int n, unsigned long long* best) {
    __shared__ unsigned long long s[32];
    unsigned long long mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned b = __float_as_uint(x[i]);
        b = b >> 31 ? ~b : b | 0x80000000u;
        unsigned long long key = (unsigned long long)b << 32 | (unsigned)~i;
        mine = key > mine ? key : mine;
    }
    for (int d = 16; d; d >>= 1) mine = max(mine, __shfl_down_sync(~0u, mine, d));
    if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0;
        for (int d = 16; d; d >>= 1) mine = max(mine, __shfl_down_sync(~0u, mine, d));
        if (threadIdx.x == 0) atomicMax(best, mine);
    }
}
