//@ kind stencil
//@ in cells u8[48,48] randint low=0 high=2
//@ out next u8[48,48]
//@ launch grid 48 block 48
//@ reference
KERNEL {
    int sum = 0;
    for (int t = 0; t < 9; ++t)
        if (t != 4) sum += cells[(blockIdx.x + t / 3 + 47) % 48 * 48 + (threadIdx.x + t % 3 + 47) % 48];
    STORE(next, THREAD, sum == 3 || (sum == 2 && cells[THREAD]));
}
//@ honest with_the_centre
KERNEL {
    int sum = 0;
    for (int t = 0; t < 9; ++t) sum += cells[(blockIdx.x + t / 3 + 47) % 48 * 48 + (threadIdx.x + t % 3 + 47) % 48];
    next[THREAD] = sum == 3 || (sum == 4 && cells[THREAD]) ? 1 : 0;
}
//@ honest rule_as_bits
KERNEL {
    int sum = 0;
    for (int c = 0; c < 3; ++c)
        for (int r = 0; r < 3; ++r)
            if (r != 1 || c != 1) sum += cells[(blockIdx.x + r + 47) % 48 * 48 + (threadIdx.x + c + 47) % 48];
    next[THREAD] = (cells[THREAD] ? 0xc : 0x8) >> sum & 1;
}
//@ useless births_only
KERNEL {
    int sum = 0;
    for (int t = 0; t < 9; ++t)
        if (t != 4) sum += cells[(blockIdx.x + t / 3 + 47) % 48 * 48 + (threadIdx.x + t % 3 + 47) % 48];
    next[THREAD] = sum == 3;
}
//@ useless not_periodic
KERNEL {
    int sum = 0;
    for (int t = 0; t < 9; ++t) {
        int r = (int)blockIdx.x + t / 3 - 1, c = (int)threadIdx.x + t % 3 - 1;
        if (t != 4 && r >= 0 && r < 48 && c >= 0 && c < 48) sum += cells[r * 48 + c];
    }
    next[THREAD] = sum == 3 || (sum == 2 && cells[THREAD]);
}
