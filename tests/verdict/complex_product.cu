//@ kind elementwise
//@ in a f32[1024,2] randn
//@ in b f32[1024,2] randn
//@ out c f32[1024,2]
//@ launch grid 4 block 256
//@ reference
KERNEL {
    int i = THREAD;
    float p = a[2 * i], q = a[2 * i + 1], r = b[2 * i], s = b[2 * i + 1];
    STORE(c, 2 * i, p * r - q * s);
    STORE(c, 2 * i + 1, p * s + q * r);
}
//@ honest unfused_vectors
KERNEL {
    float2 p = ((const float2*)a)[THREAD], q = ((const float2*)b)[THREAD];
    ((float2*)c)[THREAD] = make_float2(__fsub_rn(__fmul_rn(p.x, q.x), __fmul_rn(p.y, q.y)),
                                       __fadd_rn(__fmul_rn(p.y, q.x), __fmul_rn(p.x, q.y)));
}
//@ honest three_products
KERNEL {
    int i = THREAD;
    float p = a[2 * i], q = a[2 * i + 1], r = b[2 * i], s = b[2 * i + 1];
    float k = r * (p + q), l = p * (s - r), m = q * (r + s);
    c[2 * i] = k - m;
    c[2 * i + 1] = k + l;
}
//@ useless conjugate
KERNEL {
    int i = THREAD;
    float p = a[2 * i], q = a[2 * i + 1], r = b[2 * i], s = -b[2 * i + 1];
    c[2 * i] = p * r - q * s;
    c[2 * i + 1] = p * s + q * r;
}
//@ useless parts_by_themselves
KERNEL {
    int i = THREAD;
    c[2 * i] = a[2 * i] * b[2 * i];
    c[2 * i + 1] = a[2 * i + 1] * b[2 * i + 1];
}
