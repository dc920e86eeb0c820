//@ kind elementwise
//@ in x f32[2048] uniform low=0.1 high=0.9
//@ out y f32[2048]
//@ launch grid 8 block 256
//@ weak the map is chaotic, so that one unit in the inputs changes results by as much as they are
//@ reference
KERNEL {
    float v = x[THREAD];
    for (int k = 0; k < 12; ++k) v = 3.9f * v * (1.0f - v);
    STORE(y, THREAD, v);
}
//@ honest other_form
KERNEL {
    float v = x[THREAD];
    for (int k = 0; k < 12; ++k) v = 3.9f * (v - v * v);
    y[THREAD] = v;
}
//@ honest double
KERNEL {
    double v = x[THREAD];
    for (int k = 0; k < 12; ++k) v = 3.9 * v * (1.0 - v);
    y[THREAD] = (float)v;
}
//@ useless one_step_less
KERNEL {
    float v = x[THREAD];
    for (int k = 0; k < 11; ++k) v = 3.9f * v * (1.0f - v);
    y[THREAD] = v;
}
