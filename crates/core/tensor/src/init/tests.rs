use std::collections::BTreeMap;

use super::*;
use crate::philox::fnv1a64;
use crate::{ColumnRange, InitKind};

/// Golden values written by numpy; see `tests/fixtures/seeded/make_golden.py`.
const GOLDEN: &str = include_str!("../../../../../tests/fixtures/seeded/golden.txt");
const GOLDEN_ELEMENTS: usize = 100_000;

fn dtype_named(name: &str) -> Dtype {
    Dtype::ALL.into_iter().find(|dtype| dtype.name() == name).unwrap()
}

fn init(kind: InitKind) -> TensorInit {
    TensorInit { seed: Some(11), ..TensorInit::of_kind(kind) }
}

#[test]
fn every_dtype_and_kind_equals_numpy() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for line in GOLDEN.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [dtype_name, name, first, shape, json, head, hash] = fields[..] else {
            panic!("{line}")
        };
        let shape: Vec<u64> = shape.split(',').map(|extent| extent.parse().unwrap()).collect();
        let dtype = dtype_named(dtype_name);
        let init: TensorInit = serde_json::from_str(json).unwrap();
        let first: u64 = first.parse().unwrap();
        let left = shape.iter().product::<u64>() - first;
        let count = GOLDEN_ELEMENTS.min(left as usize);
        let mut out = vec![0; count * dtype.size()];
        fill_parallel(&init, (dtype, &shape), name, first, &mut out).unwrap();
        let got: String =
            out.iter().take(64 * dtype.size()).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(got, head, "first elements of {dtype} {json}");
        assert_eq!(format!("{:016x}", fnv1a64(&out)), hash, "all elements of {dtype} {json}");
        *seen.entry(dtype_name).or_default() += 1;
    }
    assert_eq!(seen.len(), Dtype::ALL.len());
    assert!(seen.values().all(|&cases| cases >= 8), "{seen:?}");
}

#[test]
fn any_range_can_be_computed_alone() {
    for dtype in [Dtype::Float32, Dtype::Int8, Dtype::Float64, Dtype::Complex64, Dtype::Int4x2] {
        let size = dtype.size();
        let mut whole = vec![0; 100 * size];
        fill(&init(InitKind::Randn), (dtype, &[1 << 20]), "a", 0, &mut whole).unwrap();
        for first in 0..12 {
            for count in [1, 2, 3, 4, 5, 9] {
                let mut part = vec![0; count * size];
                fill(&init(InitKind::Randn), (dtype, &[1 << 20]), "a", first as u64, &mut part)
                    .unwrap();
                assert_eq!(part, whole[first * size..(first + count) * size], "{first}+{count}");
            }
        }
    }
}

#[test]
fn parallel_equals_sequential() {
    let mut a = vec![0; 4 * 200_003];
    let mut b = a.clone();
    fill(&init(InitKind::Uniform), (Dtype::Float32, &[1 << 20]), "a", 7, &mut a).unwrap();
    fill_parallel(&init(InitKind::Uniform), (Dtype::Float32, &[1 << 20]), "a", 7, &mut b).unwrap();
    assert!(a == b);
}

#[test]
fn normals_are_normal() {
    let mut out = vec![0; 8 * 100_000];
    fill(&init(InitKind::Randn), (Dtype::Float64, &[1 << 20]), "a", 0, &mut out).unwrap();
    let values: Vec<f64> = out.chunks_exact(8).map(f64::read).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let within = values.iter().filter(|x| x.abs() < 1.959_964).count() as f64 / n;
    assert!(mean.abs() < 0.015, "mean {mean}");
    assert!((variance - 1.0).abs() < 0.02, "variance {variance}");
    assert!((within - 0.95).abs() < 0.003, "{within} within 1.96");
}

#[test]
fn integers_stay_in_range_and_reach_both_ends() {
    let mut spec = init(InitKind::Randint);
    (spec.low, spec.high) = (Some(-3.0), Some(4.0));
    let mut out = vec![0; 10_000];
    fill(&spec, (Dtype::Int8, &[1 << 20]), "a", 0, &mut out).unwrap();
    let values: Vec<i8> = out.iter().map(|&byte| byte as i8).collect();
    assert_eq!(values.iter().min(), Some(&-3));
    assert_eq!(values.iter().max(), Some(&3));
}

#[test]
fn bad_parameters_are_named() {
    let with = |kind, change: fn(&mut TensorInit)| {
        let mut spec = init(kind);
        change(&mut spec);
        spec
    };
    let range = |low, high| ColumnRange { low, high };
    let cases = [
        (with(InitKind::Full, |_| ()), Dtype::Float32, "fill_value"),
        (with(InitKind::Full, |i| i.fill_value = Some(300.0)), Dtype::Uint8, "fill_value"),
        (with(InitKind::Full, |i| i.fill_value = Some(0.5)), Dtype::Int32, "fill_value"),
        (with(InitKind::Full, |i| i.fill_value = Some(2.0)), Dtype::Bool, "fill_value"),
        (with(InitKind::Full, |i| i.fill_value = Some(2f64.powi(64))), Dtype::Uint64, "fill_value"),
        (with(InitKind::Randn, |i| i.std = Some(-1.0)), Dtype::Float16, "std"),
        (with(InitKind::Randn, |i| i.mean = Some(f64::NAN)), Dtype::Float16, "mean"),
        (with(InitKind::Uniform, |i| i.low = Some(1.0)), Dtype::Float32, "low"),
        (with(InitKind::Arange, |i| i.step = Some(0.0)), Dtype::Float32, "step"),
        (with(InitKind::Randint, |_| ()), Dtype::Float32, "kind"),
        (with(InitKind::Randint, |i| i.high = Some(257.0)), Dtype::Uint8, "high"),
        (with(InitKind::Randint, |i| i.low = Some(-1.0)), Dtype::Uint8, "low"),
        (with(InitKind::Randint, |i| i.high = Some(1.5)), Dtype::Uint8, "high"),
        (with(InitKind::Permutation, |i| i.high = Some(199.0)), Dtype::Int32, "high"),
        (with(InitKind::Permutation, |_| ()), Dtype::Int8, "high"),
        (with(InitKind::Permutation, |_| ()), Dtype::Float32, "kind"),
        (with(InitKind::Sorted, |i| i.unique = true), Dtype::Int32, "high"),
        (with(InitKind::Sorted, |i| i.unique = true), Dtype::Float32, "unique"),
        (with(InitKind::Offsets, |_| ()), Dtype::Int32, "high"),
        (with(InitKind::Offsets, |i| i.high = Some(-1.0)), Dtype::Int32, "high"),
        (with(InitKind::Offsets, |i| i.high = Some(128.0)), Dtype::Int8, "high"),
        (with(InitKind::Lengths, |_| ()), Dtype::Int32, "of"),
        (with(InitKind::Segments, |_| ()), Dtype::Int32, "of"),
        (with(InitKind::Choice, |_| ()), Dtype::Int32, "values"),
        (with(InitKind::Permutation, |_| ()), Dtype::Float4E2m1x2, "kind"),
        (with(InitKind::Permutation, |_| ()), Dtype::Uint4x2, "high"),
        (with(InitKind::Uniform, |i| i.high = Some(6.5)), Dtype::Float4E2m1x2, "high"),
        (with(InitKind::Full, |i| i.fill_value = Some(-7.0)), Dtype::Float4E2m1x2, "fill_value"),
        (with(InitKind::Choice, |i| i.values = vec![1.0, 8.0]), Dtype::Float4E2m1x2, "values"),
        (with(InitKind::Randint, |i| i.high = Some(9.0)), Dtype::Int4x2, "high"),
        (with(InitKind::Full, |i| i.fill_value = Some(-1.0)), Dtype::Uint4x2, "fill_value"),
        (with(InitKind::Zeros, |_| ()), Dtype::Float8E8m0, "kind"),
        (with(InitKind::Sorted, |_| ()), Dtype::Float8E8m0, "kind"),
        (with(InitKind::Full, |i| i.fill_value = Some(3.0)), Dtype::Float8E8m0, "fill_value"),
        (with(InitKind::Full, |i| i.fill_value = Some(-2.0)), Dtype::Float8E8m0, "fill_value"),
        (with(InitKind::Choice, |i| i.values = vec![1.0, 0.0]), Dtype::Float8E8m0, "values"),
        (with(InitKind::Uniform, |i| i.low = Some(0.0)), Dtype::Float8E8m0, "low"),
        (with(InitKind::Uniform, |i| i.high = Some(2f64.powi(128))), Dtype::Float8E8m0, "high"),
        (with(InitKind::Randn, |i| i.std = Some(-1.0)), Dtype::Float8E8m0, "std"),
        (with(InitKind::Randint, |_| ()), Dtype::Complex64, "kind"),
        (with(InitKind::Arange, |i| i.step = Some(0.0)), Dtype::Complex128, "step"),
        (with(InitKind::Choice, |i| i.values = vec![0.5]), Dtype::Int32, "values"),
        (with(InitKind::Choice, |i| i.values = vec![0.0; 33]), Dtype::Int32, "values"),
        (with(InitKind::Randint, |i| i.values = vec![0.0]), Dtype::Int32, "values"),
        (with(InitKind::Randn, |i| i.of = Some("x".to_owned())), Dtype::Int32, "of"),
        (with(InitKind::Randn, |i| i.unique = true), Dtype::Int32, "unique"),
        (
            TensorInit { columns: vec![range(0.0, 1.0)], ..init(InitKind::Uniform) },
            Dtype::Float32,
            "columns",
        ),
        (
            TensorInit {
                columns: vec![range(0.0, 1.0), range(1.0, 1.0)],
                ..init(InitKind::Uniform)
            },
            Dtype::Float32,
            "columns",
        ),
        (
            TensorInit {
                columns: vec![range(0.0, 1.0), range(0.0, 1.5)],
                ..init(InitKind::Randint)
            },
            Dtype::Int32,
            "columns",
        ),
    ];
    for (spec, dtype, field) in cases {
        let error = ElementGenerator::new(&spec, dtype, &[100, 2]).unwrap_err();
        assert_eq!(error.field, field, "{spec:?} of {dtype}: {error}");
        assert!(fill(&spec, (dtype, &[100, 2]), "a", 0, &mut [0; 8]).is_err());
    }
}

#[test]
fn the_documentation_links_to_the_program_that_made_the_golden_bytes() {
    let page = include_str!("../../../../../docs/seeded-data.md");
    assert!(page.contains("](seeded_data.py)"));
    assert!(include_str!("../../../../../docs/seeded_data.py").contains("seeded-data.md"));
}
