//@ kind half precision
//@ in x f16[64,256] randn
//@ out y f16[64]
//@ launch grid 64 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < 256; ++j) sum += __half2float(x[blockIdx.x * 256 + j]);
    STORE(y, blockIdx.x, sum);
}
//@ honest tree grid 64 block 128
KERNEL {
    const __half* row = x + blockIdx.x * 256;
    float sum = tree_sum(__half2float(row[threadIdx.x]) + __half2float(row[threadIdx.x + 128]));
    if (threadIdx.x == 0) y[blockIdx.x] = __float2half(sum);
}
//@ honest warp grid 64 block 32
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 256; j += 32) sum += __half2float(x[blockIdx.x * 256 + j]);
    sum = warp_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = __float2half(sum);
}
//@ useless half_of_the_terms
KERNEL {
    float sum = 0;
    for (int j = 0; j < 128; ++j) sum += __half2float(x[blockIdx.x * 256 + j]);
    y[blockIdx.x] = __float2half(sum);
}
//@ useless first_term
KERNEL {
    y[blockIdx.x] = x[blockIdx.x * 256];
}
