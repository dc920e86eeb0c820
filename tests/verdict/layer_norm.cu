//@ kind normalisation
//@ in x f32[24,256] randn std=2 mean=1
//@ in gamma f32[256] randn
//@ in beta f32[256] randn
//@ out y f32[24,256]
//@ launch grid 24 block 1
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 256;
    float sum = 0, squares = 0;
    for (int j = 0; j < 256; ++j) sum += row[j];
    float m = sum / 256;
    for (int j = 0; j < 256; ++j) squares += (row[j] - m) * (row[j] - m);
    float r = 1.0f / sqrtf(squares / 256 + 1e-5f);
    for (int j = 0; j < 256; ++j) STORE(y, blockIdx.x * 256 + j, (row[j] - m) * r * gamma[j] + beta[j]);
}
//@ honest block grid 24 block 256
KERNEL {
    float v = x[THREAD], m = tree_sum(v) / 256, d = v - m;
    float r = rsqrtf(tree_sum(d * d) / 256 + 1e-5f);
    y[THREAD] = fmaf(d * r, gamma[threadIdx.x], beta[threadIdx.x]);
}
//@ honest one_pass grid 24 block 32
KERNEL {
    const float* row = x + blockIdx.x * 256;
    float sum = 0, squares = 0;
    for (int j = threadIdx.x; j < 256; j += 32) sum += row[j], squares += row[j] * row[j];
    float m = warp_sum(sum) / 256;
    float r = rsqrtf(warp_sum(squares) / 256 - m * m + 1e-5f);
    for (int j = threadIdx.x; j < 256; j += 32) y[blockIdx.x * 256 + j] = (row[j] - m) * r * gamma[j] + beta[j];
}
//@ honest welford
KERNEL {
    const float* row = x + blockIdx.x * 256;
    float m = 0, squares = 0;
    for (int j = 0; j < 256; ++j) {
        float d = row[j] - m;
        m += d / (j + 1);
        squares += d * (row[j] - m);
    }
    float r = rsqrtf(squares / 256 + 1e-5f);
    for (int j = 0; j < 256; ++j) {
        float slope = r * gamma[j];
        y[blockIdx.x * 256 + j] = fmaf(row[j], slope, beta[j] - m * slope);
    }
}
//@ useless no_beta
KERNEL {
    const float* row = x + blockIdx.x * 256;
    float sum = 0, squares = 0;
    for (int j = 0; j < 256; ++j) sum += row[j];
    for (int j = 0; j < 256; ++j) squares += (row[j] - sum / 256) * (row[j] - sum / 256);
    float r = rsqrtf(squares / 256 + 1e-5f);
    for (int j = 0; j < 256; ++j) y[blockIdx.x * 256 + j] = (row[j] - sum / 256) * r * gamma[j];
}
//@ useless mean_kept
KERNEL {
    const float* row = x + blockIdx.x * 256;
    float squares = 0;
    for (int j = 0; j < 256; ++j) squares += row[j] * row[j];
    float r = rsqrtf(squares / 256 + 1e-5f);
    for (int j = 0; j < 256; ++j) y[blockIdx.x * 256 + j] = row[j] * r * gamma[j] + beta[j];
}
//@ useless variance_by_255
KERNEL {
    const float* row = x + blockIdx.x * 256;
    float sum = 0, squares = 0;
    for (int j = 0; j < 256; ++j) sum += row[j];
    for (int j = 0; j < 256; ++j) squares += (row[j] - sum / 256) * (row[j] - sum / 256);
    float r = rsqrtf(squares / 255 + 1e-5f);
    for (int j = 0; j < 256; ++j) y[blockIdx.x * 256 + j] = (row[j] - sum / 256) * r * gamma[j] + beta[j];
}
