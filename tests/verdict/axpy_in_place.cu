//@ kind elementwise
//@ inout y f32[4099] randn
//@ in x f32[4099] randn
//@ float a 1.75
//@ int n 4099
//@ launch grid 17 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, a * x[i] + y[i]);
}
//@ honest fused
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = __fmaf_rn(a, x[i], y[i]);
}
//@ honest two_roundings
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = __fadd_rn(y[i], __fmul_rn(a, x[i]));
}
//@ honest grid_stride grid 3 block 64
KERNEL {
    for (int i = THREAD; i < n; i += gridDim.x * blockDim.x) y[i] += a * x[i];
}
//@ useless left_alone
KERNEL {}
//@ useless not_added
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = a * x[i];
}
//@ useless last_missing
KERNEL {
    int i = THREAD;
    if (i < n - 1) y[i] += a * x[i];
}
