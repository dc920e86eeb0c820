//@ kind matrix product
//@ inout c f32[20,24] randn
//@ in a f32[20,40] randn
//@ in b f32[40,24] randn
//@ float alpha 0.5
//@ float beta -1.25
//@ launch grid 20 block 24
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 40; ++k) sum += a[blockIdx.x * 40 + k] * b[k * 24 + threadIdx.x];
    STORE(c, THREAD, alpha * sum + beta * c[THREAD]);
}
//@ honest beta_first
KERNEL {
    float sum = beta * c[THREAD];
    for (int k = 0; k < 40; ++k) sum = fmaf(alpha * a[blockIdx.x * 40 + k], b[k * 24 + threadIdx.x], sum);
    c[THREAD] = sum;
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int k = 0; k < 40; ++k) sum += (double)a[blockIdx.x * 40 + k] * b[k * 24 + threadIdx.x];
    c[THREAD] = (float)(alpha * sum + (double)beta * c[THREAD]);
}
//@ useless no_beta
KERNEL {
    float sum = 0;
    for (int k = 0; k < 40; ++k) sum += a[blockIdx.x * 40 + k] * b[k * 24 + threadIdx.x];
    c[THREAD] = alpha * sum;
}
//@ useless no_alpha
KERNEL {
    float sum = 0;
    for (int k = 0; k < 40; ++k) sum += a[blockIdx.x * 40 + k] * b[k * 24 + threadIdx.x];
    c[THREAD] = sum + beta * c[THREAD];
}
