use super::*;
use crate::resolve;
use warpgauge_contract::Tolerance;
use warpgauge_tensor::{InitKind, TensorInit, fill};

fn normal(dtype: Dtype, elements: usize, seed: u64) -> Vec<u8> {
    let kind = if dtype.is_float() { InitKind::Randn } else { InitKind::Randint };
    let init = TensorInit { seed: Some(seed), ..TensorInit::of_kind(kind) };
    let mut out = vec![0; elements * dtype.size()];
    fill(&init, (dtype, &[]), "x", 0, &mut out).unwrap();
    out
}

fn f32s(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

struct Case {
    seeded: bool,
    dtype: Dtype,
    expected: Vec<Vec<u8>>,
    inputs: Vec<(&'static str, Vec<Vec<u8>>)>,
    tolerance: ResolvedTolerance,
}

fn case(dtype: Dtype, expected: Vec<Vec<u8>>) -> Case {
    let tolerance = resolve(None, dtype, &expected[0]);
    Case { seeded: true, dtype, expected, inputs: Vec::new(), tolerance }
}

fn lint(case: &Case) -> Vec<Weakness> {
    let shape = [(case.expected[0].len() / case.dtype.size()) as u64];
    let seeds: Vec<&[u8]> = case.expected.iter().map(Vec::as_slice).collect();
    let inputs: Vec<(&str, Vec<&[u8]>)> = case
        .inputs
        .iter()
        .map(|(name, seeds)| (*name, seeds.iter().map(Vec::as_slice).collect()))
        .collect();
    let contents = |name, seeds| ArgumentContents { name, dtype: case.dtype, shape: &shape, seeds };
    let inputs: Vec<_> = inputs.iter().map(|(name, seeds)| contents(*name, seeds)).collect();
    lint_output(&OutputFacts {
        expected: contents("y", &seeds),
        tolerance: &case.tolerance,
        seeded: case.seeded,
        inputs: &inputs,
    })
}

fn codes(case: &Case) -> Vec<WeaknessCode> {
    lint(case).iter().map(|weakness| weakness.code).collect()
}

use WeaknessCode::*;

#[test]
fn an_expectation_that_varies_is_not_weak() {
    for dtype in Dtype::ALL {
        // One type in more than one piece.
        let elements = if dtype == Dtype::Int32 { 70_000 } else { 4000 };
        let mut strong = case(dtype, (0..3).map(|seed| normal(dtype, elements, seed)).collect());
        strong.inputs = vec![("x", (7..10).map(|seed| normal(dtype, elements, seed)).collect())];
        assert_eq!(codes(&strong), [], "{dtype}");
    }
}

#[test]
fn zeros_and_constants() {
    for dtype in Dtype::ALL {
        let zeros = vec![0; 5000 * dtype.size()];
        assert_eq!(codes(&case(dtype, vec![zeros.clone()])), [ExpectedConstant, ZerosPass]);
        let two_seeds = case(dtype, vec![zeros.clone(), zeros]);
        assert_eq!(codes(&two_seeds), [ExpectedConstant, ZerosPass, SeedInvariant], "{dtype}");
    }
    let same = case(Dtype::Float32, vec![f32s([2.5; 100])]);
    assert_eq!(codes(&same), [ExpectedConstant]);
    assert!(lint(&same)[0].message.contains("2.5"), "{}", lint(&same)[0].message);
    // Constant for each seed, with another constant.
    let broadcast = case(Dtype::Float32, vec![f32s([2.5; 100]), f32s([3.5; 100])]);
    assert_eq!(codes(&broadcast), []);
    // Beyond 2^53, where binary64 cannot hold the constant.
    let big: Vec<u8> = [(1i64 << 60) + 1; 9].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(codes(&case(Dtype::Int64, vec![big])), [ExpectedConstant]);
}

#[test]
fn one_element_is_no_constant() {
    assert_eq!(codes(&case(Dtype::Float32, vec![f32s([2.5])])), []);
    assert_eq!(codes(&case(Dtype::Float32, vec![f32s([2.5]), f32s([2.6])])), []);
    let same = case(Dtype::Float32, vec![f32s([2.5]), f32s([2.5])]);
    assert_eq!(codes(&same), [ExpectedConstant, SeedInvariant]);
}

#[test]
fn rounding_does_not_hide_a_constant() {
    let nearly = f32s((0..1000).map(|i| 1.0 + (i % 3) as f32 * f32::EPSILON));
    assert_eq!(codes(&case(Dtype::Float32, vec![nearly.clone()])), [ExpectedConstant]);
    // Under exact comparison they differ.
    let mut exact = case(Dtype::Float32, vec![nearly]);
    (exact.tolerance.atol, exact.tolerance.rtol) = (0.0, 0.0);
    assert_eq!(codes(&exact), []);
}

#[test]
fn tiny_values_pass_as_zeros() {
    let tiny = f32s((0..1000).map(|i| (i as f32 - 500.0) * 1e-9));
    let mut tiny = case(Dtype::Float32, vec![tiny]);
    assert_eq!(codes(&tiny), [], "the tolerance follows the values");
    (tiny.tolerance.atol, tiny.tolerance.rtol) = (1e-5, 1e-4);
    assert_eq!(codes(&tiny), [ZerosPass, ToleranceTooLoose]);
}

#[test]
fn a_tolerance_as_wide_as_the_values() {
    let given = |atol, rtol, ratio| {
        let tolerance = Tolerance {
            atol: Some(atol),
            rtol: Some(rtol),
            required_matched_ratio: Some(ratio),
            allow_non_finite: None,
        };
        let tolerance = resolve(Some(&tolerance), Dtype::Float32, &[]);
        Case { tolerance, ..case(Dtype::Float32, vec![normal(Dtype::Float32, 5000, 1)]) }
    };
    assert_eq!(codes(&given(1e-2, 1e-2, 1.0)), []);
    assert_eq!(codes(&given(1.1, 0.0, 1.0)), [ToleranceTooLoose]);
    assert_eq!(codes(&given(10.0, 0.0, 1.0)), [ZerosPass, ToleranceTooLoose]);
    assert_eq!(codes(&given(0.0, 1.0, 1.0)), [ZerosPass, ToleranceTooLoose]);
    // A quarter of a normal sample lies within 0.32 of 0.
    assert_eq!(codes(&given(0.32, 0.0, 0.2)), [ZerosPass, ToleranceTooLoose]);
    assert_eq!(codes(&given(0.32, 0.0, 0.5)), []);
}

/// Most of a sparse output is zero; an allowance for mismatches lets zeros pass.
#[test]
fn an_allowance_for_mismatches() {
    let mostly = f32s((0..10_000).map(|i| if i % 100 == 7 { 3.0 } else { 5.0 }));
    let mut sparse = case(Dtype::Float32, vec![mostly]);
    assert_eq!(codes(&sparse), []);
    sparse.tolerance.required_matched_ratio = 0.98;
    assert_eq!(codes(&sparse), [ExpectedConstant]);
    assert!(lint(&sparse)[0].message.contains(" 5,"), "{}", lint(&sparse)[0].message);
}

#[test]
fn results_that_do_not_depend_on_the_seed() {
    let content = normal(Dtype::Float32, 1000, 1);
    let twice = case(Dtype::Float32, vec![content.clone(), content.clone()]);
    assert_eq!(codes(&twice), [SeedInvariant]);
    let third = normal(Dtype::Float32, 1000, 2);
    assert_eq!(codes(&case(Dtype::Float32, vec![content.clone(), content.clone(), third])), []);
    // NaN equals itself here, whatever the tolerance says.
    let nan = f32s([f32::NAN, 1.0, 2.0]);
    assert_eq!(codes(&case(Dtype::Float32, vec![nan.clone(), nan])), [SeedInvariant]);
}

#[test]
fn contracts_without_a_seed() {
    let content = normal(Dtype::Float32, 1000, 1);
    let unseeded = |expected| Case { seeded: false, ..case(Dtype::Float32, expected) };
    assert_eq!(codes(&unseeded(vec![content.clone()])), [SeedInvariant]);
    assert_eq!(codes(&unseeded(vec![f32s([7.0])])), [ExpectedConstant, SeedInvariant]);
    assert_eq!(codes(&case(Dtype::Float32, vec![content])), []);
}

#[test]
fn copies_of_inputs() {
    let x: Vec<_> = (0..2).map(|seed| normal(Dtype::Float32, 1000, seed)).collect();
    let mut copy = case(Dtype::Float32, x.clone());
    copy.inputs = vec![("other", x.iter().rev().cloned().collect()), ("x", x.clone())];
    assert_eq!(codes(&copy), [InputPasses]);
    assert!(lint(&copy)[0].message.contains("a copy of `x`"), "{}", lint(&copy)[0].message);
    copy.inputs = vec![("y", x.clone())];
    assert!(lint(&copy)[0].message.contains("leaving it unchanged"));
    // The copy is right for one of two seeds.
    copy.inputs = vec![("x", vec![x[0].clone(), x[0].clone()])];
    assert_eq!(codes(&copy), []);
    copy.inputs = vec![("short", x.iter().map(|x| x[4..].to_vec()).collect())];
    assert_eq!(codes(&copy), []);
}

#[test]
fn not_finite_expectations() {
    let nans = vec![f32s([f32::NAN; 64])];
    let mut all = case(Dtype::Float32, nans);
    assert_eq!(codes(&all), [ExpectedConstant]);
    all.tolerance.allow_non_finite = false;
    assert_eq!(codes(&all), []);
    let mixed = f32s((0..64).map(|i| if i % 2 == 0 { f32::INFINITY } else { i as f32 }));
    let mut mixed = case(Dtype::Float32, vec![mixed]);
    mixed.tolerance.allow_non_finite = true;
    assert_eq!(codes(&mixed), []);
}

#[test]
fn empty_contents_and_names_on_the_wire() {
    assert_eq!(codes(&case(Dtype::Float32, vec![Vec::new()])), []);
    let missing = no_expectation("y");
    assert_eq!(serde_json::to_value(missing.code).unwrap(), "no_expectation");
    assert!(missing.message.contains("expected.y"));
}

#[test]
fn half_precision_passes_where_the_measured_noise_is_wider() {
    let mut weak = case(Dtype::Float32, vec![normal(Dtype::Float32, 4000, 1)]);
    weak.tolerance.basis = ToleranceBasis::ReferenceNoise;
    assert_eq!(codes(&weak), []);
    weak.tolerance.rtol = 1e-3;
    assert_eq!(codes(&weak), [HalfPasses]);
    let few = case(Dtype::Float32, vec![normal(Dtype::Float32, 31, 1)]);
    let few = Case { tolerance: weak.tolerance, ..few };
    assert_eq!(codes(&few), []);
    // The reference rounds as much as float16 does, or the caller allows it.
    for basis in [ToleranceBasis::InnerRounding, ToleranceBasis::Given] {
        weak.tolerance.basis = basis;
        assert_eq!(codes(&weak), []);
    }
    // Integers of this size are exact in float16.
    let whole = f32s((0..2000).map(|index| index as f32));
    let mut whole = case(Dtype::Float32, vec![whole]);
    whole.tolerance =
        ResolvedTolerance { basis: ToleranceBasis::ReferenceNoise, ..whole.tolerance };
    whole.tolerance.rtol = 1e-3;
    assert_eq!(codes(&whole), []);
}
