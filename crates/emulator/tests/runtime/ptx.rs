//! Kernels in PTX, small enough to write by hand.

/// Kernels with variables of a program.
pub const PROGRAM: &str = r"
.version 8.0
.target sm_75
.address_size 64
.const .align 4 .b8 factors[8];
.global .align 4 .u32 counter = 7;
.global .attribute(.managed) .align 4 .u32 shared_number = 40;

// out[i] = factors[1] * i + base; counts a call for each thread.
.visible .entry fill(.param .u64 out, .param .u32 base) {
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [base];
    mov.u32 %r2, %tid.x;
    ld.const.u32 %r3, [factors+4];
    mad.lo.u32 %r4, %r3, %r2, %r1;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    atom.global.add.u32 %r5, [counter], 1;
    ret;
}

.visible .entry add_one(.param .u64 at) {
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    atom.global.add.u32 %r1, [%rd1], 1;
    ret;
}

.visible .entry double(.param .u64 at) {
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r2, %r1, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}

.visible .entry grow() {
    .reg .b32 %r<2>;
    atom.global.add.u32 %r1, [shared_number], 2;
    ret;
}
";

/// The same kernel for another architecture, with another result.
pub fn constant(sm: u32, value: u32) -> String {
    format!(
        ".version 8.0\n.target sm_{sm}\n.address_size 64\n\
         .visible .entry constant(.param .u64 out) {{\n\
         .reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n\
         ld.param.u64 %rd1, [out];\nmov.u32 %r1, {value};\nst.global.u32 [%rd1], %r1;\nret;\n}}\n"
    )
}

/// Prints `value is …`.
pub const PRINT: &str = include_str!("../ptx/print.80.ptx");
