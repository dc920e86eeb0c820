//@ kind elementwise
//@ in x f32[4096] uniform low=-1 high=1
//@ out y f32[4096]
//@ launch grid 16 block 256
//@ reference
KERNEL {
    int i = THREAD;
    float v = x[i];
    STORE(y, i, 1.0f + v + v * v / 2 + v * v * v / 6 + v * v * v * v / 24 + v * v * v * v * v / 120);
}
//@ honest horner
KERNEL {
    int i = THREAD;
    float v = x[i], p = 1.0f / 120;
    p = fmaf(p, v, 1.0f / 24);
    p = fmaf(p, v, 1.0f / 6);
    p = fmaf(p, v, 0.5f);
    p = fmaf(p, v, 1.0f);
    y[i] = fmaf(p, v, 1.0f);
}
//@ honest estrin
KERNEL {
    int i = THREAD;
    float v = x[i], s = v * v;
    y[i] = (1.0f + v) + s * (0.5f + v / 6) + s * s * (1.0f / 24 + v / 120);
}
//@ honest powers
KERNEL {
    int i = THREAD;
    double v = x[i], term = 1, sum = 1;
    for (int k = 1; k <= 5; ++k) sum += term *= v / k;
    y[i] = (float)sum;
}
//@ useless exponential
KERNEL {
    int i = THREAD;
    y[i] = expf(x[i]);
}
//@ useless one_degree_less
KERNEL {
    int i = THREAD;
    float v = x[i];
    y[i] = 1.0f + v + v * v / 2 + v * v * v / 6 + v * v * v * v / 24;
}
