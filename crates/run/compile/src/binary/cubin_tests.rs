use super::*;

/// Name, image, architecture, and the registers of each kernel.
type Image = (&'static str, &'static [u8], u32, [(&'static str, u32); 3]);

/// The images of tests/fixtures/cubin/kernels.cu, and the registers ptxas reported for its kernels.
const IMAGES: [Image; 4] = [
    (
        "CUDA 13, sm_90",
        include_bytes!("../../../../../tests/fixtures/cubin/cuda13_sm90.cubin"),
        90,
        [("mixed", 32), ("_Z5plainPfi", 10), ("big", 8)],
    ),
    (
        "CUDA 13, sm_120",
        include_bytes!("../../../../../tests/fixtures/cubin/cuda13_sm120.cubin"),
        120,
        [("mixed", 40), ("_Z5plainPfi", 10), ("big", 8)],
    ),
    (
        "CUDA 12, sm_90",
        include_bytes!("../../../../../tests/fixtures/cubin/cuda12_sm90.cubin"),
        90,
        [("mixed", 56), ("_Z5plainPfi", 10), ("big", 8)],
    ),
    (
        "CUDA 12, sm_70",
        include_bytes!("../../../../../tests/fixtures/cubin/cuda12_sm70.cubin"),
        70,
        [("mixed", 56), ("_Z5plainPfi", 8), ("big", 8)],
    ),
];

fn places(kernel: &RawKernel) -> Vec<(u32, u32)> {
    kernel.params.as_ref().unwrap().iter().map(|p| (p.offset, p.bytes)).collect()
}

#[test]
fn architecture_kernels_parameters_and_resources() {
    for (name, bytes, arch, registers) in IMAGES {
        let cubin = read_cubin(bytes).unwrap();
        assert_eq!((cubin.arch, cubin.kernels.len()), (arch, 3), "{name}");
        for (symbol, registers) in registers {
            let kernel = cubin.kernels.iter().find(|k| k.symbol == symbol).unwrap();
            assert_eq!(kernel.resources.registers, registers, "{name} {symbol}");
            let expected: &[(u32, u32)] = match symbol {
                "mixed" => &[(0, 8), (8, 8), (16, 4), (24, 8), (32, 1), (36, 8), (48, 8)],
                "big" => &[(0, 1), (4, 12000), (12008, 8)],
                _ => &[(0, 8), (8, 4)],
            };
            assert_eq!(places(kernel), expected, "{name} {symbol}");
            let shared = if symbol == "mixed" { 1200 } else { 0 };
            assert_eq!(kernel.resources.static_shared_bytes, shared, "{name} {symbol}");
            let threads = if symbol == "mixed" { 128 } else { 1024 };
            assert_eq!(kernel.resources.max_threads_per_block, threads, "{name} {symbol}");
        }
    }
}

#[test]
fn the_stack_frame_is_the_assemblers() {
    let frame = |bytes: &[u8]| {
        let cubin = read_cubin(bytes).unwrap();
        cubin.kernels.iter().find(|k| k.symbol == "mixed").unwrap().resources
    };
    assert_eq!(frame(IMAGES[0].1).stack_bytes, Some(200));
    assert_eq!(frame(IMAGES[2].1).stack_bytes, Some(0));
    assert!(frame(IMAGES[0].1).local_bytes >= 200);
    // The value that ptxas prints for sm_70: 408 bytes cmem[0].
    assert_eq!(frame(IMAGES[3].1).const_bytes, 408);
}

#[test]
fn a_cut_cubin_says_how_much_is_missing() {
    let whole = IMAGES[0].1;
    let length = whole.len() as u64;
    for cut in [1, 100, whole.len() / 2] {
        let error = read_cubin(&whole[..whole.len() - cut]).unwrap_err();
        assert_eq!(error, CubinError::Truncated { missing: cut as u64, expected: length });
    }
    assert!(matches!(read_cubin(&whole[..20]), Err(CubinError::Truncated { .. })));
}

#[test]
fn what_is_no_cubin() {
    let not_elf = |bytes: &[u8]| matches!(read_cubin(bytes), Err(CubinError::NotElf { .. }));
    assert!(not_elf(b"") && not_elf(b"ab") && not_elf(b".version 8.0") && not_elf(&[0; 100]));
    let mut host = IMAGES[0].1.to_vec();
    host[18..20].copy_from_slice(&62u16.to_le_bytes());
    assert_eq!(read_cubin(&host), Err(CubinError::NotCuda { machine: 62 }));
}

#[test]
fn damage_in_any_header_or_table_is_survived() {
    let whole = IMAGES[0].1;
    let tables = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    let places = (0..64).chain(tables..whole.len()).chain((64..tables).step_by(37));
    for at in places {
        for value in [0x00, 0x7f, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[at] = value;
            let _ = read_cubin(&bytes);
        }
    }
}

#[test]
fn the_largest_block_follows_from_registers_and_bound() {
    for (registers, bound, expected) in [
        (0, None, 1024),
        (64, None, 1024),
        (65, None, 896),
        (128, None, 512),
        (255, None, 256),
        (32, Some(128), 128),
        (255, Some(1024), 256),
        (32, Some(0), 1024),
    ] {
        assert_eq!(max_threads_per_block(registers, bound), expected, "{registers} {bound:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_survived(mut bytes: Vec<u8>) {
        let _ = read_cubin(&bytes);
        bytes.splice(0..0, b"\x7fELF\x02\x01\x01\x41".iter().copied());
        let _ = read_cubin(&bytes);
    }
}
