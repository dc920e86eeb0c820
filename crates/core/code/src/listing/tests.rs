use super::*;

const NVDISASM: &str = "\
\t.target\tsm_90

//--------------------- .text._Z21__warpgauge_signatureIPFvPfEEvv --------------------------
\t.section\t.text._Z21__warpgauge_signatureIPFvPfEEvv,\"ax\",@progbits
        /*0000*/                   EXIT ;
.L_x_5:


//--------------------- .text.loop          --------------------------
\t.section\t.text.loop,\"ax\",@progbits
\t.align\t128
loop:
.text.loop:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_3:
        /*0010*/                   FFMA R2, R2, R3, R2 ;
        /*0020*/               @P0 BRA `(.L_x_3);
        /*0030*/                   MOV R4, 32@lo((loop + .L_x_9)) ;
.L_x_2:
        /*0040*/                   EXIT ;
.L_x_0:
        /*0050*/                   BRA `(.L_x_0);
        /*0060*/                   NOP;
        /*0070*/                   NOP;
.L_x_6:
";

const CUOBJDUMP: &str = "
\tcode for sm_90
\t\tFunction : loop
\t.headerflags\t@\"EF_CUDA_SM90\"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                 /* 0x00000a00ff017b82 */
                                                                          /* 0x000fe20000000800 */
        /*0010*/                   FFMA R2, R2, R3, R2 ;                  /* 0x000000000000794d */
        /*0020*/               @P0 BRA 0x10;                              /* 0xfffffffc00fc7947 */
        /*0030*/                   EXIT ;                                 /* 0x0000000000007918 */
        /*0040*/                   BRA 0x40;                              /* 0xfffffffc00fc7947 */
        /*0050*/                   NOP;                                   /* 0x0000000000007918 */
\t\t..........
";

const PTX: &str = "
.version 8.0
.visible .entry other(.param .u64 other_param_0)
{
\tret;
}
\t// .globl\tloop
.visible .entry loop(
\t.param .u64 .ptr .align 1 loop_param_0
)
.maxntid 128, 1, 1
{
\t.reg .pred \t%p<2>;
\t.loc 1 3 5
\tld.param.u64 \t%rd1, [loop_param_0];
$L__BB1_1:
\tfma.rn.f32 \t%f1, %f1, %f2, %f1; // a remark
\t@%p1 bra \t$L__BB1_1;
\t{
\tmov.b32 %r1, 0;
\t}
\tret;

}
";

fn sass(listing: &str) -> Vec<String> {
    instructions(listing, CodeLanguage::Sass, "loop").unwrap().lines
}

#[test]
fn names_places_and_padding_are_left_out() {
    assert_eq!(
        sass(NVDISASM),
        [
            "LDC R1, c[0x0][0x28]",
            "L1:",
            "FFMA R2, R2, R3, R2",
            "@P0 BRA L1",
            "MOV R4, 32@lo((kernel + .L_x_9))",
            "EXIT",
            "L2:",
            "BRA L2"
        ]
    );
    assert_eq!(
        sass(CUOBJDUMP),
        [
            "LDC R1, c[0x0][0x28]",
            "L1:",
            "FFMA R2, R2, R3, R2",
            "@P0 BRA L1",
            "EXIT",
            "L2:",
            "BRA L2"
        ]
    );
    assert_eq!(instructions(NVDISASM, CodeLanguage::Sass, "none"), None);
    let ptx = instructions(PTX, CodeLanguage::Ptx, "loop").unwrap().lines;
    assert_eq!(
        ptx,
        [
            ".reg .pred %p<2>",
            "ld.param.u64 %rd1, [kernel_param_0]",
            "$L_1:",
            "fma.rn.f32 %f1, %f1, %f2, %f1",
            "@%p1 bra $L_1",
            "{",
            "mov.b32 %r1, 0",
            "}",
            "ret"
        ]
    );
}

/// Triton gives kernels the names of Python functions, and marks lines with labels.
#[test]
fn a_kernel_may_be_called_like_an_instruction() {
    let ptx = "
.visible .entry add(
\t.param .u64 add_param_0
)
{
$L__func_begin0:
\tld.param.b64 \t%rd7, [add_param_0+4];
$L__tmp0:
\tadd.s64 \t%rd1, %rd7, add;
$L__BB0_1:
\t@%p1 bra \t$L__BB0_1;
\tret;
$L__tmp1:
$L__func_end0:
}";
    let read = instructions(ptx, CodeLanguage::Ptx, "add").unwrap().lines;
    let expected = [
        "ld.param.b64 %rd7, [kernel_param_0+4]",
        "add.s64 %rd1, %rd7, kernel",
        "$L_1:",
        "@%p1 bra $L_1",
        "ret",
    ];
    assert_eq!(read, expected);
}

#[test]
fn hidden_kernels_are_not_shown() {
    let shown = without_kernels(NVDISASM, |symbol| symbol.contains("__warpgauge_signature"));
    assert!(!shown.contains("__warpgauge_signature"), "{shown}");
    assert!(shown.contains("\t.target\tsm_90") && shown.contains(".text.loop"));
}

#[test]
fn a_difference_is_unified_and_counted() {
    let reference = instructions(NVDISASM, CodeLanguage::Sass, "loop").unwrap();
    let same = diff(CodeLanguage::Sass, &reference, &reference);
    assert!(same.identical && same.unified.is_empty() && same.opcodes.is_empty(), "{same:?}");
    let changed = NVDISASM
        .replace("loop", "swirl")
        .replace("FFMA R2, R2, R3, R2 ;", "FADD R2, R2, R3 ;\n        /*0018*/ FADD R5, R5, R3 ;");
    let candidate = instructions(&changed, CodeLanguage::Sass, "swirl").unwrap();
    let found = diff(CodeLanguage::Sass, &reference, &candidate);
    assert!(!found.identical && !found.truncated);
    assert_eq!((found.added, found.removed), (2, 1));
    assert_eq!((found.reference_instructions, found.candidate_instructions), (6, 7));
    let opcodes: Vec<_> =
        found.opcodes.iter().map(|c| (c.opcode.as_str(), c.reference, c.candidate)).collect();
    assert_eq!(opcodes, [("FADD", 0, 2), ("FFMA", 1, 0)]);
    assert!(
        found.unified.contains("-FFMA R2, R2, R3, R2\n+FADD R2, R2, R3\n"),
        "{}",
        found.unified
    );
    assert!(found.unified.starts_with("--- reference\n+++ candidate\n"));
}

#[test]
fn long_kernels_are_cut_and_said_to_be() {
    let long = |opcode: &str| {
        let mut text = "\t\tFunction : loop\n".to_owned();
        for at in 0..2 * MAX_INSTRUCTIONS {
            text.push_str(&format!("/*{at:04x}*/ {opcode} R{at} ;\n"));
        }
        instructions(&text, CodeLanguage::Sass, "loop").unwrap()
    };
    let (one, other) = (long("FADD"), long("FMUL"));
    assert!(one.cut && one.lines.len() == MAX_INSTRUCTIONS);
    let found = diff(CodeLanguage::Sass, &one, &other);
    assert!(found.truncated && found.unified.len() <= 64 << 10 && found.unified.ends_with('\n'));
    assert!(!diff(CodeLanguage::Sass, &one, &one).identical, "the rest is not known");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Reading any listing ends, with bounded output.
        #[test]
        fn anything_is_read(text in "[/*0-9a-fL_x:;(){}`@ \n.A-Z-]{0,400}", name in "[a-z(]{0,4}") {
            for language in [CodeLanguage::Sass, CodeLanguage::Ptx] {
                if let Some(found) = instructions(&text, language, &name) {
                    prop_assert!(found.lines.len() <= 2 * MAX_INSTRUCTIONS);
                    diff(language, &found, &Instructions::default());
                }
            }
            without_kernels(&text, |symbol| symbol == name);
        }
    }
}
