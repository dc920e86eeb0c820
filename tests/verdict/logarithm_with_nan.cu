//@ kind elementwise
//@ in x f32[3000] randn
//@ out y f32[3000]
//@ int n 3000
//@ launch grid 12 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, logf(x[i]));
}
//@ honest base_two
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = log2f(x[i]) * 0.69314718f;
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)log((double)x[i]);
}
//@ honest fast
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = __logf(x[i]);
}
//@ useless all_nan
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = __int_as_float(0x7fc00000);
}
//@ useless magnitude
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = logf(fabsf(x[i]));
}
