//@ kind elementwise
//@ in gate f32[64,96] randn std=3
//@ in up f32[64,96] randn
//@ out y f32[64,96]
//@ launch grid 64 block 96
//@ reference
KERNEL {
    int i = THREAD;
    STORE(y, i, gate[i] / (1.0f + expf(-gate[i])) * up[i]);
}
//@ honest fast
KERNEL {
    int i = THREAD;
    y[i] = __fdividef(gate[i] * up[i], 1.0f + __expf(-gate[i]));
}
//@ honest by_tanh
KERNEL {
    int i = THREAD;
    float h = 0.5f * gate[i];
    y[i] = up[i] * (h + h * tanhf(h));
}
//@ honest double
KERNEL {
    int i = THREAD;
    y[i] = (float)(gate[i] * (double)up[i] / (1.0 + exp(-(double)gate[i])));
}
//@ useless sigmoid_only
KERNEL {
    int i = THREAD;
    y[i] = up[i] / (1.0f + expf(-gate[i]));
}
//@ useless gate_missing
KERNEL {
    int i = THREAD;
    y[i] = gate[i] / (1.0f + expf(-gate[i]));
}
