//@ kind elementwise
//@ in q f32[500,4] randn
//@ in v f32[500,3] randn
//@ out y f32[500,3]
//@ copy v
//@ int n 500
//@ launch grid 2 block 256
//@ reference
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float r = rsqrtf(q[4 * i] * q[4 * i] + q[4 * i + 1] * q[4 * i + 1] + q[4 * i + 2] * q[4 * i + 2] + q[4 * i + 3] * q[4 * i + 3]);
    float w = q[4 * i] * r, a = q[4 * i + 1] * r, b = q[4 * i + 2] * r, c = q[4 * i + 3] * r;
    float x = v[3 * i], s = v[3 * i + 1], t = v[3 * i + 2];
    STORE(y, 3 * i, (1 - 2 * (b * b + c * c)) * x + 2 * (a * b - w * c) * s + 2 * (a * c + w * b) * t);
    STORE(y, 3 * i + 1, 2 * (a * b + w * c) * x + (1 - 2 * (a * a + c * c)) * s + 2 * (b * c - w * a) * t);
    STORE(y, 3 * i + 2, 2 * (a * c - w * b) * x + 2 * (b * c + w * a) * s + (1 - 2 * (a * a + b * b)) * t);
}
//@ honest cross_products
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float w = q[4 * i], a = q[4 * i + 1], b = q[4 * i + 2], c = q[4 * i + 3];
    float x = v[3 * i], s = v[3 * i + 1], t = v[3 * i + 2], k = 2 / (w * w + a * a + b * b + c * c);
    float p = b * t - c * s, o = c * x - a * t, m = a * s - b * x;
    y[3 * i] = x + k * (w * p + b * m - c * o);
    y[3 * i + 1] = s + k * (w * o + c * p - a * m);
    y[3 * i + 2] = t + k * (w * m + a * o - b * p);
}
//@ honest double
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    double w = q[4 * i], a = q[4 * i + 1], b = q[4 * i + 2], c = q[4 * i + 3];
    double x = v[3 * i], s = v[3 * i + 1], t = v[3 * i + 2], k = 2 / (w * w + a * a + b * b + c * c);
    double p = b * t - c * s, o = c * x - a * t, m = a * s - b * x;
    y[3 * i] = (float)(x + k * (w * p + b * m - c * o));
    y[3 * i + 1] = (float)(s + k * (w * o + c * p - a * m));
    y[3 * i + 2] = (float)(t + k * (w * m + a * o - b * p));
}
//@ useless inverse_rotation
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float w = -q[4 * i], a = q[4 * i + 1], b = q[4 * i + 2], c = q[4 * i + 3];
    float x = v[3 * i], s = v[3 * i + 1], t = v[3 * i + 2], k = 2 / (w * w + a * a + b * b + c * c);
    float p = b * t - c * s, o = c * x - a * t, m = a * s - b * x;
    y[3 * i] = x + k * (w * p + b * m - c * o);
    y[3 * i + 1] = s + k * (w * o + c * p - a * m);
    y[3 * i + 2] = t + k * (w * m + a * o - b * p);
}
//@ useless not_normalised
KERNEL {
    int i = THREAD;
    if (i >= n) return;
    float w = q[4 * i], a = q[4 * i + 1], b = q[4 * i + 2], c = q[4 * i + 3];
    float x = v[3 * i], s = v[3 * i + 1], t = v[3 * i + 2], k = 2;
    float p = b * t - c * s, o = c * x - a * t, m = a * s - b * x;
    y[3 * i] = x + k * (w * p + b * m - c * o);
    y[3 * i + 1] = s + k * (w * o + c * p - a * m);
    y[3 * i + 2] = t + k * (w * m + a * o - b * p);
}
