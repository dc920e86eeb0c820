use std::collections::BTreeMap;

use super::*;
use crate::ctype::CType;
use warpgauge_contract::KernelMetadata;
use warpgauge_tensor::Blob;

const CUBIN: &[u8] = include_bytes!("../../../../tests/fixtures/cubin/cuda13_sm90.cubin");
const FATBIN: &[u8] = include_bytes!("../../../../tests/fixtures/cubin/k.zstd.fatbin");
const PTX: &str = ".version 8.8\n.target sm_80\n.address_size 64\n\
    .visible .entry _Z1kPfi(.param .u64 a, .param .u32 b) { ret; }\n\
    .visible .entry l(.param .f32 a) { ret; }\n";

fn device(major: u32, minor: u32) -> Target {
    Target { compute_capability: (major, minor), driver_version: 13000, emulated: false }
}

fn emulated() -> Target {
    Target { emulated: true, ..device(9, 0) }
}

fn kernel(
    kind: KernelType,
    text: Option<&str>,
    bytes: Option<&[u8]>,
    name: Option<&str>,
) -> KernelCode {
    KernelCode {
        source_code: text.map(str::to_owned),
        files: BTreeMap::new(),
        source_path: None,
        launches: Vec::new(),
        setup: Vec::new(),
        binary_b64: bytes.map(Blob::from_bytes),
        kernel_type: kind,
        io: None,
        metadata: Some(KernelMetadata {
            kernel_name: name.map(str::to_owned),
            ..KernelMetadata::default()
        }),
    }
}

fn checked(kernel: &KernelCode, target: &Target) -> Result<CompiledModule, CompileError> {
    Passthrough::new(kernel, target, false)?.expect("it is no CUDA source").check()
}

#[track_caller]
fn refused(kernel: &KernelCode, target: &Target, code: &str, words: &[&str]) {
    match checked(kernel, target) {
        Err(CompileError::Rejected(failure)) => {
            assert_eq!(failure.code.as_str(), code, "{}", failure.message);
            for word in words {
                assert!(failure.message.contains(word), "{word:?} not in {}", failure.message);
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ptx_is_passed_with_the_types_it_tells() {
    let artifact =
        checked(&kernel(KernelType::Ptx, Some(PTX), None, Some("k")), &device(9, 0)).unwrap();
    assert_eq!((artifact.format, artifact.compiler.as_str()), (ImageFormat::Ptx, "passthrough"));
    assert_eq!(&*artifact.image, PTX.as_bytes());
    let types = |at: usize| -> Vec<CType> {
        artifact.kernels[at].params.iter().flatten().map(|p| p.ctype.clone()).collect()
    };
    let pointer = CType::Pointer { pointee: Some(Box::new(CType::F32)), is_const: false };
    assert_eq!(types(0), [pointer, CType::I32]);
    assert_eq!(types(1), [CType::F32]);
    assert_eq!(artifact.key.len(), 64);
    assert!(!artifact.cache_hit);
}

#[test]
fn ptx_that_the_driver_or_the_device_cannot_take() {
    let ptx = |text: &str| kernel(KernelType::Ptx, Some(text), None, Some("l"));
    let old = Target { driver_version: 12040, ..device(9, 0) };
    refused(&ptx(PTX), &old, "ptx_too_new", &["8.8", "12.9", "12.4"]);
    refused(&ptx(PTX), &device(7, 5), "wrong_architecture", &["sm_80", "sm_75"]);
    let specific = PTX.replace("sm_80", "sm_90a");
    assert!(checked(&ptx(&specific), &device(9, 0)).is_ok());
    refused(&ptx(&specific), &device(10, 0), "wrong_architecture", &["sm_90a", "sm_100"]);
    let family = PTX.replace("sm_80", "sm_100f");
    assert!(checked(&ptx(&family), &device(10, 3)).is_ok());
    refused(&ptx(&family), &device(12, 0), "wrong_architecture", &["sm_100f", "sm_120"]);
    refused(&ptx("hello"), &device(9, 0), "invalid_ptx", &[".version"]);
    refused(&ptx(""), &device(9, 0), "missing_source", &["source_code"]);
    assert!(checked(&ptx(PTX), &Target { driver_version: 12000, ..emulated() }).is_ok());
}

#[test]
fn cubins_are_checked_against_the_device() {
    let cubin = |bytes: &[u8]| kernel(KernelType::Cubin, None, Some(bytes), Some("plain"));
    let artifact = checked(&cubin(CUBIN), &device(9, 0)).unwrap();
    assert_eq!(artifact.entry_kernel().symbol, "_Z5plainPfi");
    assert_eq!(artifact.entry_kernel().params.as_ref().unwrap()[1].ctype, CType::I32);
    let c_linkage = artifact.kernels.iter().find(|k| k.symbol == "mixed").unwrap();
    assert!(c_linkage.params.iter().flatten().all(|p| p.ctype == CType::Unknown));
    refused(&cubin(CUBIN), &device(8, 0), "wrong_architecture", &["sm_90", "sm_80"]);
    refused(&cubin(CUBIN), &device(10, 0), "wrong_architecture", &["sm_90", "sm_100"]);
    refused(&cubin(CUBIN), &emulated(), "emulator_needs_ptx", &["PTX"]);
    let cut = &CUBIN[..CUBIN.len() - 123];
    refused(&cubin(cut), &device(9, 0), "invalid_cubin", &["123", "missing"]);
    refused(&cubin(b"\x00\x01\x02\x03\x04"), &device(9, 0), "invalid_cubin", &["ELF"]);
    refused(&cubin(b""), &device(9, 0), "missing_binary", &["binary_b64"]);
    refused(
        &kernel(KernelType::Cubin, Some("x"), None, None),
        &device(9, 0),
        "missing_binary",
        &[],
    );
    let unnamed = kernel(KernelType::Cubin, None, Some(CUBIN), None);
    refused(&unnamed, &device(9, 0), "ambiguous_kernel", &["mixed", "plain", "big"]);
}

#[test]
fn code_runs_on_later_devices_of_its_major_architecture() {
    assert!(runs_on(80, 86) && runs_on(80, 89) && runs_on(90, 90) && runs_on(120, 121));
    assert!(!runs_on(86, 80) && !runs_on(80, 90) && !runs_on(100, 110));
}

#[test]
fn a_fatbin_is_searched_for_the_device() {
    let fatbin = |bytes: &[u8]| kernel(KernelType::Fatbin, None, Some(bytes), Some("k"));
    for (major, minor) in [(9, 0), (8, 6), (10, 0)] {
        // The PTX, selected for (10, 0), needs CUDA 13.5.
        let target = Target { driver_version: 13050, ..device(major, minor) };
        let artifact = checked(&fatbin(FATBIN), &target).unwrap();
        assert_eq!(artifact.format, ImageFormat::Fatbin);
        assert_eq!(artifact.entry_kernel().symbol, "k");
        assert_eq!(artifact.entry_kernel().params.as_ref().unwrap().len(), 2);
    }
    refused(
        &fatbin(FATBIN),
        &device(7, 5),
        "wrong_architecture",
        &["sm_75", "sm_80", "compute_90"],
    );
    let artifact = checked(&fatbin(FATBIN), &emulated()).unwrap();
    assert_eq!(artifact.format, ImageFormat::Ptx);
    assert!(artifact.image.starts_with(b".version") || artifact.image.starts_with(b"\n"));
    refused(&fatbin(b"nonsense, surely"), &device(9, 0), "invalid_fatbin", &["0xba55ed50"]);
    refused(&fatbin(&FATBIN[..900]), &device(9, 0), "invalid_fatbin", &["missing"]);
}

#[test]
fn python_kernels_are_not_compiled_here() {
    let triton = kernel(KernelType::Triton, Some("x"), None, None);
    refused(&triton, &device(9, 0), "unsupported_kernel_type", &["Triton"]);
}
