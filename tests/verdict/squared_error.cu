//@ kind loss
//@ in a f32[3000] randn
//@ in b f32[3000] randn
//@ out loss f32[1]
//@ launch grid 1 block 256
//@ reference
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 3000; j += 256) sum += (a[j] - b[j]) * (a[j] - b[j]);
    sum = tree_sum(sum);
    if (threadIdx.x == 0) STORE(loss, 0, sum / 3000);
}
//@ honest serial grid 1 block 1
KERNEL {
    float sum = 0;
    for (int j = 0; j < 3000; ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
    loss[0] = sum / 3000;
}
//@ honest expanded
KERNEL {
    float aa = 0, ab = 0, bb = 0;
    for (int j = threadIdx.x; j < 3000; j += 256) aa += a[j] * a[j], ab += a[j] * b[j], bb += b[j] * b[j];
    aa = tree_sum(aa), ab = tree_sum(ab), bb = tree_sum(bb);
    if (threadIdx.x == 0) loss[0] = (aa - 2 * ab + bb) * (1.0f / 3000);
}
//@ useless expected_value
KERNEL {
    if (threadIdx.x == 0) loss[0] = 2;
}
//@ useless sum_in_place_of_mean
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 3000; j += 256) sum += (a[j] - b[j]) * (a[j] - b[j]);
    sum = tree_sum(sum);
    if (threadIdx.x == 0) loss[0] = sum;
}
//@ useless first_half
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 1500; j += 256) sum += (a[j] - b[j]) * (a[j] - b[j]);
    sum = tree_sum(sum);
    if (threadIdx.x == 0) loss[0] = sum / 1500;
}
