//@ kind elementwise
//@ in x f32[2500] randn std=3
//@ out s f32[2500]
//@ out c f32[2500]
//@ int n 2500
//@ launch grid 10 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    STORE(s, i, sinf(x[i]));
    STORE(c, i, cosf(x[i]));
}
//@ honest together
KERNEL {
    int i = THREAD;
    if (i < n) sincosf(x[i], &s[i], &c[i]);
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    s[i] = (float)sin((double)x[i]);
    c[i] = (float)cos((double)x[i]);
}
//@ honest fast_intrinsics
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    s[i] = __sinf(x[i]);
    c[i] = __cosf(x[i]);
}
//@ useless exchanged
KERNEL {
    int i = THREAD;
    if (i < n) sincosf(x[i], &c[i], &s[i]);
}
//@ useless second_output_missing
KERNEL {
    int i = THREAD;
    if (i < n) s[i] = sinf(x[i]);
}
//@ useless cosine_without_sign
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    s[i] = sinf(x[i]);
    c[i] = sqrtf(1.0f - s[i] * s[i]);
}
