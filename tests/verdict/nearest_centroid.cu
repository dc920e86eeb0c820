//@ kind integers and order
//@ in x f32[500,8] randn
//@ in centre f32[32,8] randn
//@ out at i32[500]
//@ launch grid 500 block 1
//@ reference
KERNEL {
    float least = 1e30f;
    int best = 0;
    for (int j = 0; j < 32; ++j) {
        float sum = 0;
        for (int d = 0; d < 8; ++d) {
            float v = x[blockIdx.x * 8 + d] - centre[j * 8 + d];
            sum += v * v;
        }
        if (sum < least) least = sum, best = j;
    }
    STORE(at, blockIdx.x, best);
}
//@ honest warp grid 500 block 32
KERNEL {
    float sum = 0;
    for (int d = 7; d >= 0; --d) {
        float v = centre[threadIdx.x * 8 + d] - x[blockIdx.x * 8 + d];
        sum = fmaf(v, v, sum);
    }
    float least = -warp_max(-sum);
    unsigned votes = __ballot_sync(ALL, sum == least);
    if (threadIdx.x == 0) at[blockIdx.x] = __ffs(votes) - 1;
}
//@ honest expanded grid 2 block 250
KERNEL {
    float most = -1e30f;
    int best = 0;
    for (int j = 0; j < 32; ++j) {
        float ab = 0, bb = 0;
        for (int d = 0; d < 8; ++d) ab += x[THREAD * 8 + d] * centre[j * 8 + d], bb += centre[j * 8 + d] * centre[j * 8 + d];
        if (ab - 0.5f * bb > most) most = ab - 0.5f * bb, best = j;
    }
    at[THREAD] = best;
}
//@ useless largest_product grid 2 block 250
KERNEL {
    float most = -1e30f;
    int best = 0;
    for (int j = 0; j < 32; ++j) {
        float ab = 0;
        for (int d = 0; d < 8; ++d) ab += x[THREAD * 8 + d] * centre[j * 8 + d];
        if (ab > most) most = ab, best = j;
    }
    at[THREAD] = best;
}
//@ useless half_distances grid 2 block 250
KERNEL {
    float least = 1e30f;
    int best = 0;
    for (int j = 0; j < 32; ++j) {
        __half sum = __float2half(0.0f);
        for (int d = 0; d < 8; ++d) {
            __half v = __float2half(x[THREAD * 8 + d] - centre[j * 8 + d]);
            sum = __hfma(v, v, sum);
        }
        if (as_float(sum) < least) least = as_float(sum), best = j;
    }
    at[THREAD] = best;
}
