//@ kind loss
//@ in logits f32[40,50] randn std=2
//@ in label i32[40] randint low=0 high=50
//@ out loss f32[1]
//@ launch grid 1 block 64
//@ reference
KERNEL {
    float own = 0;
    if (threadIdx.x < 40) {
        const float* row = logits + threadIdx.x * 50;
        float most = row[0], sum = 0;
        for (int j = 1; j < 50; ++j) most = fmaxf(most, row[j]);
        for (int j = 0; j < 50; ++j) sum += expf(row[j] - most);
        own = logf(sum) + most - row[label[threadIdx.x]];
    }
    own = tree_sum(own);
    if (threadIdx.x == 0) STORE(loss, 0, own / 40);
}
//@ honest no_shift_serial grid 1 block 1
KERNEL {
    float all = 0;
    for (int i = 0; i < 40; ++i) {
        float sum = 0;
        for (int j = 0; j < 50; ++j) sum += __expf(logits[i * 50 + j]);
        all += __logf(sum) - logits[i * 50 + label[i]];
    }
    loss[0] = all / 40;
}
//@ honest double
KERNEL {
    double own = 0;
    if (threadIdx.x < 40) {
        for (int j = 0; j < 50; ++j) own += exp((double)logits[threadIdx.x * 50 + j]);
        own = log(own) - logits[threadIdx.x * 50 + label[threadIdx.x]];
    }
    own = tree_sum(own);
    if (threadIdx.x == 0) loss[0] = (float)(own / 40);
}
//@ honest relative_to_the_label
KERNEL {
    float own = 0;
    if (threadIdx.x < 40) {
        const float* row = logits + threadIdx.x * 50;
        for (int j = 0; j < 50; ++j) own += expf(row[j] - row[label[threadIdx.x]]);
        own = logf(own);
    }
    own = tree_sum(own);
    if (threadIdx.x == 0) loss[0] = own * 0.025f;
}
//@ useless first_label
KERNEL {
    float own = 0;
    if (threadIdx.x < 40) {
        for (int j = 0; j < 50; ++j) own += expf(logits[threadIdx.x * 50 + j]);
        own = logf(own) - logits[threadIdx.x * 50];
    }
    own = tree_sum(own);
    if (threadIdx.x == 0) loss[0] = own / 40;
}
//@ useless label_not_subtracted
KERNEL {
    float own = 0;
    if (threadIdx.x < 40) {
        for (int j = 0; j < 50; ++j) own += expf(logits[threadIdx.x * 50 + j]);
        own = logf(own);
    }
    own = tree_sum(own);
    if (threadIdx.x == 0) loss[0] = own / 40;
}
