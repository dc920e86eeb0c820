// Transforms.

// A Fourier transform of 256 complex numbers for each block, radix 2, in shared memory.
extern "C" __global__ void fft256(const float2* in, float2* out, float direction) {
    __shared__ float2 s[256];
    int t = threadIdx.x;
    const float2* x = in + blockIdx.x * 256;
    for (int i = t; i < 256; i += 128) s[__brev(i) >> 24] = x[i];
    for (int half = 1; half < 256; half <<= 1) {
        __syncthreads();
        int k = t & (half - 1), i = ((t & ~(half - 1)) << 1) | k;
        float sn, cs;
        sincospif(direction * k / half, &sn, &cs);
        float2 a = s[i], b = s[i + half];
        float2 m = {b.x * cs - b.y * sn, b.x * sn + b.y * cs};
        s[i] = make_float2(a.x + m.x, a.y + m.y);
        s[i + half] = make_float2(a.x - m.x, a.y - m.y);
    }
    __syncthreads();
    for (int i = t; i < 256; i += 128) out[blockIdx.x * 256 + i] = s[i];
}

// A Walsh-Hadamard transform of 128 integers by one warp: four in each lane, the rest by shuffles.
extern "C" __global__ void hadamard(int4* x, int rows) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    int4 v = x[row * 32 + lane];
    int a = v.x + v.y, b = v.x - v.y, c = v.z + v.w, d = v.z - v.w;
    int r[4] = {a + c, b + d, a - c, b - d};
#pragma unroll
    for (int d = 1; d < 32; d <<= 1)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int o = __shfl_xor_sync(~0u, r[i], d);
            r[i] = lane & d ? o - r[i] : r[i] + o;
        }
    x[row * 32 + lane] = make_int4(r[0], r[1], r[2], r[3]);
}

// The cosine transform (II) of tiles of 8 × 8, rows then columns, with a table made on the device.
extern "C" __global__ void dct8x8(const short* in, float* out, int w) {
    __shared__ float table[8][8], mid[8][9];
    __shared__ short s[8][8];
    int u = threadIdx.x, v = threadIdx.y;
    const short* tile = in + blockIdx.y * 8 * w + blockIdx.x * 8;
    s[v][u] = tile[v * w + u];
    table[v][u] = cospif((2 * u + 1) * v / 16.0f) * (v == 0 ? sqrtf(0.125f) : 0.5f);
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += s[v][k] * table[u][k];
    mid[v][u] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++) sum += mid[k][u] * table[v][k];
    out[(blockIdx.y * 8 + v) * w + blockIdx.x * 8 + u] = sum;
}
