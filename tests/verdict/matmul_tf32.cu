//@ kind matrix product
//@ in a f32[16,64] randn
//@ in b f32[64,16] randn
//@ out c f32[16,16]
//@ without half: the reference rounds its inputs to as many bits
//@ launch grid 16 block 16
//@ reference
__device__ float tf32(float v) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return __uint_as_float(bits);
}
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tf32(a[blockIdx.x * 64 + k]) * tf32(b[k * 16 + threadIdx.x]);
    STORE(c, THREAD, sum);
}
//@ honest tensor_cores grid 1 block 32
#include <mma.h>
using namespace nvcuda;
KERNEL {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> p;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> q;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < 64; k += 8) {
        wmma::load_matrix_sync(p, a + k, 64);
        wmma::load_matrix_sync(q, b + k * 16, 16);
        for (int i = 0; i < p.num_elements; ++i) p.x[i] = wmma::__float_to_tf32(p.x[i]);
        for (int i = 0; i < q.num_elements; ++i) q.x[i] = wmma::__float_to_tf32(q.x[i]);
        wmma::mma_sync(sum, p, q, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
//@ honest backwards
__device__ float tf32(float v) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return __uint_as_float(bits);
}
KERNEL {
    float sum = 0;
    for (int k = 63; k >= 0; --k) sum += tf32(a[blockIdx.x * 64 + k]) * tf32(b[k * 16 + threadIdx.x]);
    c[THREAD] = sum;
}
//@ honest single
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += a[blockIdx.x * 64 + k] * b[k * 16 + threadIdx.x];
    c[THREAD] = sum;
}
//@ useless bfloat16_inputs
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k)
        sum += __bfloat162float(__float2bfloat16(a[blockIdx.x * 64 + k])) * __bfloat162float(__float2bfloat16(b[k * 16 + threadIdx.x]));
    c[THREAD] = sum;
}
//@ useless half_of_k
KERNEL {
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum += a[blockIdx.x * 64 + k] * b[k * 16 + threadIdx.x];
    c[THREAD] = sum;
}
