use super::*;
use crate::binary::{read_cubin, read_ptx};

const PLAIN: &[u8] = include_bytes!("../../../../../tests/fixtures/cubin/k.plain.fatbin");
const ZSTD: &[u8] = include_bytes!("../../../../../tests/fixtures/cubin/k.zstd.fatbin");

#[test]
fn images_of_a_fatbin_with_and_without_compression() {
    for bytes in [PLAIN, ZSTD] {
        let entries = read_fatbin(bytes).unwrap();
        let mut kinds: Vec<_> = entries.iter().map(|e| (e.kind, e.arch)).collect();
        kinds.sort_by_key(|(kind, arch)| (*kind != FatbinKind::Ptx, *arch));
        assert_eq!(
            kinds,
            [(FatbinKind::Ptx, 90), (FatbinKind::Cubin, 80), (FatbinKind::Cubin, 90),]
        );
        for entry in &entries {
            let image = entry.image().unwrap();
            if entry.kind == FatbinKind::Ptx {
                let text = String::from_utf8(image.into_owned()).unwrap();
                assert_eq!(read_ptx(&text).unwrap().kernels[0].symbol, "k");
            } else {
                let cubin = read_cubin(&image).unwrap();
                assert_eq!((cubin.arch, cubin.kernels[0].symbol.as_str()), (entry.arch, "k"));
            }
        }
    }
}

#[test]
fn a_cut_fatbin_says_what_is_missing() {
    let cut = &PLAIN[..PLAIN.len() - 100];
    let expected = PLAIN.len() as u64;
    assert_eq!(read_fatbin(cut), Err(FatbinError::Truncated { missing: 100, expected }));
    assert!(matches!(read_fatbin(&PLAIN[..3]), Err(FatbinError::Truncated { .. })));
    assert!(matches!(read_fatbin(b"not a fatbin at all"), Err(FatbinError::Magic { .. })));
}

#[test]
fn damage_anywhere_is_survived() {
    for at in 0..PLAIN.len() {
        for value in [0x00, 0xff] {
            let mut bytes = PLAIN.to_vec();
            bytes[at] = value;
            for entry in read_fatbin(&bytes).unwrap_or_default() {
                entry.image();
            }
        }
    }
}
