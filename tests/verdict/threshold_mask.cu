//@ kind integers and order
//@ in x f32[3000] randn
//@ out above bool[3000]
//@ int n 3000
//@ launch grid 12 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(above, i, x[i] > 0.25f);
}
//@ honest difference
KERNEL {
    int i = THREAD;
    if (i < n) above[i] = !(x[i] - 0.25f <= 0.0f);
}
//@ honest branch
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    above[i] = false;
    if (0.25f < x[i]) above[i] = true;
}
//@ useless sign
KERNEL {
    int i = THREAD;
    if (i < n) above[i] = x[i] > 0;
}
//@ useless opposite
KERNEL {
    int i = THREAD;
    if (i < n) above[i] = !(x[i] > 0.25f);
}
