//@ kind elementwise
//@ in x f32[3000] randn
//@ out y f32[3000]
//@ int n 3000
//@ launch grid 12 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f)));
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)(0.5 * x[i] * (1.0 + erf(x[i] * 0.7071067811865476)));
}
//@ honest complement
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = 0.5f * x[i] * erfcf(-x[i] * 0.70710678f);
}
//@ honest normal_distribution
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = x[i] * normcdff(x[i]);
}
//@ useless tanh_form
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float v = x[i];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}
