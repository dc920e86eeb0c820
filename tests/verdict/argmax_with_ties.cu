//@ kind integers and order
//@ in x i32[40,100] randint low=0 high=20
//@ out at i32[40]
//@ launch grid 40 block 1
//@ reference
KERNEL {
    int best = 0;
    for (int j = 1; j < 100; ++j) if (x[blockIdx.x * 100 + j] > x[blockIdx.x * 100 + best]) best = j;
    STORE(at, blockIdx.x, best);
}
//@ honest last_of_equals
KERNEL {
    int best = 0;
    for (int j = 1; j < 100; ++j) if (x[blockIdx.x * 100 + j] >= x[blockIdx.x * 100 + best]) best = j;
    at[blockIdx.x] = best;
}
//@ honest first_of_equals_backwards
KERNEL {
    int best = 99;
    for (int j = 98; j >= 0; --j) if (x[blockIdx.x * 100 + j] >= x[blockIdx.x * 100 + best]) best = j;
    at[blockIdx.x] = best;
}
//@ useless value_in_place_of_index
KERNEL {
    int most = 0;
    for (int j = 0; j < 100; ++j) most = max(most, x[blockIdx.x * 100 + j]);
    at[blockIdx.x] = most;
}
//@ useless second_largest
KERNEL {
    int most = 0, best = 0;
    for (int j = 0; j < 100; ++j) most = max(most, x[blockIdx.x * 100 + j]);
    for (int j = 0; j < 100; ++j) if (x[blockIdx.x * 100 + j] == most - 1) best = j;
    at[blockIdx.x] = best;
}
