//@ kind elementwise
//@ in keep bool[4000] randint
//@ in a f32[4000] randn
//@ in b f32[4000] randn
//@ out y f32[4000]
//@ int n 4000
//@ launch grid 16 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, keep[i] ? a[i] : b[i]);
}
//@ honest branches
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    y[i] = b[i];
    if (keep[i]) y[i] = a[i];
}
//@ honest pointer
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = *((keep[i] ? a : b) + i);
}
//@ useless always_first
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = a[i];
}
//@ useless exchanged
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = keep[i] ? b[i] : a[i];
}
//@ useless mean
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = 0.5f * (a[i] + b[i]);
}
