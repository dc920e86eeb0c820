//@ kind reduction
//@ in x f32[300000] uniform
//@ out y f32[1]
//@ without plus_one one_element: the rounding of this sum is larger than 1
//@ launch grid 1 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < 300000; ++j) sum += x[j];
    STORE(y, 0, sum);
}
//@ honest tree grid 1 block 1024
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 300000; j += 1024) sum += x[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[0] = sum;
}
//@ honest double grid 1 block 256
KERNEL {
    double sum = 0;
    for (int j = threadIdx.x; j < 300000; j += 256) sum += x[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[0] = (float)sum;
}
//@ useless expected_value
KERNEL {
    y[0] = 150000;
}
//@ useless thousandth_missing grid 1 block 1024
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 299700; j += 1024) sum += x[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[0] = sum;
}
