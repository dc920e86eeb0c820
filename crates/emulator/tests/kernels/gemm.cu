// Products of matrices.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// C = alpha A B + beta C in single precision: tiles of 64 × 64 × 8, 8 × 8 results in a thread.
extern "C" __global__ void __launch_bounds__(64)
sgemm(const float* a, const float* b, float* c, int m, int n, int k, float alpha, float beta) {
    __shared__ float as[2][8][64 + 4], bs[2][8][64];
    int t = threadIdx.x, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64, tr = t / 8 * 8, tc = t % 8 * 8;
    float acc[8][8] = {}, ra[8], rb[8];
    auto fetch = [&](int base) {
        for (int i = 0; i < 8; i++) {
            int row = r0 + t, col = base + i;
            ra[i] = row < m && col < k ? a[row * k + col] : 0;
            rb[i] = base + i < k && c0 + t < n ? b[(base + i) * n + c0 + t] : 0;
        }
    };
    auto put = [&](int s) {
        for (int i = 0; i < 8; i++) as[s][i][t] = ra[i], bs[s][i][t] = rb[i];
    };
    fetch(0);
    put(0);
    __syncthreads();
    for (int base = 0, s = 0; base < k; base += 8, s ^= 1) {
        bool more = base + 8 < k;
        if (more) fetch(base + 8);
#pragma unroll
        for (int p = 0; p < 8; p++) {
            float x[8], y[8];
            *(float4*)x = *(float4*)&as[s][p][tr], *(float4*)(x + 4) = *(float4*)&as[s][p][tr + 4];
            *(float4*)y = *(float4*)&bs[s][p][tc], *(float4*)(y + 4) = *(float4*)&bs[s][p][tc + 4];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
        }
        if (more) put(s ^ 1);
        __syncthreads();
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            if (r0 + tr + i < m && c0 + tc + j < n) {
                float* p = &c[(r0 + tr + i) * n + c0 + tc + j];
                *p = alpha * acc[i][j] + (beta == 0 ? 0 : beta * *p);
            }
}

// A part of K for each block in z; the parts are added atomically.
extern "C" __global__ void gemm_split_k(const double* a, const double* b, double* c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    int len = (k + gridDim.z - 1) / gridDim.z, from = blockIdx.z * len, to = min(from + len, k);
    if (row >= m || col >= n) return;
    double sum = 0;
    for (int p = from; p < to; p++) sum += a[row * k + p] * b[p * n + col];
    atomicAdd(&c[row * n + col], sum);
}

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void copy16(void* to, const void* from, bool in) {
    unsigned at = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(in ? 16 : 0));
}

__device__ __forceinline__ void load4(unsigned* r, const void* from) {
    unsigned at = __cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

__device__ __forceinline__ void load2t(unsigned* r, const void* from) {
    unsigned at = __cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(at));
}
#endif

// C = A B in bf16 with fp32 sums: tiles of 32 × 32 × 16 in two stages, four warps of 16 × 16.
// K and N are multiples of 8.
extern "C" __global__ void __launch_bounds__(128)
bf16_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n, int k) {
#if __CUDA_ARCH__ >= 800
    __shared__ __align__(16) __nv_bfloat16 as[2][32][16 + 8], bs[2][16][32 + 8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
    int wr = warp / 2 * 16, wc = warp % 2 * 16;
    auto stage = [&](int s, int base) {
        if (t < 64) {
            int r = t / 2, col = t % 2 * 8;
            bool in = r0 + r < m && base + col < k;
            copy16(&as[s][r][col], in ? a + (size_t)(r0 + r) * k + base + col : a, in);
        } else {
            int r = (t - 64) / 4, col = t % 4 * 8;
            bool in = base + r < k && c0 + col < n;
            copy16(&bs[s][r][col], in ? b + (size_t)(base + r) * n + c0 + col : b, in);
        }
        asm volatile("cp.async.commit_group;");
    };
    float acc[2][4] = {};
    stage(0, 0);
    for (int base = 0, s = 0; base < k; base += 16, s ^= 1) {
        stage(s ^ 1, base + 16);
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        unsigned x[4], y[2];
        load4(x, &as[s][wr + lane % 16][lane / 16 * 8]);
        for (int j = 0; j < 2; j++) {
            load2t(y, &bs[s][lane % 16][wc + j * 8]);
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        }
        __syncthreads();
    }
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 4; i++) {
            int row = r0 + wr + lane / 4 + i / 2 * 8, col = c0 + wc + j * 8 + lane % 4 * 2 + i % 2;
            if (row < m && col < n) c[(size_t)row * n + col] = acc[j][i];
        }
#endif
}

// C = A Bᵀ in 8-bit integers, scaled to floats by row and column; a tile of 16 × 8 for each warp.
// K is a multiple of 32; rows beyond M or N repeat the last one and are not stored.
extern "C" __global__ void int8_gemm(const signed char* a, const signed char* b, const float* row_scale,
                                     const float* col_scale, float* c, int m, int n, int k) {
    int lane = threadIdx.x % 32, warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    int tiles = (n + 7) / 8, r0 = warp / tiles * 16, c0 = warp % tiles * 8, g = lane / 4, q = lane % 4;
    if (r0 >= m) return;
    const signed char *top = a + min(r0 + g, m - 1) * k, *low = a + min(r0 + g + 8, m - 1) * k;
    const signed char* col = b + min(c0 + g, n - 1) * k;
    int d[4] = {};
#if __CUDA_ARCH__ >= 800
    for (int p = 0; p < k; p += 32) {
        int x[4] = {*(int*)(top + p + q * 4), *(int*)(low + p + q * 4), *(int*)(top + p + 16 + q * 4),
                    *(int*)(low + p + 16 + q * 4)};
        int y[2] = {*(int*)(col + p + q * 4), *(int*)(col + p + 16 + q * 4)};
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
#else
    for (int p = 0; p < k; p += 16)
        for (int h = 0; h < 2; h++) {
            int x = *(int*)((h ? low : top) + p + q * 4), y = *(int*)(col + p + q * 4);
            asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                         : "+r"(d[2 * h]), "+r"(d[2 * h + 1]) : "r"(x), "r"(y));
        }
#endif
    for (int i = 0; i < 4; i++) {
        int row = r0 + g + i / 2 * 8, at = c0 + q * 2 + i % 2;
        if (row < m && at < n) c[row * n + at] = d[i] * row_scale[row] * col_scale[at];
    }
}

// C = A B by wmma, in tf32 and in double precision; a tile for each warp, sizes are whole tiles.
extern "C" __global__ void tf32_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
#if __CUDA_ARCH__ >= 800
    int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, r = warp / (n / 16) * 16, q = warp % (n / 16) * 16;
    if (r >= m) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> z;
    wmma::fill_fragment(z, 0.0f);
    for (int p = 0; p < k; p += 8) {
        wmma::load_matrix_sync(x, a + r * k + p, k);
        wmma::load_matrix_sync(y, b + p * n + q, n);
        for (int i = 0; i < x.num_elements; i++) x.x[i] = wmma::__float_to_tf32(x.x[i]);
        for (int i = 0; i < y.num_elements; i++) y.x[i] = wmma::__float_to_tf32(y.x[i]);
        wmma::mma_sync(z, x, y, z);
    }
    wmma::store_matrix_sync(c + r * n + q, z, n, wmma::mem_row_major);
#endif
}

extern "C" __global__ void f64_gemm(const double* a, const double* b, double* c, int m, int n, int k) {
#if __CUDA_ARCH__ >= 800
    int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, r = warp / (n / 8) * 8, q = warp % (n / 8) * 8;
    if (r >= m) return;
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> z;
    wmma::fill_fragment(z, 0.0);
    for (int p = 0; p < k; p += 4) {
        wmma::load_matrix_sync(x, a + r * k + p, k);
        wmma::load_matrix_sync(y, b + p * n + q, n);
        wmma::mma_sync(z, x, y, z);
    }
    wmma::store_matrix_sync(c + r * n + q, z, n, wmma::mem_row_major);
#endif
}

// A product in half precision with an epilogue: bias and ReLU, staged through shared memory.
extern "C" __global__ void half_linear(const __half* x, const __half* w, const __half* bias, __half* y, int m,
                                       int n, int k) {
    __shared__ __align__(32) float tile[4][16][16 + 4];
    int local = threadIdx.x / 32, lane = threadIdx.x % 32, warp = blockIdx.x * 4 + local;
    int r = warp / (n / 16) * 16, q = warp % (n / 16) * 16;
    if (r >= m) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0.0f);
    for (int p = 0; p < k; p += 16) {
        wmma::load_matrix_sync(a, x + r * k + p, k);
        wmma::load_matrix_sync(b, w + q * k + p, k);
        wmma::mma_sync(z, a, b, z);
    }
    wmma::store_matrix_sync(&tile[local][0][0], z, 20, wmma::mem_row_major);
    __syncwarp();
    for (int i = lane; i < 128; i += 32) {
        int row = i / 8, col = i % 8 * 2;
        __half2 v = __floats2half2_rn(tile[local][row][col], tile[local][row][col + 1]);
        v = __hmax2(__hadd2(v, *(const __half2*)(bias + q + col)), __float2half2_rn(0.0f));
        *(__half2*)(y + (r + row) * n + q + col) = v;
    }
}
