use super::*;

const MODULE: &str = r#"
// Generated
.version 8.8
.target sm_90a, debug
.address_size 64
.extern .shared .align 16 .b8 smem[];
.visible .entry _Z4vaddPKf(
	.param .u64 .ptr .global .align 16 a,
	.param .f64 s, /* .param .u32 ghost */
	.param .u8 flag,
	.param .align 4 .b8 p[12],
	.param .u32 n
)
.maxntid 128, 1, 1
{
	.reg .pred %p<2>;
	ret;
}
.entry bare { ret; }
.weak .entry none() { ret; }
"#;

#[test]
fn a_module() {
    let ptx = read_ptx(MODULE).unwrap();
    assert_eq!((ptx.version, ptx.target.as_str()), ((8, 8), "sm_90a"));
    assert_eq!(ptx.arch(), Some((90, "a")));
    let names: Vec<&str> = ptx.kernels.iter().map(|k| k.symbol.as_str()).collect();
    assert_eq!(names, ["_Z4vaddPKf", "bare", "none"]);
    let places: Vec<_> = ptx.kernels[0].params.iter().map(|p| (p.offset, p.bytes)).collect();
    assert_eq!(places, [(0, 8), (8, 8), (16, 1), (20, 12), (32, 4)]);
    let types: Vec<_> = ptx.kernels[0].params.iter().map(|p| p.ctype.clone()).collect();
    let pointer = CType::Pointer { pointee: None, is_const: false };
    let block = CType::Aggregate(String::new());
    assert_eq!(types, [pointer, CType::F64, CType::Integer, block, CType::Integer]);
}

#[test]
fn what_is_no_module() {
    assert_eq!(read_ptx("hello"), Err(PtxError::NoVersion));
    assert_eq!(read_ptx(".version 8.0"), Err(PtxError::NoTarget));
    let bad = Err(PtxError::BadVersion { found: "x".into() });
    assert_eq!(read_ptx(".version x\n.target sm_70"), bad);
    let cut = ".version 8.0\n.target sm_70\n.entry k(.param .u64 a, .par";
    assert!(matches!(read_ptx(cut), Err(PtxError::Params { .. })), "{:?}", read_ptx(cut));
    let huge = ".version 8.0 .target sm_70 .entry k(.param .b8 a[4294967295], .param .u64 b)";
    assert!(matches!(read_ptx(huge), Err(PtxError::Params { .. })));
}

#[test]
fn versions_belong_to_releases() {
    for (ptx, cuda) in [
        ((6, 5), 10020),
        ((7, 0), 11000),
        ((7, 8), 11080),
        ((8, 0), 12000),
        ((8, 5), 12050),
        ((8, 6), 12070),
        ((8, 8), 12090),
        ((9, 0), 13000),
        ((9, 5), 13050),
    ] {
        assert_eq!(cuda_version_of(ptx), cuda, "{ptx:?}");
    }
    assert_eq!(cuda_version_of((u32::MAX, u32::MAX)), i32::MAX);
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(
        text in "(\\.(version 8\\.0|target sm_90|entry|param|align| u64)|[\\[\\](),{}]| [0-9]| k){0,40}",
    ) {
        let _ = read_ptx(&text);
    }
}
