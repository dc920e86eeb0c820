//@ kind elementwise
//@ in x f32[3333] randn std=5
//@ out y f32[3333]
//@ int n 3333
//@ launch grid 14 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, log1pf(expf(x[i])));
}
//@ honest stable
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = fmaxf(x[i], 0.0f) + log1pf(expf(-fabsf(x[i])));
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)log1p(exp((double)x[i]));
}
//@ honest fast_exponential
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = x[i] > 20.0f ? x[i] : log1pf(__expf(x[i]));
}
//@ useless relu
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
//@ useless one_missing
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = logf(expf(x[i]));
}
