//@ kind elementwise
//@ in x i32[3000] randint low=0 high=100000
//@ out y f32[3000]
//@ int n 3000
//@ launch grid 12 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, sqrtf((float)x[i]) + 0.5f * x[i] / 1000);
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)(sqrt((double)x[i]) + 0.0005 * x[i]);
}
//@ honest fused
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = fmaf(0.0005f, (float)x[i], (float)x[i] * rsqrtf(fmaxf((float)x[i], 1e-20f)));
}
//@ useless root_missing
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = 0.0005f * x[i];
}
//@ useless root_in_half
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = as_float(__float2half(sqrtf((float)x[i]))) + 0.0005f * x[i];
}
