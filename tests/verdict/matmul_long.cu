//@ kind matrix product
//@ in a f32[8,2048] randn
//@ in b f32[2048,16] randn
//@ out c f32[8,16]
//@ launch grid 8 block 16
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 2048; ++k) sum += a[blockIdx.x * 2048 + k] * b[k * 16 + threadIdx.x];
    STORE(c, blockIdx.x * 16 + threadIdx.x, sum);
}
//@ honest split_by_warps grid 8 16 block 32
KERNEL {
    float sum = 0;
    for (int k = threadIdx.x; k < 2048; k += 32) sum += a[blockIdx.x * 2048 + k] * b[k * 16 + blockIdx.y];
    sum = warp_sum(sum);
    if (threadIdx.x == 0) c[blockIdx.x * 16 + blockIdx.y] = sum;
}
//@ honest atomics_in_shared_memory grid 8 block 256
KERNEL {
    __shared__ float part[16];
    if (threadIdx.x < 16) part[threadIdx.x] = 0;
    __syncthreads();
    int column = threadIdx.x % 16;
    float sum = 0;
    for (int k = threadIdx.x / 16; k < 2048; k += 16) sum += a[blockIdx.x * 2048 + k] * b[k * 16 + column];
    atomicAdd(&part[column], sum);
    __syncthreads();
    if (threadIdx.x < 16) c[blockIdx.x * 16 + threadIdx.x] = part[threadIdx.x];
}
//@ honest compensated
KERNEL {
    float sum = 0, low = 0;
    for (int k = 0; k < 2048; ++k) {
        float term = fmaf(a[blockIdx.x * 2048 + k], b[k * 16 + threadIdx.x], -low), next = sum + term;
        low = (next - sum) - term;
        sum = next;
    }
    c[blockIdx.x * 16 + threadIdx.x] = sum;
}
//@ useless bfloat16_inputs
KERNEL {
    float sum = 0;
    for (int k = 0; k < 2048; ++k)
        sum += __bfloat162float(__float2bfloat16(a[blockIdx.x * 2048 + k])) * __bfloat162float(__float2bfloat16(b[k * 16 + threadIdx.x]));
    c[blockIdx.x * 16 + threadIdx.x] = sum;
}
//@ useless half_accumulator
KERNEL {
    __half sum = __float2half(0.0f);
    for (int k = 0; k < 2048; ++k)
        sum = __hfma(__float2half(a[blockIdx.x * 2048 + k]), __float2half(b[k * 16 + threadIdx.x]), sum);
    c[blockIdx.x * 16 + threadIdx.x] = __half2float(sum);
}
//@ useless last_product_missing
KERNEL {
    float sum = 0;
    for (int k = 0; k < 2047; ++k) sum += a[blockIdx.x * 2048 + k] * b[k * 16 + threadIdx.x];
    c[blockIdx.x * 16 + threadIdx.x] = sum;
}
