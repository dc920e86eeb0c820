// Parts of neural networks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define INFINITY __int_as_float(0x7f800000)

__device__ float block_sum(float v) {
    __shared__ float part[32];
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = (threadIdx.x & 31) < blockDim.x / 32 ? part[threadIdx.x & 31] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

// softmax(Q Kᵀ / √D) V for each head, tile by tile of 16 keys, with a running maximum. A block has
// 32 queries; a warp has eight of them, four lanes for each.
#define D 32
extern "C" __global__ void __launch_bounds__(128)
flash_attention(const float* q, const float* k, const float* v, float* out, int n, int causal) {
    __shared__ float ks[16][D + 4], vs[16][D + 4];
    size_t head = (size_t)blockIdx.y * n * D;
    int row = blockIdx.x * 32 + threadIdx.x / 4, part = threadIdx.x % 4;
    float mine[D / 4], acc[D / 4], top = -INFINITY, total = 0;
    for (int i = 0; i < D / 4; i++) {
        mine[i] = row < n ? q[head + row * D + i * 4 + part] * rsqrtf(float(D)) : 0;
        acc[i] = 0;
    }
    int end = causal ? min(n, (int)blockIdx.x * 32 + 32) : n;
    for (int base = 0; base < end; base += 16) {
        for (int i = threadIdx.x; i < 16 * D / 4; i += 128) {
            int r = i / (D / 4), c = i % (D / 4) * 4;
            float4 zero = make_float4(0, 0, 0, 0);
            bool in = base + r < n;
            *(float4*)&ks[r][c] = in ? *(const float4*)&k[head + (base + r) * D + c] : zero;
            *(float4*)&vs[r][c] = in ? *(const float4*)&v[head + (base + r) * D + c] : zero;
        }
        __syncthreads();
        float s[16], most = top;
#pragma unroll
        for (int j = 0; j < 16; j++) {
            float dot = 0;
            for (int i = 0; i < D / 4; i++) dot += mine[i] * ks[j][i * 4 + part];
            dot += __shfl_xor_sync(~0u, dot, 1);
            dot += __shfl_xor_sync(~0u, dot, 2);
            bool seen = base + j < n && (!causal || base + j <= row);
            s[j] = seen ? dot : -INFINITY;
            most = fmaxf(most, s[j]);
        }
        float keep = most == -INFINITY ? 1 : __expf(top - most);
        total *= keep;
        for (int i = 0; i < D / 4; i++) acc[i] *= keep;
#pragma unroll
        for (int j = 0; j < 16; j++) {
            float p = s[j] == -INFINITY ? 0 : __expf(s[j] - most);
            total += p;
            for (int i = 0; i < D / 4; i++) acc[i] += p * vs[j][i * 4 + part];
        }
        top = most;
        __syncthreads();
    }
    if (row < n)
        for (int i = 0; i < D / 4; i++) out[head + row * D + i * 4 + part] = acc[i] / total;
}

// Rotary embedding of pairs half a row apart, in half precision.
extern "C" __global__ void rope(__half* x, int positions, int dim, float base) {
    int i = threadIdx.x, p = blockIdx.x, half = dim / 2;
    if (p >= positions || i >= half) return;
    float angle = p * powf(base, -2.0f * i / dim), s, c;
    sincosf(angle, &s, &c);
    float a = __half2float(x[p * dim + i]), b = __half2float(x[p * dim + i + half]);
    x[p * dim + i] = __float2half_rn(a * c - b * s);
    x[p * dim + i + half] = __float2half_rn(a * s + b * c);
}

extern "C" __global__ void rms_norm(const __nv_bfloat162* x, const float* weight, __nv_bfloat162* y, int cols) {
    const __nv_bfloat162* row = x + (size_t)blockIdx.x * cols / 2;
    float sum = 0;
    for (int c = threadIdx.x; c < cols / 2; c += blockDim.x) {
        float2 f = __bfloat1622float2(row[c]);
        sum += f.x * f.x + f.y * f.y;
    }
    float scale = rsqrtf(block_sum(sum) / cols + 1e-6f);
    for (int c = threadIdx.x; c < cols / 2; c += blockDim.x) {
        float2 f = __bfloat1622float2(row[c]);
        f.x *= scale * weight[2 * c], f.y *= scale * weight[2 * c + 1];
        y[(size_t)blockIdx.x * cols / 2 + c] = __float22bfloat162_rn(f);
    }
}

// Loss and gradient of each row; a label of −1 is ignored.
extern "C" __global__ void cross_entropy(const float* logits, const int* label, float* loss, float* gradient,
                                         int classes) {
    const float* x = logits + (size_t)blockIdx.x * classes;
    float* g = gradient + (size_t)blockIdx.x * classes;
    int want = label[blockIdx.x];
    if (want < 0) {
        for (int c = threadIdx.x; c < classes; c += blockDim.x) g[c] = 0;
        if (threadIdx.x == 0) loss[blockIdx.x] = 0;
        return;
    }
    float top = -INFINITY, sum = 0;
    for (int c = 0; c < classes; c++) top = fmaxf(top, x[c]);
    for (int c = threadIdx.x; c < classes; c += blockDim.x) sum += expf(x[c] - top);
    sum = block_sum(sum);
    for (int c = threadIdx.x; c < classes; c += blockDim.x) g[c] = expf(x[c] - top) / sum - (c == want);
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(sum) + top - x[want];
}

// Rows of a table by index, and their gradients back; a negative index is a row of zeros.
extern "C" __global__ void gather_rows(const float4* table, const long long* index, float4* out, int width4) {
    long long row = index[blockIdx.x];
    for (int c = threadIdx.x; c < width4; c += blockDim.x)
        out[(size_t)blockIdx.x * width4 + c] = row < 0 ? make_float4(0, 0, 0, 0) : table[row * width4 + c];
}

extern "C" __global__ void scatter_add(const float* grad, const long long* index, float* table, __half2* halves,
                                       int width) {
    long long row = index[blockIdx.x];
    if (row < 0) return;
    for (int c = threadIdx.x; c < width; c += blockDim.x)
        atomicAdd(&table[row * width + c], grad[(size_t)blockIdx.x * width + c]);
    for (int c = threadIdx.x; c < width / 2; c += blockDim.x)
        atomicAdd(&halves[row * width / 2 + c], __floats2half2_rn(1.0f, (float)c));
}

extern "C" __global__ void activations(const float* x, float* gelu, float* gelu_tanh, float* silu,
                                       float* softplus, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = x[i];
        gelu[i] = 0.5f * v * (1 + erff(v * 0.70710678f));
        gelu_tanh[i] = 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
        silu[i] = __fdividef(v, 1 + __expf(-v));
        softplus[i] = v > 20 ? v : log1pf(expf(v));
    }
}

// Signed 4-bit weights, eight to a word, a scale for each 32 of them: out and back.
extern "C" __global__ void quantise4(const float* x, unsigned* packed, __half* scale, int groups) {
    int g = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (g >= groups) return;
    float v = x[g * 32 + lane];
    unsigned most = __float_as_uint(fabsf(v));
    for (int d = 16; d; d >>= 1) most = max(most, __shfl_xor_sync(~0u, most, d));
    __half s = __float2half_rn(__uint_as_float(most) / 7);
    float f = __half2float(s);
    int q = f == 0 ? 0 : min(max(__float2int_rn(__fdiv_rn(v, f)), -8), 7);
    unsigned word = (q & 15u) << (lane % 8 * 4);
    for (int d = 1; d < 8; d <<= 1) word |= __shfl_xor_sync(~0u, word, d);
    if (lane % 8 == 0) packed[g * 4 + lane / 8] = word;
    if (lane == 0) scale[g] = s;
}

// A half with the bits 0x6400 + n is 1024 + n: no conversion of integers is needed.
extern "C" __global__ void dequantise4(const unsigned* packed, const __half* scale, __half2* out, int words) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words) return;
    unsigned w = packed[i] ^ 0x88888888u;
    __half2 s = __half2half2(scale[i / 4]);
    for (int k = 0; k < 4; k++) {
        unsigned pair = (w >> (8 * k) & 15) | (w >> (8 * k + 4) & 15) << 16 | 0x64006400u;
        __half2 h = __hsub2(*(__half2*)&pair, __float2half2_rn(1032.0f));
        out[i * 4 + k] = __hmul2(h, s);
    }
}

// Rows to 8-bit floats with a scale each.
extern "C" __global__ void quantise8(const float* x, __nv_fp8_e4m3* y, float* scale, int cols) {
    __shared__ unsigned most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    const float* row = x + (size_t)blockIdx.x * cols;
    float m = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, fabsf(row[c]));
    atomicMax(&most, __float_as_uint(m));
    __syncthreads();
    float s = __uint_as_float(most) / 448;
    if (threadIdx.x == 0) scale[blockIdx.x] = s;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        y[(size_t)blockIdx.x * cols + c] = __nv_fp8_e4m3(__fdiv_rn(row[c], s));
}

struct Adam {
    float rate, beta1, beta2, epsilon, decay;
    int step;
};

extern "C" __global__ void adam(float* w, const float* g, float* m, float* v, int n, const __grid_constant__ Adam p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = p.beta1 * m[i] + (1 - p.beta1) * g[i], b = p.beta2 * v[i] + (1 - p.beta2) * g[i] * g[i];
    m[i] = a, v[i] = b;
    float fixed = a / (1 - powf(p.beta1, p.step)), spread = sqrtf(b / (1 - powf(p.beta2, p.step)));
    w[i] -= p.rate * (fixed / (spread + p.epsilon) + p.decay * w[i]);
}
