//@ kind convolution
//@ in x f16[8,12,12] randn
//@ in w f16[8,3,3] randn
//@ out y f16[8,10,10]
//@ launch grid 8 block 10 10
//@ reference
KERNEL {
    float sum = 0;
    for (int t = 0; t < 9; ++t)
        sum += __half2float(x[(blockIdx.x * 12 + threadIdx.y + t / 3) * 12 + threadIdx.x + t % 3]) * __half2float(w[blockIdx.x * 9 + t]);
    STORE(y, (blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x, sum);
}
//@ honest columns_first
KERNEL {
    float sum = 0;
    for (int s = 0; s < 3; ++s)
        for (int r = 0; r < 3; ++r)
            sum = fmaf(__half2float(w[blockIdx.x * 9 + r * 3 + s]), __half2float(x[(blockIdx.x * 12 + threadIdx.y + r) * 12 + threadIdx.x + s]), sum);
    y[(blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x] = __float2half(sum);
}
//@ honest rows_by_themselves
KERNEL {
    float sum[3] = {0, 0, 0};
    for (int t = 0; t < 9; ++t)
        sum[t / 3] += __half2float(x[(blockIdx.x * 12 + threadIdx.y + t / 3) * 12 + threadIdx.x + t % 3]) * __half2float(w[blockIdx.x * 9 + t]);
    y[(blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x] = __float2half(sum[0] + sum[1] + sum[2]);
}
//@ useless first_filter
KERNEL {
    float sum = 0;
    for (int t = 0; t < 9; ++t)
        sum += __half2float(x[(blockIdx.x * 12 + threadIdx.y + t / 3) * 12 + threadIdx.x + t % 3]) * __half2float(w[t]);
    y[(blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x] = __float2half(sum);
}
//@ useless corner_missing
KERNEL {
    float sum = 0;
    for (int t = 0; t < 8; ++t)
        sum += __half2float(x[(blockIdx.x * 12 + threadIdx.y + t / 3) * 12 + threadIdx.x + t % 3]) * __half2float(w[blockIdx.x * 9 + t]);
    y[(blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x] = __float2half(sum);
}
