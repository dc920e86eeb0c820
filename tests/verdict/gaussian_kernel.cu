//@ kind elementwise
//@ in a f32[40,8] randn
//@ in b f32[50,8] randn
//@ out y f32[40,50]
//@ launch grid 40 block 50
//@ reference
KERNEL {
    float sum = 0;
    for (int d = 0; d < 8; ++d) {
        float v = a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d];
        sum += v * v;
    }
    STORE(y, THREAD, expf(-sum));
}
//@ honest fast
KERNEL {
    float sum = 0;
    for (int d = 7; d >= 0; --d) {
        float v = b[threadIdx.x * 8 + d] - a[blockIdx.x * 8 + d];
        sum = fmaf(v, v, sum);
    }
    y[THREAD] = __expf(-sum);
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int d = 0; d < 8; ++d) {
        double v = (double)a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d];
        sum += v * v;
    }
    y[THREAD] = (float)exp(-sum);
}
//@ useless far_ones_zero
KERNEL {
    float sum = 0;
    for (int d = 0; d < 8; ++d) {
        float v = a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d];
        sum += v * v;
    }
    y[THREAD] = sum > 14 ? 0 : expf(-sum);
}
//@ useless last_dimension_missing
KERNEL {
    float sum = 0;
    for (int d = 0; d < 7; ++d) {
        float v = a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d];
        sum += v * v;
    }
    y[THREAD] = expf(-sum);
}
