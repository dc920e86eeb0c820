//@ kind half precision
//@ in x f32[32,100] randn
//@ in w f32[24,100] randn std=0.1
//@ out y f16[32,24]
//@ launch grid 32 block 24
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 100; ++k) sum += x[blockIdx.x * 100 + k] * w[threadIdx.x * 100 + k];
    STORE(y, THREAD, sum);
}
//@ honest backwards
KERNEL {
    float sum = 0;
    for (int k = 99; k >= 0; --k) sum = fmaf(x[blockIdx.x * 100 + k], w[threadIdx.x * 100 + k], sum);
    y[THREAD] = __float2half(sum);
}
//@ honest half_inputs
KERNEL {
    float sum = 0;
    for (int k = 0; k < 100; ++k) sum += as_float(__float2half(x[blockIdx.x * 100 + k])) * as_float(__float2half(w[threadIdx.x * 100 + k]));
    y[THREAD] = __float2half(sum);
}
//@ useless five_products_missing
KERNEL {
    float sum = 0;
    for (int k = 0; k < 95; ++k) sum += x[blockIdx.x * 100 + k] * w[threadIdx.x * 100 + k];
    y[THREAD] = __float2half(sum);
}
