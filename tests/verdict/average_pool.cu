//@ kind pooling
//@ in x f32[5,24,24] randn
//@ out y f32[5,8,8]
//@ launch grid 5 block 8 8
//@ reference
KERNEL {
    float sum = 0;
    for (int t = 0; t < 9; ++t) sum += x[(blockIdx.x * 24 + 3 * threadIdx.y + t / 3) * 24 + 3 * threadIdx.x + t % 3];
    STORE(y, (blockIdx.x * 8 + threadIdx.y) * 8 + threadIdx.x, sum / 9);
}
//@ honest columns_first
KERNEL {
    float sum = 0;
    for (int s = 0; s < 3; ++s) {
        float part = 0;
        for (int r = 0; r < 3; ++r) part += x[(blockIdx.x * 24 + 3 * threadIdx.y + r) * 24 + 3 * threadIdx.x + s];
        sum += part;
    }
    y[(blockIdx.x * 8 + threadIdx.y) * 8 + threadIdx.x] = sum * (1.0f / 9);
}
//@ honest each_scaled
KERNEL {
    float sum = 0;
    for (int t = 8; t >= 0; --t)
        sum = fmaf(x[(blockIdx.x * 24 + 3 * threadIdx.y + t / 3) * 24 + 3 * threadIdx.x + t % 3], 1.0f / 9, sum);
    y[(blockIdx.x * 8 + threadIdx.y) * 8 + threadIdx.x] = sum;
}
//@ useless divided_by_eight
KERNEL {
    float sum = 0;
    for (int t = 0; t < 9; ++t) sum += x[(blockIdx.x * 24 + 3 * threadIdx.y + t / 3) * 24 + 3 * threadIdx.x + t % 3];
    y[(blockIdx.x * 8 + threadIdx.y) * 8 + threadIdx.x] = sum / 8;
}
//@ useless windows_of_two
KERNEL {
    float sum = 0;
    for (int t = 0; t < 4; ++t) sum += x[(blockIdx.x * 24 + 3 * threadIdx.y + t / 2) * 24 + 3 * threadIdx.x + t % 2];
    y[(blockIdx.x * 8 + threadIdx.y) * 8 + threadIdx.x] = sum / 4;
}
