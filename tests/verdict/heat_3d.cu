//@ kind stencil
//@ in u f32[12,12,12] uniform low=10 high=20
//@ out v f32[12,12,12]
//@ launch grid 12 block 12 12
//@ reference
KERNEL {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, i = (z * 12 + y) * 12 + x;
    float sum = 0;
    sum += u[x > 0 ? i - 1 : i] + u[x < 11 ? i + 1 : i];
    sum += u[y > 0 ? i - 12 : i] + u[y < 11 ? i + 12 : i];
    sum += u[z > 0 ? i - 144 : i] + u[z < 11 ? i + 144 : i];
    STORE(v, i, u[i] + 0.1f * (sum - 6 * u[i]));
}
//@ honest weights
KERNEL {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, i = (z * 12 + y) * 12 + x;
    float sum = 0.4f * u[i];
    sum = fmaf(0.1f, u[z < 11 ? i + 144 : i], fmaf(0.1f, u[z > 0 ? i - 144 : i], sum));
    sum = fmaf(0.1f, u[y < 11 ? i + 12 : i], fmaf(0.1f, u[y > 0 ? i - 12 : i], sum));
    v[i] = fmaf(0.1f, u[x < 11 ? i + 1 : i], fmaf(0.1f, u[x > 0 ? i - 1 : i], sum));
}
//@ honest differences
KERNEL {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, i = (z * 12 + y) * 12 + x;
    float c = u[i], sum = 0;
    if (x > 0) sum += u[i - 1] - c;
    if (x < 11) sum += u[i + 1] - c;
    if (y > 0) sum += u[i - 12] - c;
    if (y < 11) sum += u[i + 12] - c;
    if (z > 0) sum += u[i - 144] - c;
    if (z < 11) sum += u[i + 144] - c;
    v[i] = c + 0.1f * sum;
}
//@ useless two_dimensions
KERNEL {
    int x = threadIdx.x, y = threadIdx.y, i = (blockIdx.x * 12 + y) * 12 + x;
    float sum = u[x > 0 ? i - 1 : i] + u[x < 11 ? i + 1 : i] + u[y > 0 ? i - 12 : i] + u[y < 11 ? i + 12 : i];
    v[i] = u[i] + 0.1f * (sum - 4 * u[i]);
}
//@ useless smaller_step
KERNEL {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, i = (z * 12 + y) * 12 + x;
    float sum = u[x > 0 ? i - 1 : i] + u[x < 11 ? i + 1 : i] + u[y > 0 ? i - 12 : i] + u[y < 11 ? i + 12 : i];
    sum += u[z > 0 ? i - 144 : i] + u[z < 11 ? i + 144 : i];
    v[i] = u[i] + 0.0999f * (sum - 6 * u[i]);
}
