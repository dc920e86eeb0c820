// Prefix sums, compaction, histograms and moments.

// Inclusive prefix sums of 64-bit integers in one pass: a block publishes its own sum, then looks
// back over its predecessors until one of them has published all that is before it. A state is
// the sum in the high 62 bits, and 1 (own sum) or 2 (sum of all) in the low ones.
extern "C" __global__ void look_back_scan(const int* x, long long* y, unsigned long long* state,
                                          unsigned* ticket, int n) {
    __shared__ long long warps[8];
    __shared__ unsigned tile;
    __shared__ long long prefix;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
    __syncthreads();
    int i = tile * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    long long v = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        long long o = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += o;
    }
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    long long before = 0, all = 0;
    for (int w = 0; w < blockDim.x / 32; w++) {
        if (w < warp) before += warps[w];
        all += warps[w];
    }
    if (threadIdx.x == 0) {
        long long sum = 0;
        if (tile > 0) {
            atomicExch(&state[tile], (unsigned long long)all << 2 | 1);
            for (int p = (int)tile - 1;; p--) {
                unsigned long long s;
                do s = *(volatile unsigned long long*)&state[p];
                while ((s & 3) == 0);
                sum += (long long)s >> 2;
                if ((s & 3) == 2) break;
            }
        }
        __threadfence();
        atomicExch(&state[tile], (unsigned long long)(sum + all) << 2 | 2);
        prefix = sum;
    }
    __syncthreads();
    if (i < n) y[i] = prefix + before + v;
}

// Sums that begin again wherever `head` is set, within a block.
extern "C" __global__ void segmented_scan(const float* x, const unsigned char* head, float* y, int n) {
    extern __shared__ float s[];
    int* open = (int*)(s + blockDim.x);
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    s[t] = i < n ? x[i] : 0;
    open[t] = i >= n || (head[i] || t == 0);
    __syncthreads();
    for (int d = 1; d < blockDim.x; d <<= 1) {
        float v = s[t];
        int f = open[t];
        if (t >= d && !f) v += s[t - d], f = open[t - d];
        __syncthreads();
        s[t] = v, open[t] = f;
        __syncthreads();
    }
    if (i < n) y[i] = s[t];
}

// Moves the positive elements to the front of the output; one atomic for each warp.
extern "C" __global__ void compact(const int* x, int* y, unsigned* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = i < n && x[i] > 0;
    unsigned votes = __ballot_sync(~0u, keep), at = 0;
    if (lane == 0 && votes) at = atomicAdd(count, __popc(votes));
    at = __shfl_sync(~0u, at, 0) + __popc(votes & ((1u << lane) - 1));
    if (keep) y[at] = x[i];
}

// Histograms of bytes in shared memory, four at a time; equal bytes of a warp are added once.
extern "C" __global__ void byte_histogram(const uchar4* x, unsigned* bins, int n4) {
    __shared__ unsigned s[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) s[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        uchar4 v = x[i];
        unsigned char b[4] = {v.x, v.y, v.z, v.w};
        for (int k = 0; k < 4; k++) {
            unsigned active = __activemask(), same = __match_any_sync(active, b[k]);
            if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&s[b[k]], __popc(same));
        }
    }
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (s[b]) atomicAdd(&bins[b], s[b]);
}

struct Moments {
    float n, mean, m2;
};

__device__ Moments join(Moments a, Moments b) {
    float n = a.n + b.n;
    if (n == 0) return a;
    float d = b.mean - a.mean;
    return {n, a.mean + d * b.n / n, a.m2 + b.m2 + d * d * a.n * b.n / n};
}

// Mean and variance of each channel of x[batch][channels][space], and the normalised tensor.
extern "C" __global__ void batch_norm(const float* x, float* y, float* mean, float* variance,
                                      const float* gamma, const float* beta, int batch, int space) {
    __shared__ Moments part[32];
    int c = blockIdx.x, channels = gridDim.x, n = batch * space;
    Moments m = {0, 0, 0};
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float v = x[(i / space * channels + c) * space + i % space];
        m.n += 1;
        float d = v - m.mean;
        m.mean += d / m.n;
        m.m2 += d * (v - m.mean);
    }
    for (int d = 16; d; d >>= 1) {
        Moments o = {__shfl_xor_sync(~0u, m.n, d), __shfl_xor_sync(~0u, m.mean, d),
                     __shfl_xor_sync(~0u, m.m2, d)};
        m = join(m, o);
    }
    if ((threadIdx.x & 31) == 0) part[threadIdx.x / 32] = m;
    __syncthreads();
    m = part[0];
    for (int w = 1; w < blockDim.x / 32; w++) m = join(m, part[w]);
    float var = m.m2 / n, scale = gamma[c] * rsqrtf(var + 1e-5f);
    if (threadIdx.x == 0) mean[c] = m.mean, variance[c] = var;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int at = (i / space * channels + c) * space + i % space;
        y[at] = (x[at] - m.mean) * scale + beta[c];
    }
}
