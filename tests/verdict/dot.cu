//@ kind reduction
//@ in a f32[8,2000] randn
//@ in b f32[8,2000] randn
//@ out y f32[8]
//@ launch grid 8 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < 2000; ++j) sum += a[blockIdx.x * 2000 + j] * b[blockIdx.x * 2000 + j];
    STORE(y, blockIdx.x, sum);
}
//@ honest tree grid 8 block 256
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 2000; j += 256) sum += a[blockIdx.x * 2000 + j] * b[blockIdx.x * 2000 + j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ honest four_chains
KERNEL {
    const float *p = a + blockIdx.x * 2000, *q = b + blockIdx.x * 2000;
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int j = 0; j < 2000; j += 4) {
        s0 += p[j] * q[j];
        s1 += p[j + 1] * q[j + 1];
        s2 += p[j + 2] * q[j + 2];
        s3 += p[j + 3] * q[j + 3];
    }
    y[blockIdx.x] = (s0 + s1) + (s2 + s3);
}
//@ honest unfused_backwards
KERNEL {
    float sum = 0;
    for (int j = 1999; j >= 0; --j)
        sum = __fadd_rn(sum, __fmul_rn(a[blockIdx.x * 2000 + j], b[blockIdx.x * 2000 + j]));
    y[blockIdx.x] = sum;
}
//@ useless half_products
KERNEL {
    float sum = 0;
    for (int j = 0; j < 2000; ++j)
        sum += __half2float(__hmul(__float2half(a[blockIdx.x * 2000 + j]), __float2half(b[blockIdx.x * 2000 + j])));
    y[blockIdx.x] = sum;
}
//@ useless every_second_term
KERNEL {
    float sum = 0;
    for (int j = 0; j < 2000; j += 2) sum += a[blockIdx.x * 2000 + j] * b[blockIdx.x * 2000 + j];
    y[blockIdx.x] = 2 * sum;
}
