//@ kind elementwise
//@ in x f32[6000] randn std=2
//@ out y f32[6000]
//@ int n 6000
//@ launch grid 24 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float v = x[i];
    STORE(y, i, 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))));
}
//@ honest fast_exponential
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float v = x[i], t = 1.5957691216f * (v + 0.044715f * v * v * v);
    y[i] = v - v / (1.0f + __expf(t));
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    double v = x[i];
    y[i] = (float)(0.5 * v * (1.0 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))));
}
//@ honest factored
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float v = x[i], h = 0.5f * v;
    y[i] = fmaf(h, tanhf(v * fmaf(0.035677408f, v * v, 0.7978845608f)), h);
}
//@ useless sigmoid_approximation
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = x[i] / (1.0f + expf(-1.702f * x[i]));
}
//@ useless relu
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
//@ useless cubic_term_missing
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978845608f * x[i]));
}
