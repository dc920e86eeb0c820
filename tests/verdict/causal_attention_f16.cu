//@ kind attention
//@ in q f16[32,16] randn
//@ in k_rows f16[32,16] randn
//@ in v_rows f16[32,16] randn
//@ out o f16[32,16]
//@ launch grid 32 block 16
//@ reference
KERNEL {
    float mix = 0, sum = 0;
    for (int j = 0; j <= blockIdx.x; ++j) {
        float s = 0;
        for (int d = 0; d < 16; ++d) s += as_float(q[blockIdx.x * 16 + d]) * as_float(k_rows[j * 16 + d]);
        float e = expf(s * 0.25f);
        sum += e;
        mix += e * as_float(v_rows[j * 16 + threadIdx.x]);
    }
    STORE(o, THREAD, mix / sum);
}
//@ honest online
KERNEL {
    float mix = 0, sum = 0, most = -1e30f;
    for (int j = 0; j <= blockIdx.x; ++j) {
        float s = 0;
        for (int d = 0; d < 16; ++d) s += as_float(q[blockIdx.x * 16 + d]) * as_float(k_rows[j * 16 + d]);
        float next = fmaxf(most, s * 0.25f), keep = __expf(most - next), e = __expf(s * 0.25f - next);
        sum = sum * keep + e;
        mix = mix * keep + e * as_float(v_rows[j * 16 + threadIdx.x]);
        most = next;
    }
    o[THREAD] = __float2half(mix / sum);
}
//@ honest weights_in_half
KERNEL {
    float mix = 0, sum = 0, most = -1e30f;
    for (int pass = 0; pass < 2; ++pass)
        for (int j = 0; j <= blockIdx.x; ++j) {
            float s = 0;
            for (int d = 0; d < 16; ++d) s += as_float(q[blockIdx.x * 16 + d]) * as_float(k_rows[j * 16 + d]);
            s *= 0.25f;
            if (pass == 0) {
                most = fmaxf(most, s);
                continue;
            }
            __half e = __float2half(expf(s - most));
            sum += expf(s - most);
            mix += as_float(e) * as_float(v_rows[j * 16 + threadIdx.x]);
        }
    o[THREAD] = __float2half(mix / sum);
}
//@ useless not_causal
KERNEL {
    float mix = 0, sum = 0;
    for (int j = 0; j < 32; ++j) {
        float s = 0;
        for (int d = 0; d < 16; ++d) s += as_float(q[blockIdx.x * 16 + d]) * as_float(k_rows[j * 16 + d]);
        float e = expf(s * 0.25f);
        sum += e;
        mix += e * as_float(v_rows[j * 16 + threadIdx.x]);
    }
    o[THREAD] = __float2half(mix / sum);
}
//@ useless own_value
KERNEL {
    o[THREAD] = v_rows[THREAD];
}
