use super::sketch::{Sketched, Symbol, WRITABLE, image, section, symbol};
use super::*;

fn list(sections: &[Sketched], symbols: &[Symbol]) -> Result<Vec<(String, u64, bool)>, String> {
    let found = listed(&image(sections, symbols, 1))?;
    Ok(found.into_iter().map(|one| (one.name, one.bytes, one.is_constant)).collect())
}

fn refusal(sections: &[Sketched], symbols: &[Symbol]) -> String {
    list(sections, symbols).expect_err("the list cannot be certain")
}

#[test]
fn all_sections_of_variables_are_listed() {
    let found = list(
        &[
            section(".nv.global", 16392),
            section(".nv.global.init", 4),
            section(".nv.constant3", 68),
            section(".nv.shared.k", 1024),
            Sketched { name: ".nv.constant4", bytes: 40, flags: 2, align: 8 },
            Sketched { name: ".nv.constant0.k", bytes: 368, flags: 2, align: 4 },
        ],
        &[
            symbol("other", 1, 4, 4),
            symbol("stash", 1, 8, 16384),
            symbol("first", 1, 0, 3),
            symbol("initialised", 2, 0, 4),
            symbol("a", 3, 0, 4),
            symbol("b", 3, 4, 64),
            symbol("tile", 4, 0, 1024),
            symbol("vprintf", 0, 0, 0),
            symbol(".nv.reservedSmem.offset0", 0, 0, 4),
        ],
    );
    let all = [
        ("a", 4, true),
        ("b", 64, true),
        ("first", 3, false),
        ("initialised", 4, false),
        ("other", 4, false),
        ("stash", 16384, false),
    ];
    let all = all.map(|(name, bytes, constant)| (name.to_owned(), bytes, constant));
    assert_eq!(found.unwrap(), all);
    assert_eq!(list(&[], &[]).unwrap(), []);
}

#[test]
fn a_symbol_that_covers_less_than_its_section_does_not_hide_the_rest() {
    let sections = || [section(".nv.global", 16384)];
    let short = refusal(&sections(), &[symbol("stash", 1, 0, 4)]);
    assert!(short.contains("no symbol names a part of section .nv.global"), "{short}");
    refusal(&sections(), &[symbol("stash", 1, 4096, 12288)]);
    refusal(&sections(), &[symbol("a", 1, 0, 4096), symbol("b", 1, 8192, 8192)]);
    refusal(&sections(), &[]);
    list(&sections(), &[symbol("a", 1, 0, 4096), symbol("b", 1, 4096, 12288)]).unwrap();
    // A section with an unusually large declared alignment is refused too.
    let align = 1 << 20;
    let aligned = [Sketched { name: ".nv.global", bytes: 16384, flags: WRITABLE, align }];
    refusal(&aligned, &[symbol("stash", 1, 0, 4)]);
    let aligned = [Sketched { name: ".nv.global", bytes: 260, flags: WRITABLE, align: 256 }];
    list(&aligned, &[symbol("a", 1, 0, 3), symbol("b", 1, 256, 4)]).unwrap();
}

#[test]
fn what_is_not_certain_is_said() {
    let managed = Symbol { other: MANAGED, ..symbol("m", 1, 0, 4) };
    let said = refusal(&[section(".nv.global", 4)], &[managed]);
    assert!(said.contains("variable m is managed memory"), "{said}");
    let said = refusal(&[], &[symbol("malloc", 0, 0, 0)]);
    assert_eq!(said, "the image uses malloc");
    let said = refusal(&[section(".nv.hidden", 64)], &[]);
    assert_eq!(said, "section .nv.hidden is writable");
    let twice = [symbol("a", 1, 0, 4), symbol("a", 1, 4, 4)];
    assert!(refusal(&[section(".nv.global", 8)], &twice).contains("several variables"));
    assert!(
        refusal(&[section(".nv.global", 8)], &[symbol("a", 1, 4, 8)]).contains("extends beyond")
    );
    let beyond = [symbol("a", 1, 0, 8), symbol("b", 1, u64::MAX - 3, 4)];
    assert!(refusal(&[section(".nv.global", 8)], &beyond).contains("extends beyond"));
    let endless = [symbol("a", 1, 4, u64::MAX)];
    assert!(refusal(&[section(".nv.global", 8)], &endless).contains("extends beyond"));
    let literal = refusal(&[section(".nv.constant2", 8)], &[symbol("a", 1, 0, 8)]);
    assert!(literal.contains(".nv.constant2"), "{literal}");
    let common = Symbol { section: 0xfff2, ..symbol("c", 0, 4, 4) };
    assert!(refusal(&[], &[common]).contains("no section"));
    for tables in [0, 2] {
        assert!(listed(&image(&[], &[], tables)).unwrap_err().contains("symbol tables"));
    }
    assert!(listed(b"\x7fELF rubbish").unwrap_err().contains("cannot be read"));
}

#[test]
fn images_of_compilers_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/fixtures/cubin/");
    for name in ["cuda12_sm70", "cuda12_sm90", "cuda13_sm90", "cuda13_sm120", "vector_add_sm75"] {
        let bytes = std::fs::read(format!("{folder}{name}.cubin")).unwrap();
        assert_eq!(listed(&bytes), Ok(Vec::new()), "{name}");
    }
}
