//@ kind quantised
//@ in x f32[4096] randn
//@ out q i8[4096]
//@ float inverse 32.0
//@ launch grid 16 block 256
//@ reference
KERNEL {
    int i = THREAD;
    STORE(q, i, (int)fminf(fmaxf(rintf(x[i] * inverse), -127.0f), 127.0f));
}
//@ honest conversion
KERNEL {
    int i = THREAD;
    q[i] = (signed char)min(max(__float2int_rn(x[i] * inverse), -127), 127);
}
//@ honest double
KERNEL {
    int i = THREAD;
    q[i] = (signed char)fmin(fmax(rint((double)x[i] * inverse), -127.0), 127.0);
}
//@ useless truncated
KERNEL {
    int i = THREAD;
    q[i] = (signed char)min(max((int)(x[i] * inverse), -127), 127);
}
//@ useless not_clamped
KERNEL {
    int i = THREAD;
    q[i] = (signed char)(unsigned char)__float2int_rn(2 * x[i] * inverse);
}
//@ useless one_step_off
KERNEL {
    int i = THREAD;
    q[i] = (signed char)min(max(__float2int_rn(x[i] * inverse) + 1, -127), 127);
}
