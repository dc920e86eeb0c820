//! Kernels in PTX, small enough to write by hand.

/// `out[i] = a[i] + b[i]` for `i < n`.
pub const VECTOR_ADD: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry vector_add(
    .param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n
) {
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra $done;
    mul.wide.u32 %rd4, %r5, 4;
    add.s64 %rd5, %rd1, %rd4;
    ld.global.f32 %f1, [%rd5];
    add.s64 %rd6, %rd2, %rd4;
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    add.s64 %rd7, %rd3, %rd4;
    st.global.f32 [%rd7], %f3;
$done:
    ret;
}
";

/// `last`: each block writes its index to `*at`. `add`: each block adds 1 to it, without an atomic.
pub const BLOCKS: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 at) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    mov.u32 %r1, %ctaid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry add(.param .u64 at) {
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd1], %r2;
    ret;
}
";

/// `bump`: adds `by` to `*at`. `bad_store`: writes to address 0. `misaligned`: stores four bytes
/// at an odd address. `stop`: traps. `forever`: never ends. `block_sum`: sums the block through
/// dynamic shared memory. `bounded`: at most 64 threads.
pub const MANY: &str = r"
.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 4 .b8 pool[];
.visible .global .align 4 .u32 counter = 7;
.visible .const .align 4 .u32 factors[3] = {2, 3, 5};

.visible .entry bump(.param .u64 at, .param .u32 by) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    ld.param.u32 %r1, [by];
    ld.global.u32 %r2, [%rd1];
    add.u32 %r3, %r2, %r1;
    st.global.u32 [%rd1], %r3;
    ret;
}

.visible .entry bad_store() {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 0;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry misaligned(.param .u64 at) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [at];
    add.u64 %rd2, %rd1, 1;
    mov.u32 %r1, 1;
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry stop() {
    trap;
}

.visible .entry forever(.param .u64 at) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [at];
$again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.ne.u32 %p1, %r1, 1;
    @%p1 bra $again;
    ret;
}

.visible .entry block_sum(.param .u64 in, .param .u64 out) {
    .reg .b32 %r<10>;
    .reg .b64 %rd<6>;
    .reg .pred %p<3>;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r2, [%rd4];
    mov.u32 %r3, pool;
    shl.b32 %r4, %r1, 2;
    add.u32 %r5, %r3, %r4;
    st.shared.u32 [%r5], %r2;
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $done;
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
    mov.u32 %r9, %ntid.x;
$next:
    ld.shared.u32 %r8, [%r3];
    add.u32 %r6, %r6, %r8;
    add.u32 %r3, %r3, 4;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p2, %r7, %r9;
    @%p2 bra $next;
    st.global.u32 [%rd2], %r6;
$done:
    ret;
}

.visible .entry bounded() .maxntid 64, 1, 1 {
    ret;
}
";

/// Prints its argument and a line end, from one thread.
pub const PRINT: &str = include_str!("../ptx/print.80.ptx");
