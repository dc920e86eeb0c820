//@ kind double precision
//@ in a f64[16,500] randn
//@ in b f64[16,500] randn
//@ out y f64[16]
//@ launch grid 16 block 1
//@ reference
KERNEL {
    double sum = 0;
    for (int j = 0; j < 500; ++j) sum += a[blockIdx.x * 500 + j] * b[blockIdx.x * 500 + j];
    STORE(y, blockIdx.x, sum);
}
//@ honest tree grid 16 block 64
KERNEL {
    double sum = 0;
    for (int j = threadIdx.x; j < 500; j += 64) sum += a[blockIdx.x * 500 + j] * b[blockIdx.x * 500 + j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ honest backwards_unfused
KERNEL {
    double sum = 0;
    for (int j = 499; j >= 0; --j)
        sum = __dadd_rn(sum, __dmul_rn(a[blockIdx.x * 500 + j], b[blockIdx.x * 500 + j]));
    y[blockIdx.x] = sum;
}
//@ useless single
KERNEL {
    float sum = 0;
    for (int j = 0; j < 500; ++j) sum += (float)a[blockIdx.x * 500 + j] * (float)b[blockIdx.x * 500 + j];
    y[blockIdx.x] = sum;
}
//@ useless single_products
KERNEL {
    double sum = 0;
    for (int j = 0; j < 500; ++j) sum += (float)a[blockIdx.x * 500 + j] * (float)b[blockIdx.x * 500 + j];
    y[blockIdx.x] = sum;
}
