//@ kind matrix product
//@ in a f32[60,500] randn
//@ in x f32[500] randn
//@ out y f32[60]
//@ copy x
//@ launch grid 60 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 500; ++k) sum += a[blockIdx.x * 500 + k] * x[k];
    STORE(y, blockIdx.x, sum);
}
//@ honest warp grid 60 block 32
KERNEL {
    float sum = 0;
    for (int k = threadIdx.x; k < 500; k += 32) sum += a[blockIdx.x * 500 + k] * x[k];
    sum = warp_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ honest vectors_of_four grid 60 block 128
KERNEL {
    float sum = 0;
    if (threadIdx.x < 125) {
        float4 p = ((const float4*)(a + blockIdx.x * 500))[threadIdx.x], q = ((const float4*)x)[threadIdx.x];
        sum = p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
    }
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ useless transposed_read
KERNEL {
    float sum = 0;
    for (int k = 0; k < 500; ++k) sum += a[(k * 60 + blockIdx.x) % 30000] * x[k];
    y[blockIdx.x] = sum;
}
//@ useless tail_missing
KERNEL {
    float sum = 0;
    for (int k = 0; k < 480; ++k) sum += a[blockIdx.x * 500 + k] * x[k];
    y[blockIdx.x] = sum;
}
