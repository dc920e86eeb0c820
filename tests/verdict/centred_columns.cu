//@ kind normalisation
//@ in x f32[300,40] randn mean=500
//@ out y f32[300,40]
//@ launch grid 1 block 40
//@ weak what one unit in the inputs changes is far more than what rounding inside does
//@ reference
KERNEL {
    float sum = 0;
    for (int r = 0; r < 300; ++r) sum += x[r * 40 + threadIdx.x];
    for (int r = 0; r < 300; ++r) STORE(y, r * 40 + threadIdx.x, x[r * 40 + threadIdx.x] - sum / 300);
}
//@ honest tree grid 40 block 512
KERNEL {
    float v = threadIdx.x < 300 ? x[threadIdx.x * 40 + blockIdx.x] : 0, m = tree_sum(v) / 300;
    if (threadIdx.x < 300) y[threadIdx.x * 40 + blockIdx.x] = v - m;
}
//@ honest relative_to_the_first
KERNEL {
    float first = x[threadIdx.x], sum = 0;
    for (int r = 0; r < 300; ++r) sum += x[r * 40 + threadIdx.x] - first;
    for (int r = 0; r < 300; ++r) y[r * 40 + threadIdx.x] = x[r * 40 + threadIdx.x] - first - sum / 300;
}
//@ useless known_mean
KERNEL {
    for (int r = 0; r < 300; ++r) y[r * 40 + threadIdx.x] = x[r * 40 + threadIdx.x] - 500;
}
