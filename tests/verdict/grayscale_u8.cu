//@ kind quantised
//@ in rgb u8[4096,3] randint low=0 high=256
//@ out y u8[4096]
//@ launch grid 16 block 256
//@ reference
KERNEL {
    int i = THREAD;
    STORE(y, i, 0.299f * rgb[3 * i] + 0.587f * rgb[3 * i + 1] + 0.114f * rgb[3 * i + 2] + 0.5f);
}
//@ honest other_order
KERNEL {
    int i = THREAD;
    y[i] = (unsigned char)(0.114f * rgb[3 * i + 2] + 0.587f * rgb[3 * i + 1] + 0.299f * rgb[3 * i] + 0.5f);
}
//@ honest fused
KERNEL {
    int i = THREAD;
    y[i] = (unsigned char)fmaf(0.299f, rgb[3 * i], fmaf(0.587f, rgb[3 * i + 1], fmaf(0.114f, rgb[3 * i + 2], 0.5f)));
}
//@ useless mean
KERNEL {
    int i = THREAD;
    y[i] = (unsigned char)((rgb[3 * i] + rgb[3 * i + 1] + rgb[3 * i + 2]) / 3);
}
//@ useless truncated
KERNEL {
    int i = THREAD;
    y[i] = (unsigned char)(0.299f * rgb[3 * i] + 0.587f * rgb[3 * i + 1] + 0.114f * rgb[3 * i + 2]);
}
