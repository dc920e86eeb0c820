//@ kind elementwise
//@ in x f32[4096] randn std=5
//@ out y f32[4096]
//@ launch grid 16 block 256
//@ reference
KERNEL {
    int i = THREAD;
    STORE(y, i, expf(x[i]));
}
//@ honest fast
KERNEL {
    int i = THREAD;
    y[i] = __expf(x[i]);
}
//@ honest double
KERNEL {
    int i = THREAD;
    y[i] = (float)exp((double)x[i]);
}
//@ useless small_ones_zero
KERNEL {
    int i = THREAD;
    y[i] = x[i] < 1 ? 0 : expf(x[i]);
}
//@ useless half_for_small_ones
KERNEL {
    int i = THREAD;
    float v = expf(x[i]);
    y[i] = v < 1000 ? as_float(__float2half(v)) : v;
}
