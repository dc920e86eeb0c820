//@ kind elementwise
//@ in a f32[5000] randn
//@ in b f32[5000] randn
//@ out c f32[5000]
//@ int n 5000
//@ launch grid 20 block 256
//@ reference
KERNEL {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) STORE(c, i, a[i] + b[i]);
}
//@ honest double
KERNEL {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = (float)((double)a[i] + b[i]);
}
//@ honest grid_stride grid 4 block 128
KERNEL {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        c[i] = b[i] + a[i];
}
//@ honest vectors_of_four grid 5 block 256
KERNEL {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i < n) {
        float4 p = ((const float4*)a)[i], q = ((const float4*)b)[i];
        ((float4*)c)[i] = make_float4(p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w);
    }
}
//@ useless half_inputs
KERNEL {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = __half2float(__hadd(__float2half(a[i]), __float2half(b[i])));
}
//@ useless missing_term
KERNEL {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i];
}
