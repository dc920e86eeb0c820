// Programs with one mistake each, and programs whose traffic is known.

extern "C" __global__ void past_the_end(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        y[i] = 2.0f * x[i];
    }
}

extern "C" __global__ void race(float* out) {
    __shared__ float s[128];
    s[threadIdx.x] = threadIdx.x;
    // A barrier is missing here.
    out[threadIdx.x] = s[(threadIdx.x + 32) % 128];
}

extern "C" __global__ void no_race(float* out) {
    __shared__ float s[128];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    atomicAdd(&count, 1);
    float v = s[(threadIdx.x + 32) % 128];
    __syncthreads();
    s[threadIdx.x] = v + count;
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x];
}

extern "C" __global__ void uninitialised(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + 1.0f; }

extern "C" __global__ void divergent(int* p) {
    if (threadIdx.x % 32 < 16) {
        asm volatile("bar.sync 0;");
        p[threadIdx.x] = 1;
    } else {
        asm volatile("bar.sync 0;");
        p[threadIdx.x] = 2;
    }
}

extern "C" __global__ void no_syncwarp(float* out, int ordered) {
    __shared__ float s[32];
    int lane = threadIdx.x;
    if (lane < 16) s[lane] = lane + 1;
    if (ordered) __syncwarp();
    // Half of the lanes read what the other half wrote.
    out[lane] = lane < 16 ? 0.0f : s[lane - 16];
}

extern "C" __global__ void together(float* out) {
    __shared__ float s[32];
    int lane = threadIdx.x;
    s[lane] = lane;
    out[lane] = s[31 - lane];
}

extern "C" __global__ void undefined_mask(int* out, int mask) {
    int lane = threadIdx.x;
    out[lane] = 0;
    // Lanes 16 to 31 wait at the barrier.
    if (lane < 16) out[lane] = __ballot_sync(mask, lane & 1);
    __syncthreads();
    out[lane] += lane;
}

extern "C" __global__ void early_return(int* out, int n) {
    int lane = threadIdx.x;
    if (lane >= n) return;
    out[lane] = __shfl_sync(0xffffffff, lane, 0);
}

extern "C" __global__ void shared_past_the_end(float* p, int n) {
    __shared__ float s[64];
    s[threadIdx.x + n] = 1.0f;
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void strided(const float* x, float* y, int stride) {
    y[threadIdx.x] = x[threadIdx.x * stride];
}

extern "C" __global__ void conflicts(float* y, int stride) {
    __shared__ float s[32 * 33];
    s[threadIdx.x * stride] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x * stride];
}

extern "C" __global__ void flops(float* f, double* d, int n) {
    int t = threadIdx.x;
    float a = f[t];
    double b = d[t];
    for (int i = 0; i < n; i++) {
        a = __fmaf_rn(a, 1.5f, 0.25f);
        a = __fadd_rn(a, 1.0f);
        a = __fmul_rn(a, 0.5f);
        b = __fma_rn(b, 1.5, 0.25);
    }
    f[t] = a;
    d[t] = b;
}

extern "C" __global__ void parting(int* p, int n) {
    int t = threadIdx.x, v = 0;
    if (t % 32 < n) {
        for (int i = 0; i < 10; i++) v += p[t] * i;
    }
    p[t] = v;
}
