//@ kind elementwise
//@ in x f32[3000] randn
//@ out y f32[3000]
//@ int n 3000
//@ launch grid 12 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, x[i] * x[i] * x[i] * 1e-30f);
}
//@ honest scaled_first
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = x[i] * 1e-30f * (x[i] * x[i]);
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)((double)x[i] * x[i] * x[i] * 1e-30);
}
//@ useless square
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = x[i] * x[i] * 1e-30f;
}
