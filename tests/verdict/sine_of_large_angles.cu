//@ kind elementwise
//@ in x f32[3000] uniform low=0 high=5000
//@ out y f32[3000]
//@ int n 3000
//@ launch grid 12 block 256
//@ weak what one unit in the inputs changes is far more than what rounding inside does
//@ reference
KERNEL {
    int i = THREAD;
    if (i < n) STORE(y, i, sinf(x[i]));
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)sin((double)x[i]);
}
//@ honest in_half_turns
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = (float)sinpi((double)x[i] * 0.3183098861837907);
}
//@ useless one_turn_of_3_1416
KERNEL {
    int i = THREAD;
    if (i < n) y[i] = sinf(fmodf(x[i], 6.2832f));
}
