//@ kind matrix product
//@ in a f32[16,256] randn
//@ in b f32[256,16] randn
//@ out c f32[16,16]
//@ launch grid 16 block 16
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 256; ++k) sum += a[blockIdx.x * 256 + k] * b[k * 16 + threadIdx.x];
    STORE(c, THREAD, sum);
}
//@ honest three_products_of_tensor_cores grid 1 block 32
#include <mma.h>
using namespace nvcuda;
KERNEL {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> p, r;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> q, s;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < 256; k += 8) {
        wmma::load_matrix_sync(p, a + k, 256);
        wmma::load_matrix_sync(q, b + k * 16, 16);
        for (int i = 0; i < p.num_elements; ++i) {
            float v = p.x[i];
            p.x[i] = wmma::__float_to_tf32(v);
            r.x[i] = wmma::__float_to_tf32(v - p.x[i]);
        }
        for (int i = 0; i < q.num_elements; ++i) {
            float v = q.x[i];
            q.x[i] = wmma::__float_to_tf32(v);
            s.x[i] = wmma::__float_to_tf32(v - q.x[i]);
        }
        wmma::mma_sync(sum, r, q, sum);
        wmma::mma_sync(sum, p, s, sum);
        wmma::mma_sync(sum, p, q, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int k = 0; k < 256; ++k) sum += (double)a[blockIdx.x * 256 + k] * b[k * 16 + threadIdx.x];
    c[THREAD] = (float)sum;
}
//@ useless one_product_of_tensor_cores grid 1 block 32
#include <mma.h>
using namespace nvcuda;
KERNEL {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> p;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> q;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < 256; k += 8) {
        wmma::load_matrix_sync(p, a + k, 256);
        wmma::load_matrix_sync(q, b + k * 16, 16);
        for (int i = 0; i < p.num_elements; ++i) p.x[i] = wmma::__float_to_tf32(p.x[i]);
        for (int i = 0; i < q.num_elements; ++i) q.x[i] = wmma::__float_to_tf32(q.x[i]);
        wmma::mma_sync(sum, p, q, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
