//@ kind matrix product
//@ in a f16[16,128] randn
//@ in b f16[128,16] randn
//@ out c f16[16,16]
//@ launch grid 16 block 16
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += __half2float(a[blockIdx.x * 128 + k]) * __half2float(b[k * 16 + threadIdx.x]);
    STORE(c, THREAD, sum);
}
//@ honest tensor_cores grid 1 block 32
#include <mma.h>
using namespace nvcuda;
KERNEL {
    __shared__ float result[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> p;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> q;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < 128; k += 16) {
        wmma::load_matrix_sync(p, a + k, 128);
        wmma::load_matrix_sync(q, b + k * 16, 16);
        wmma::mma_sync(sum, p, q, sum);
    }
    wmma::store_matrix_sync(result, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) c[i] = __float2half(result[i]);
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int k = 0; k < 128; ++k) sum += (double)__half2float(a[blockIdx.x * 128 + k]) * __half2float(b[k * 16 + threadIdx.x]);
    c[THREAD] = __double2half(sum);
}
//@ honest pairs
KERNEL {
    float even = 0, odd = 0;
    for (int k = 0; k < 128; k += 2) {
        even = fmaf(__half2float(a[blockIdx.x * 128 + k]), __half2float(b[k * 16 + threadIdx.x]), even);
        odd = fmaf(__half2float(a[blockIdx.x * 128 + k + 1]), __half2float(b[(k + 1) * 16 + threadIdx.x]), odd);
    }
    c[THREAD] = __float2half(even + odd);
}
//@ useless two_products_missing
KERNEL {
    float sum = 0;
    for (int k = 0; k < 126; ++k) sum += __half2float(a[blockIdx.x * 128 + k]) * __half2float(b[k * 16 + threadIdx.x]);
    c[THREAD] = __float2half(sum);
}
//@ useless transposed_second
KERNEL {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += __half2float(a[blockIdx.x * 128 + k]) * __half2float(b[threadIdx.x * 128 + k]);
    c[THREAD] = __float2half(sum);
}
