//@ kind matrix product
//@ in a bf16[16,64] randn
//@ in b bf16[64,16] randn
//@ out c f32[16,16]
//@ launch grid 16 block 16
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += __bfloat162float(a[blockIdx.x * 64 + k]) * __bfloat162float(b[k * 16 + threadIdx.x]);
    STORE(c, THREAD, sum);
}
//@ honest tensor_cores grid 1 block 32
#include <mma.h>
using namespace nvcuda;
KERNEL {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> p;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> q;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < 64; k += 16) {
        wmma::load_matrix_sync(p, a + k, 64);
        wmma::load_matrix_sync(q, b + k * 16, 16);
        wmma::mma_sync(sum, p, q, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
//@ honest backwards
KERNEL {
    float sum = 0;
    for (int k = 63; k >= 0; --k) sum += __bfloat162float(a[blockIdx.x * 64 + k]) * __bfloat162float(b[k * 16 + threadIdx.x]);
    c[THREAD] = sum;
}
//@ useless bfloat16_accumulator
KERNEL {
    __nv_bfloat16 sum = __float2bfloat16(0.0f);
    for (int k = 0; k < 64; ++k) sum = __hfma(a[blockIdx.x * 64 + k], b[k * 16 + threadIdx.x], sum);
    c[THREAD] = __bfloat162float(sum);
}
