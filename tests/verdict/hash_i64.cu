//@ kind integers and order
//@ in x i64[1500] randint low=0 high=1000000000000
//@ out y i64[1500]
//@ int n 1500
//@ launch grid 6 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    unsigned long long v = x[i];
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ v >> 27) * 0x94d049bb133111ebull;
    STORE(y, i, (long long)(v ^ v >> 31));
}
//@ honest grid_stride grid 2 block 128
KERNEL {
    for (int i = THREAD; i < n; i += 256) {
        unsigned long long v = x[i];
        v ^= v >> 30;
        v *= 0xbf58476d1ce4e5b9ull;
        v ^= v >> 27;
        v *= 0x94d049bb133111ebull;
        y[i] = v ^ v >> 31;
    }
}
//@ useless one_round
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (unsigned long long)x[i] * 0xbf58476d1ce4e5b9ull;
}
//@ useless lowest_bit
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    unsigned long long v = x[i];
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ v >> 27) * 0x94d049bb133111ebull;
    y[i] = (v ^ v >> 31) ^ (i == 700);
}
