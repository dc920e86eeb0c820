//! The emulator's counts are those that hardware counters of an H200 had for the same launches,
//! or differ for a reason that is written down (`research/compare_counts`).

#[path = "../../research/compare_counts/cases.rs"]
#[allow(dead_code)]
mod cases;
#[path = "../../research/compare_counts/columns.rs"]
#[allow(dead_code)]
mod columns;
#[path = "../../research/compare_counts/device.rs"]
#[allow(dead_code)]
mod device;
#[path = "../../research/compare_counts/join.rs"]
#[allow(dead_code)]
mod join;
#[path = "../../research/compare_counts/profiled.rs"]
#[allow(dead_code)]
mod profiled;
#[path = "../../research/compare_counts/reasons.rs"]
mod reasons;

use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

/// Launches whose results need not be the GPU's to the bit.
const INEXACT: &[(&str, &[&str])] = &[
    ("the order of atomics is open", &["reduce_sum", "dot_f64", "atomics"]),
    (
        "approximated functions are within their bounds, not equal",
        &["softmax", "layernorm", "nbody", "specials"],
    ),
    (
        "hardware truncates sums within a matrix instruction",
        &["wmma_columns", "wmma_tf32", "wmma_gemm", "mma_ldmatrix, 64", "mma_ldmatrix, 72"],
    ),
];

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The shared library that cargo built next to this test.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().join("libwarpgauge_emulator.so")
}

#[test]
fn counts_are_those_of_the_hardware() {
    let golden = profiled::read(&repository("tests/golden/ncu_h200.csv")).unwrap();
    let results = std::fs::read_to_string(repository("tests/golden/results_h200.txt")).unwrap();
    let cases = cases::all();
    assert_eq!((results.lines().count(), golden.len()), (cases.len(), cases.len()));
    let mut device = device::Device::open(Some(&library())).unwrap();
    let (mut runs, mut wrong) = (Vec::new(), Vec::new());
    for (case, result) in cases.iter().zip(results.lines()) {
        let (checksum, counts) = device.run(case).unwrap();
        let (label, kernel) = (case.label, case.kernel);
        runs.push(join::Run { label, kernel, counts: counts.unwrap() });
        let inexact = INEXACT.iter().any(|(_, labels)| labels.contains(&label));
        if !inexact && result != format!("{label:24} {checksum:016x}") {
            wrong.push(format!("{label}: {checksum:016x}, on the GPU {result}"));
        }
    }
    assert!(wrong.is_empty(), "other results than on the GPU:\n{}", wrong.join("\n"));
    let cells = join::cells(&runs, &golden).unwrap();
    let surprises = join::surprises(&cells);
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    assert!(join::all_equal(&cells) >= 40, "{} launches are equal", join::all_equal(&cells));
    let text = std::fs::read_to_string(repository("../../docs/emulator.md")).unwrap();
    let table = join::table(&cells);
    assert!(text.contains(&table), "docs/emulator.md has another table than:\n{table}");
}
