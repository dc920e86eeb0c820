//@ kind reduction
//@ in x f32[40,300] randn
//@ out y f32[40]
//@ launch grid 40 block 1
//@ reference
KERNEL {
    float most = x[blockIdx.x * 300];
    for (int j = 1; j < 300; ++j) most = fmaxf(most, x[blockIdx.x * 300 + j]);
    STORE(y, blockIdx.x, most);
}
//@ honest tree grid 40 block 128
KERNEL {
    float most = -1e38f;
    for (int j = threadIdx.x; j < 300; j += 128) most = fmaxf(most, x[blockIdx.x * 300 + j]);
    most = tree_max(most);
    if (threadIdx.x == 0) y[blockIdx.x] = most;
}
//@ honest warp grid 40 block 32
KERNEL {
    float most = -__int_as_float(0x7f800000);
    for (int j = threadIdx.x; j < 300; j += 32) most = fmaxf(most, x[blockIdx.x * 300 + j]);
    most = warp_max(most);
    if (threadIdx.x == 0) y[blockIdx.x] = most;
}
//@ useless first_half
KERNEL {
    float most = x[blockIdx.x * 300];
    for (int j = 1; j < 150; ++j) most = fmaxf(most, x[blockIdx.x * 300 + j]);
    y[blockIdx.x] = most;
}
//@ useless least
KERNEL {
    float least = x[blockIdx.x * 300];
    for (int j = 1; j < 300; ++j) least = fminf(least, x[blockIdx.x * 300 + j]);
    y[blockIdx.x] = least;
}
