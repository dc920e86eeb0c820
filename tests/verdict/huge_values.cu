//@ kind elementwise
//@ in x f32[3000] randn
//@ out y f32[3000]
//@ without plus_one one_element half: 1 is below the rounding of such values, and half overflows
//@ int n 3000
//@ launch grid 12 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, x[i] * 1e30f + 1e28f);
}
//@ honest factored
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (x[i] + 0.01f) * 1e30f;
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)(x[i] * 1e30 + 1e28);
}
//@ useless second_term_missing
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = x[i] * 1e30f;
}
