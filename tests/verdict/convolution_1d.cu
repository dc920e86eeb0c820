//@ kind convolution
//@ in x f32[4,3,100] randn
//@ in w f32[8,3,5] randn std=0.3
//@ in bias f32[8] randn
//@ out y f32[4,8,96]
//@ launch grid 8 4 block 96
//@ reference
KERNEL {
    float sum = bias[blockIdx.x];
    for (int c = 0; c < 3; ++c)
        for (int k = 0; k < 5; ++k)
            sum += x[(blockIdx.y * 3 + c) * 100 + threadIdx.x + k] * w[(blockIdx.x * 3 + c) * 5 + k];
    STORE(y, (blockIdx.y * 8 + blockIdx.x) * 96 + threadIdx.x, sum);
}
//@ honest taps_outside
KERNEL {
    float sum = 0;
    for (int k = 4; k >= 0; --k)
        for (int c = 2; c >= 0; --c)
            sum += x[(blockIdx.y * 3 + c) * 100 + threadIdx.x + k] * w[(blockIdx.x * 3 + c) * 5 + k];
    y[(blockIdx.y * 8 + blockIdx.x) * 96 + threadIdx.x] = sum + bias[blockIdx.x];
}
//@ honest shared_row
KERNEL {
    __shared__ float row[100];
    float sum = bias[blockIdx.x];
    for (int c = 0; c < 3; ++c) {
        for (int j = threadIdx.x; j < 100; j += 96) row[j] = x[(blockIdx.y * 3 + c) * 100 + j];
        __syncthreads();
        float part = 0;
        for (int k = 0; k < 5; ++k) part += row[threadIdx.x + k] * w[(blockIdx.x * 3 + c) * 5 + k];
        sum += part;
        __syncthreads();
    }
    y[(blockIdx.y * 8 + blockIdx.x) * 96 + threadIdx.x] = sum;
}
//@ useless no_bias
KERNEL {
    float sum = 0;
    for (int c = 0; c < 3; ++c)
        for (int k = 0; k < 5; ++k)
            sum += x[(blockIdx.y * 3 + c) * 100 + threadIdx.x + k] * w[(blockIdx.x * 3 + c) * 5 + k];
    y[(blockIdx.y * 8 + blockIdx.x) * 96 + threadIdx.x] = sum;
}
//@ useless flipped_taps
KERNEL {
    float sum = bias[blockIdx.x];
    for (int c = 0; c < 3; ++c)
        for (int k = 0; k < 5; ++k)
            sum += x[(blockIdx.y * 3 + c) * 100 + threadIdx.x + k] * w[(blockIdx.x * 3 + c) * 5 + 4 - k];
    y[(blockIdx.y * 8 + blockIdx.x) * 96 + threadIdx.x] = sum;
}
