use super::*;

const PAGE: &str = "\"Kernel Name\",\"axpy(float *)\"\n\
                    \"#\",\"Address\",\"Source\",\"# Samples\",\"Avg. Threads\"\n\
                    \"0\",\"0x7f00\",\"MOV R1, c[0x0][0x28] \",\"1,203\",\"32\"\n\
                    \"1\",\"0x7f10\",\"EXIT \",\"0\",\"\"\n\
                    \"Kernel Name\",\"b\"\n\
                    \"Address\",\"Source\",\"# Samples\"\n\
                    \"0x1\",\"RET\",\"7\"\n";

#[test]
fn counters_of_each_line() {
    assert!(looks_like_source(PAGE) && !super::super::looks_like_page(PAGE));
    let page = parse_source(PAGE).unwrap();
    let names: Vec<&str> = page.kernels.iter().map(|kernel| kernel.kernel.as_str()).collect();
    assert_eq!(names, ["axpy(float *)", "b"]);
    let line = &page.kernels[0].lines[0];
    assert_eq!((line.number, line.address.as_deref()), (Some(0), Some("0x7f00")));
    assert_eq!(line.source, "MOV R1, c[0x0][0x28]");
    assert_eq!(line.counters["# Samples"], 1203.0);
    assert!(!page.kernels[0].lines[1].counters.contains_key("Avg. Threads"), "it has no number");
    assert_eq!(page.kernels[1].lines[0].counters, BTreeMap::from([("# Samples".to_owned(), 7.0)]));
    assert!(page.notes[0].contains("--page raw"));
}

#[test]
fn rows_that_are_cut_are_left_out() {
    let cut = &PAGE[..PAGE.len() - 6];
    let page = parse_source(cut).unwrap();
    assert_eq!(page.kernels[1].lines, []);
    assert_eq!(page.notes[1], "1 lines are not complete rows and are left out");
    assert!(!looks_like_source("\"Kernel Name\",\"k\"\nhello\n"));
}

/// Page of two kernels by Nsight Compute 2025.3 on an H200.
const H200: &str =
    include_str!("../../../../../../tests/fixtures/profile/ncu/2025.3.1-h200-source_sass.csv");

#[test]
fn the_page_of_an_h200_has_each_kernel_once() {
    let page = parse_source(H200).unwrap();
    let found: Vec<_> =
        page.kernels.iter().map(|kernel| (&*kernel.kernel, kernel.lines.len())).collect();
    assert_eq!(found, [("transpose", 64), ("strided", 144)]);
    assert_eq!(page.notes.len(), 1, "{:?}", page.notes);
    let load = &page.kernels[0].lines[0x25];
    assert_eq!(load.counters["L1 Wavefronts Shared Excessive"], 1_015_808.0);
}
