//! Tests of disassembly with an installed disassembler: a toolkit's, nvcc's or Triton's.

use super::*;
use warpgauge_code::listing::{CodeLanguage, instructions};
use warpgauge_turns::Owner;

#[tokio::test]
async fn machine_code_of_nvrtc_is_listed() {
    let bench = Bench::new();
    let source = "extern \"C\" __global__ void add(const float* a, float* b) {
        b[threadIdx.x] += a[threadIdx.x]; }";
    let artifact = bench.built(source).await;
    assert_eq!(artifact.format, ImageFormat::Cubin);
    needs!("nvdisasm", bench.compiler.toolchain().nvdisasm.is_some());
    assert!(bench.compiler.cannot_disassemble(ImageFormat::Cubin).is_none());
    let listing =
        bench.compiler.disassemble(&artifact.image, artifact.format, Owner::SERVER).await.unwrap();
    for words in [".text.add:", "LDG", "FADD", "STG", "EXIT"] {
        assert!(listing.contains(words), "{words}:\n{listing}");
    }
    // The kernel that queries types must not appear in the listing.
    assert!(!listing.contains("__warpgauge"), "{listing}");
    let counted = instructions(&listing, CodeLanguage::Sass, "add");
    assert!(counted.is_some(), "{listing}");
}

#[tokio::test]
async fn what_is_no_machine_code_is_said() {
    let bench = Bench::new();
    needs!("nvdisasm", bench.compiler.toolchain().nvdisasm.is_some());
    match bench
        .compiler
        .disassemble(b"\x7fELF, and then nothing", ImageFormat::Cubin, Owner::SERVER)
        .await
    {
        Err(CompileError::Environment { what, remedy }) => {
            assert!(what.contains("nvdisasm") && remedy.contains("damaged"), "{what}; {remedy}");
        }
        other => panic!("{other:?}"),
    }
}
