//@ kind double precision
//@ in x f32[40,300] randn
//@ out y f64[40]
//@ launch grid 40 block 1
//@ reference
KERNEL {
    double sum = 0;
    for (int j = 0; j < 300; ++j) sum += (double)x[blockIdx.x * 300 + j] * x[blockIdx.x * 300 + j] - x[blockIdx.x * 300 + j];
    STORE(y, blockIdx.x, sum);
}
//@ honest tree grid 40 block 64
KERNEL {
    double sum = 0;
    for (int j = threadIdx.x; j < 300; j += 64) {
        double v = x[blockIdx.x * 300 + j];
        sum += v * (v - 1);
    }
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ honest two_sums
KERNEL {
    double sum = 0, squares = 0;
    for (int j = 299; j >= 0; --j) {
        double v = x[blockIdx.x * 300 + j];
        sum += v;
        squares += v * v;
    }
    y[blockIdx.x] = squares - sum;
}
//@ useless single
KERNEL {
    float sum = 0;
    for (int j = 0; j < 300; ++j) sum += x[blockIdx.x * 300 + j] * (x[blockIdx.x * 300 + j] - 1);
    y[blockIdx.x] = sum;
}
//@ useless single_terms
KERNEL {
    double sum = 0;
    for (int j = 0; j < 300; ++j) sum += x[blockIdx.x * 300 + j] * (x[blockIdx.x * 300 + j] - 1);
    y[blockIdx.x] = sum;
}
