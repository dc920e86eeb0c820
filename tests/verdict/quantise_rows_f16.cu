//@ kind quantised
//@ in x f16[64,256] randn
//@ out q i8[64,256]
//@ out scale f32[64]
//@ launch grid 64 block 256
//@ reference
KERNEL {
    float v = as_float(x[THREAD]), s = tree_max(fabsf(v)) / 127;
    STORE(q, THREAD, (int)rintf(v / s));
    if (threadIdx.x == 0) STORE(scale, blockIdx.x, s);
}
//@ honest warp grid 64 block 32
KERNEL {
    float most = 0;
    for (int j = threadIdx.x; j < 256; j += 32) most = fmaxf(most, fabsf(as_float(x[blockIdx.x * 256 + j])));
    float s = warp_max(most) / 127;
    for (int j = threadIdx.x; j < 256; j += 32) q[blockIdx.x * 256 + j] = (signed char)__float2int_rn(as_float(x[blockIdx.x * 256 + j]) / s);
    if (threadIdx.x == 0) scale[blockIdx.x] = s;
}
//@ honest multiplied_by_the_inverse
KERNEL {
    float v = as_float(x[THREAD]), most = tree_max(fabsf(v));
    q[THREAD] = (signed char)__float2int_rn(v * (127 / most));
    if (threadIdx.x == 0) scale[blockIdx.x] = most * (1.0f / 127);
}
//@ useless one_scale_for_all
KERNEL {
    float v = as_float(x[THREAD]), most = tree_max(fabsf(v));
    q[THREAD] = (signed char)min(max(__float2int_rn(v * 40), -127), 127);
    if (threadIdx.x == 0) scale[blockIdx.x] = most * (1.0f / 127);
}
//@ useless truncated
KERNEL {
    float v = as_float(x[THREAD]), s = tree_max(fabsf(v)) / 127;
    q[THREAD] = (signed char)(v / s);
    if (threadIdx.x == 0) scale[blockIdx.x] = s;
}
