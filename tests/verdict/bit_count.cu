//@ kind integers and order
//@ in x u32[3000] randint low=0 high=4294967295
//@ out y i32[3000]
//@ int n 3000
//@ launch grid 12 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    int sum = 0;
    for (int b = 0; b < 32; ++b) sum += x[i] >> b & 1;
    STORE(y, i, sum);
}
//@ honest instruction
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = __popc(x[i]);
}
//@ honest pairs_of_bits
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    unsigned v = x[i];
    v -= v >> 1 & 0x55555555u;
    v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
    y[i] = ((v + (v >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}
//@ useless sixteen
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = 16;
}
//@ useless lower_half
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = 2 * __popc(x[i] & 0xffff);
}
