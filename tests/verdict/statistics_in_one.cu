//@ kind reduction
//@ in x f32[32,1000] randn mean=20 std=5
//@ out y f32[32,4]
//@ launch grid 32 block 1
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 1000;
    float sum = 0, squares = 0, least = row[0], most = row[0];
    for (int j = 0; j < 1000; ++j) {
        sum += row[j];
        squares += row[j] * row[j];
        least = fminf(least, row[j]);
        most = fmaxf(most, row[j]);
    }
    STORE(y, blockIdx.x * 4, sum);
    STORE(y, blockIdx.x * 4 + 1, squares);
    STORE(y, blockIdx.x * 4 + 2, least);
    STORE(y, blockIdx.x * 4 + 3, most);
}
//@ honest tree grid 32 block 128
KERNEL {
    const float* row = x + blockIdx.x * 1000;
    float sum = 0, squares = 0, least = row[0], most = row[0];
    for (int j = threadIdx.x; j < 1000; j += 128) {
        sum += row[j];
        squares += row[j] * row[j];
        least = fminf(least, row[j]);
        most = fmaxf(most, row[j]);
    }
    sum = tree_sum(sum), squares = tree_sum(squares), least = -tree_max(-least), most = tree_max(most);
    if (threadIdx.x == 0) ((float4*)y)[blockIdx.x] = make_float4(sum, squares, least, most);
}
//@ honest double
KERNEL {
    const float* row = x + blockIdx.x * 1000;
    double sum = 0, squares = 0;
    float least = row[0], most = row[0];
    for (int j = 999; j >= 0; --j) {
        sum += row[j];
        squares += (double)row[j] * row[j];
        least = fminf(least, row[j]);
        most = fmaxf(most, row[j]);
    }
    ((float4*)y)[blockIdx.x] = make_float4((float)sum, (float)squares, least, most);
}
//@ useless least_is_zero
KERNEL {
    const float* row = x + blockIdx.x * 1000;
    float sum = 0, squares = 0, most = row[0];
    for (int j = 0; j < 1000; ++j) sum += row[j], squares += row[j] * row[j], most = fmaxf(most, row[j]);
    ((float4*)y)[blockIdx.x] = make_float4(sum, squares, 0, most);
}
//@ useless guessed_extremes
KERNEL {
    const float* row = x + blockIdx.x * 1000;
    float sum = 0, squares = 0;
    for (int j = 0; j < 1000; ++j) sum += row[j], squares += row[j] * row[j];
    ((float4*)y)[blockIdx.x] = make_float4(sum, squares, 4, 36);
}
