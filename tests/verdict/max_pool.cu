//@ kind pooling
//@ in x f32[6,20,20] randn
//@ out y f32[6,10,10]
//@ out at i32[6,10,10]
//@ launch grid 6 block 10 10
//@ reference
KERNEL {
    float most = -1e38f;
    int place = 0;
    for (int t = 0; t < 4; ++t) {
        int i = (2 * threadIdx.y + t / 2) * 20 + 2 * threadIdx.x + t % 2;
        if (x[blockIdx.x * 400 + i] > most) most = x[blockIdx.x * 400 + i], place = i;
    }
    STORE(y, (blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x, most);
    STORE(at, (blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x, place);
}
//@ honest columns_first
KERNEL {
    int first = 2 * threadIdx.y * 20 + 2 * threadIdx.x, place = first;
    const int steps[3] = {20, 1, 21};
    for (int k = 0; k < 3; ++k)
        if (x[blockIdx.x * 400 + first + steps[k]] > x[blockIdx.x * 400 + place]) place = first + steps[k];
    int to = (blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x;
    y[to] = x[blockIdx.x * 400 + place];
    at[to] = place;
}
//@ honest flat grid 3 block 200
KERNEL {
    int to = THREAD, plane = to / 100, first = (to % 100 / 10) * 40 + to % 10 * 2, place = first;
    for (int k = 1; k < 4; ++k) {
        int other = first + k / 2 * 20 + k % 2;
        place = x[plane * 400 + other] > x[plane * 400 + place] ? other : place;
    }
    y[to] = x[plane * 400 + place];
    at[to] = place;
}
//@ useless first_of_each
KERNEL {
    int to = (blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x, i = 2 * threadIdx.y * 20 + 2 * threadIdx.x;
    y[to] = x[blockIdx.x * 400 + i];
    at[to] = i;
}
//@ useless index_within_window
KERNEL {
    int to = (blockIdx.x * 10 + threadIdx.y) * 10 + threadIdx.x, best = 0;
    float most = -1e38f;
    for (int t = 0; t < 4; ++t) {
        float v = x[blockIdx.x * 400 + (2 * threadIdx.y + t / 2) * 20 + 2 * threadIdx.x + t % 2];
        if (v > most) most = v, best = t;
    }
    y[to] = most;
    at[to] = best;
}
