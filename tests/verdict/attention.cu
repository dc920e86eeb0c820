//@ kind attention
//@ in q f32[24,16] randn
//@ in k_rows f32[40,16] randn
//@ in v_rows f32[40,16] randn
//@ out o f32[24,16]
//@ copy q
//@ launch grid 24 block 1
//@ reference
KERNEL {
    float score[40], most = -1e30f, sum = 0;
    for (int j = 0; j < 40; ++j) {
        float s = 0;
        for (int d = 0; d < 16; ++d) s += q[blockIdx.x * 16 + d] * k_rows[j * 16 + d];
        most = fmaxf(most, score[j] = s * 0.25f);
    }
    for (int j = 0; j < 40; ++j) sum += score[j] = expf(score[j] - most);
    for (int d = 0; d < 16; ++d) {
        float mix = 0;
        for (int j = 0; j < 40; ++j) mix += score[j] / sum * v_rows[j * 16 + d];
        STORE(o, blockIdx.x * 16 + d, mix);
    }
}
//@ honest online
KERNEL {
    float mix[16] = {}, most = -1e30f, sum = 0;
    for (int j = 0; j < 40; ++j) {
        float s = 0;
        for (int d = 0; d < 16; ++d) s += q[blockIdx.x * 16 + d] * k_rows[j * 16 + d];
        float next = fmaxf(most, s * 0.25f), keep = __expf(most - next), e = __expf(s * 0.25f - next);
        sum = sum * keep + e;
        for (int d = 0; d < 16; ++d) mix[d] = mix[d] * keep + e * v_rows[j * 16 + d];
        most = next;
    }
    for (int d = 0; d < 16; ++d) o[blockIdx.x * 16 + d] = mix[d] / sum;
}
//@ honest divided_at_the_end grid 24 block 16
KERNEL {
    __shared__ float score[40];
    for (int j = threadIdx.x; j < 40; j += 16) {
        float s = 0;
        for (int d = 15; d >= 0; --d) s += q[blockIdx.x * 16 + d] * k_rows[j * 16 + d];
        score[j] = exp2f(s * 0.25f * 1.44269504f);
    }
    __syncthreads();
    float mix = 0, sum = 0;
    for (int j = 0; j < 40; ++j) sum += score[j], mix += score[j] * v_rows[j * 16 + threadIdx.x];
    o[blockIdx.x * 16 + threadIdx.x] = __fdividef(mix, sum);
}
//@ honest double
KERNEL {
    double mix[16] = {}, sum = 0;
    for (int j = 0; j < 40; ++j) {
        double s = 0;
        for (int d = 0; d < 16; ++d) s += (double)q[blockIdx.x * 16 + d] * k_rows[j * 16 + d];
        double e = exp(s * 0.25);
        sum += e;
        for (int d = 0; d < 16; ++d) mix[d] += e * v_rows[j * 16 + d];
    }
    for (int d = 0; d < 16; ++d) o[blockIdx.x * 16 + d] = (float)(mix[d] / sum);
}
//@ useless mean_of_values grid 24 block 16
KERNEL {
    float mix = 0;
    for (int j = 0; j < 40; ++j) mix += v_rows[j * 16 + threadIdx.x];
    o[blockIdx.x * 16 + threadIdx.x] = mix / 40;
}
//@ useless no_scale grid 24 block 16
KERNEL {
    float mix = 0, sum = 0;
    for (int j = 0; j < 40; ++j) {
        float s = 0;
        for (int d = 0; d < 16; ++d) s += q[blockIdx.x * 16 + d] * k_rows[j * 16 + d];
        float e = expf(s);
        sum += e;
        mix += e * v_rows[j * 16 + threadIdx.x];
    }
    o[blockIdx.x * 16 + threadIdx.x] = mix / sum;
}
//@ useless half_scores grid 24 block 16
KERNEL {
    float mix = 0, sum = 0;
    for (int j = 0; j < 40; ++j) {
        float s = 0;
        for (int d = 0; d < 16; ++d) s += q[blockIdx.x * 16 + d] * k_rows[j * 16 + d];
        float e = __half2float(__float2half(expf(s * 0.25f)));
        sum += e;
        mix += e * v_rows[j * 16 + threadIdx.x];
    }
    o[blockIdx.x * 16 + threadIdx.x] = mix / sum;
}
