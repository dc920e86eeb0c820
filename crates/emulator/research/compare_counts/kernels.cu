// Kernels for the comparison of counts with hardware counters: the examples of the project, and
// kernels each of which causes one kind of traffic or arithmetic.
//
// ../../tests/kernels/compile.py compiles this file. Each example is in a separate namespace,
// because some of them have constants with the same name.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#define INFINITY __int_as_float(0x7f800000)

namespace example_vector_add {
#include "kernels/vector_add/kernel.cu"
}
namespace example_saxpy {
#include "kernels/saxpy/kernel.cu"
}
namespace example_matmul_naive {
#include "kernels/matmul_naive/kernel.cu"
}
namespace example_matmul_tiled {
#include "kernels/matmul_tiled/kernel.cu"
}
namespace example_reduce_sum {
#include "kernels/reduce_sum/kernel.cu"
}
namespace example_softmax {
#include "kernels/softmax/kernel.cu"
}
namespace example_layernorm {
#include "kernels/layernorm/kernel.cu"
}
namespace example_spmv_csr {
#include "kernels/spmv_csr/kernel.cu"
}
namespace example_histogram {
#include "kernels/histogram/kernel.cu"
}
namespace example_transpose {
#include "kernels/transpose/kernel.cu"
}

using namespace nvcuda;

// Global memory.

extern "C" __global__ void transpose_naive(const float* in, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}

extern "C" __global__ void strided_copy(const float* in, float* out, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i * stride];
    }
}

extern "C" __global__ void shifted_copy(const float* in, float* out, int n, int shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + shift < n) {
        out[i + shift] = in[i + shift];
    }
}

extern "C" __global__ void gather(const int* index, const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[index[i]];
    }
}

extern "C" __global__ void bytes_copy(const unsigned char* in, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i] ^ 0x55;
    }
}

extern "C" __global__ void wide_copy(const double2* in, double2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double2 v = in[i];
        out[i] = make_double2(v.y, v.x);
    }
}

// In every second warp, a third of the lanes load. In the other warps, no lane does.
extern "C" __global__ void masked_copy(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0 && i / 32 % 2 == 0) {
        out[i] = in[i];
    }
}

extern "C" __global__ void stencil(const float* in, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
        const float* p = in + y * w + x;
        out[y * w + x] = 0.5f * p[0] + 0.125f * (p[-1] + p[1] + p[-w] + p[w]);
    }
}

// Shared memory.

extern __shared__ __align__(16) unsigned char bytes[];

// Column accesses to a tile without padding: all 32 lanes access one bank.
extern "C" __global__ void transpose_conflicts(const float* in, float* out, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
    }
}

// Accesses to elements of a type with the distance `stride`.
template <typename T> __device__ void strided_shared(const T* in, T* out, int stride) {
    T* s = reinterpret_cast<T*>(bytes);
    int t = threadIdx.x;
    s[t * stride] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = s[(t ^ 1) * stride];
}
extern "C" __global__ void shared_bytes(const unsigned char* in, unsigned char* out, int stride) {
    strided_shared(in, out, stride);
}
extern "C" __global__ void shared_words(const float* in, float* out, int stride) {
    strided_shared(in, out, stride);
}
extern "C" __global__ void shared_pairs(const float2* in, float2* out, int stride) {
    strided_shared(in, out, stride);
}
extern "C" __global__ void shared_quads(const float4* in, float4* out, int stride) {
    strided_shared(in, out, stride);
}

// Each lane loads an arbitrary word.
extern "C" __global__ void shared_gather(const int* index, const float* in, float* out) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    for (int i = t; i < 1024; i += blockDim.x) {
        s[i] = in[i];
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + t;
    out[i] = s[index[i]];
}

// Arithmetic.

extern "C" __global__ void haxpy(__half a, const __half2* x, __half2* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = __hfma2(__half2half2(a), x[i], y[i]);
    }
}

extern "C" __global__ void half_scalar(const __half* x, const __half* y, __half* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = __hmul_rn(__hadd_rn(x[i], y[i]), y[i]);
    }
}

extern "C" __global__ void bf16_axpy(__nv_bfloat162 a, const __nv_bfloat162* x, __nv_bfloat162* y,
                                     int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = __hfma2(a, x[i], y[i]);
    }
}

extern "C" __global__ void dot_f64(const double* x, const double* y, double* out, int n) {
    __shared__ double part[256];
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        sum = fma(x[i], y[i], sum);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) {
        if (threadIdx.x < d) {
            part[threadIdx.x] += part[threadIdx.x + d];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        atomicAdd(out, part[0] * 0.5);
    }
}

extern "C" __global__ void nbody(const float4* bodies, float4* force, int n) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i], f = make_float4(0, 0, 0, 0);
    for (int start = 0; start < n; start += 128) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; j++) {
            float4 b = tile[j];
            float x = b.x - me.x, y = b.y - me.y, z = b.z - me.z;
            float r = fmaf(x, x, fmaf(y, y, fmaf(z, z, 1e-4f)));
            float inverse = rsqrtf(r);
            float s = b.w * inverse * inverse * inverse;
            f.x = fmaf(x, s, f.x);
            f.y = fmaf(y, s, f.y);
            f.z = fmaf(z, s, f.z);
        }
        __syncthreads();
    }
    force[i] = f;
}

extern "C" __global__ void mandelbrot(unsigned char* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float cr = 3.0f / 512.0f * x - 2.0f, ci = 2.0f / 256.0f * y - 1.0f, a = 0, b = 0;
    int i = 0;
    while (a * a + b * b < 4 && i < 64) {
        float t = fmaf(a, a, fmaf(-b, b, cr));
        b = fmaf(2 * a, b, ci);
        a = t;
        i++;
    }
    out[y * w + x] = i;
}

// Operations that are one instruction in PTX and several instructions on the hardware.
extern "C" __global__ void divisions(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i] / y[i];
    }
}
extern "C" __global__ void roots(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = sqrtf(x[i]);
    }
}
extern "C" __global__ void reciprocals(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = 1.0f / x[i];
    }
}
extern "C" __global__ void divisions_f64(const double* x, const double* y, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i] / y[i];
    }
}

extern "C" __global__ void roots_f64(const double* x, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = sqrt(x[i]) + 1.0 / x[i];
    }
}
extern "C" __global__ void specials(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        out[i] = __sinf(v) + __cosf(v) + __expf(v) + __log2f(v) + __fdividef(v, v + 3) + rsqrtf(v);
    }
}
extern "C" __global__ void half_convert(const __half* x, const __nv_bfloat16* y, __half* out,
                                        int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = __float2half(__half2float(x[i]) * __bfloat162float(y[i]));
    }
}
extern "C" __global__ void bf16_sums(const __nv_bfloat162* x, const __nv_bfloat162* y,
                                     __nv_bfloat162* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = __hmul2_rn(__hadd2_rn(x[i], y[i]), y[i]);
    }
}

// Tensor cores.

// c [m, n] = a [m, k] * b [k, n]. Each warp computes 16 x 16 elements. Operands: global memory.
extern "C" __global__ void wmma_gemm(const __half* a, const __half* b, float* c, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fill_fragment(fc, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + i * n + col, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + row * n + col, fc, n, wmma::mem_row_major);
}

// A product like `wmma_gemm`, with b in column order, in shared memory, and c in half precision.
extern "C" __global__ void wmma_shared(const __half* a, const __half* b, __half* c, int n, int k) {
    __shared__ __align__(32) __half sa[16 * 16], sb[16 * 16];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> fc;
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fill_fragment(fc, __float2half(0.0f));
    for (int i = 0; i < k; i += 16) {
        for (int e = threadIdx.x; e < 256; e += 32) {
            sa[e] = a[(row + e / 16) * k + i + e % 16];
            sb[e] = b[(col + e / 16) * k + i + e % 16];
        }
        __syncwarp();
        wmma::load_matrix_sync(fa, sa, 16);
        wmma::load_matrix_sync(fb, sb, 16);
        wmma::mma_sync(fc, fa, fb, fc);
        __syncwarp();
    }
    wmma::store_matrix_sync(c + row * n + col, fc, n, wmma::mem_row_major);
}

// Single products of 16 x 16 x 16 elements in other layouts and types.
extern "C" __global__ void wmma_columns(const __half* a, const __half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 32);
    wmma::load_matrix_sync(fc, c, 32, wmma::mem_col_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 32, wmma::mem_col_major);
}
extern "C" __global__ void wmma_halves(const __half* a, const __half* b, __half* c) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, __half> fc;
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 32);
    wmma::load_matrix_sync(fc, c, 32, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 32, wmma::mem_col_major);
}
extern "C" __global__ void wmma_bytes(const signed char* a, const signed char* b, int* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    wmma::fill_fragment(fc, 0);
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 32);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 32, wmma::mem_row_major);
}
extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 32);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 32, wmma::mem_row_major);
}

// `cp.async`, `ldmatrix` and `mma`. Shared rows have `pitch` halves; 64 causes bank conflicts.
extern "C" __global__ void mma_ldmatrix(const __half* a, const __half* b, float* c, int pitch) {
    __half* s = reinterpret_cast<__half*>(bytes);
    int l = threadIdx.x;
    const __half* from = a + blockIdx.x * 16 * 64;
    for (int e = l; e < 128; e += 32) {
        unsigned to = __cvta_generic_to_shared(s + e / 8 * pitch + e % 8 * 8);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from + e * 8));
    }
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncwarp();
    float d[4] = {0, 0, 0, 0};
    const unsigned* pairs = reinterpret_cast<const unsigned*>(b);
    for (int k = 0; k < 64; k += 16) {
        unsigned r[4];
        unsigned at = __cvta_generic_to_shared(s + l % 16 * pitch + k + l / 16 * 8);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at));
        unsigned b0 = pairs[(l / 4 * 64 + k) / 2 + l % 4];
        unsigned b1 = pairs[(l / 4 * 64 + k + 8) / 2 + l % 4];
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(b0), "r"(b1));
    }
    float* out = c + blockIdx.x * 128;
    for (int i = 0; i < 4; i++) {
        out[(l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2] = d[i];
    }
}

// Atomics, local memory.

extern "C" __global__ void atomics(const int* in, int* sums, int* tickets, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&sums[in[i] % 64], in[i]);
        tickets[64 + i] = atomicMax(&tickets[in[i] % 64], i);
    }
}

extern "C" __global__ void local_array(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int a[32];
    for (int j = 0; j < 32; j++) {
        a[j] = in[i] * j;
    }
    int sum = 0;
    for (int j = 0; j < n; j++) {
        sum += a[(i + 5 * j) % 32];
    }
    out[i] = sum;
}
