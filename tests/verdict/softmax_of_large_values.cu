//@ kind normalisation
//@ in x f32[32,64] randn mean=1000
//@ out y f32[32,64]
//@ launch grid 32 block 64
//@ weak what one unit in the inputs changes is far more than what rounding inside does
//@ reference
KERNEL {
    float v = x[THREAD], e = expf(v - tree_max(v));
    STORE(y, THREAD, e / tree_sum(e));
}
//@ honest fast grid 32 block 32
KERNEL {
    float a = x[blockIdx.x * 64 + threadIdx.x], b = x[blockIdx.x * 64 + 32 + threadIdx.x];
    float most = warp_max(fmaxf(a, b)), p = __expf(a - most), q = __expf(b - most);
    float r = 1 / warp_sum(p + q);
    y[blockIdx.x * 64 + threadIdx.x] = p * r;
    y[blockIdx.x * 64 + 32 + threadIdx.x] = q * r;
}
//@ honest double
KERNEL {
    double v = x[THREAD], e = exp(v - 1000);
    y[THREAD] = (float)(e / tree_sum(e));
}
//@ useless uniform
KERNEL {
    y[THREAD] = 1.0f / 64;
}
//@ useless half_exponents
KERNEL {
    float v = x[THREAD], e = as_float(__float2half(expf(v - tree_max(v))));
    y[THREAD] = e / tree_sum(e);
}
