use super::super::facts::{Timed, Values};
use super::super::testing::{emulated_h200, h200, metrics};
use super::*;

/// Values that Nsight Compute 2025.3.1 reported for `vector_add` over 16 M floats on an H200.
const VECTOR_ADD: [(&str, f64); 18] = [
    ("duration", 58.912e-6),
    ("sm_clock", 1.964_383_188_9e9),
    ("flop_count_single", 16_777_216.0),
    ("flop_count_double", 0.0),
    ("l1_bytes", 1_572_864.0 * 128.0),
    ("l2_bytes", 2_286_556_762_629.0 * 58.912e-6),
    ("dram_bytes", 134_227_968.0 + 54_883_328.0),
    ("peak_single", 33_792.0),
    ("peak_double", 16_896.0),
    ("peak_l1", 16_896.0),
    ("peak_l2", 6016.0),
    ("peak_dram", 1504.0),
    ("l1_clock", 1.964_383_188_9e9),
    ("l2_clock", 1.707_258_283_5e9),
    ("dram_clock", 3.197_220_713_4e9),
    ("dram_throughput", 66.76),
    ("l1_throughput", 18.74),
    ("sm_throughput", 41.25),
];

fn timed() -> Timed {
    Timed {
        median_s: Some(52e-6),
        clock_hz: Some(1.97e9),
        empty_launch_s: Some(2.66e-6),
        cold: true,
    }
}

fn of(values: &[(&str, f64)], timed: Timed) -> Option<Roofline> {
    let device = h200();
    let facts = Facts { device: &device, resources: None, inputs: &[], timed };
    roofline(Values::new(&metrics(values)), &facts)
}

fn level(roofline: &Roofline, level: Level) -> &MemoryRoof {
    roofline.memory.iter().find(|roof| roof.level == level).unwrap()
}

fn precision(roofline: &Roofline, precision: Precision) -> &ComputeRoof {
    roofline.compute.iter().find(|roof| roof.precision == precision).unwrap()
}

#[track_caller]
fn near(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    assert!((value / expected - 1.0).abs() < 0.01, "{value} is not {expected}");
}

/// Percentages of the peaks are equal to those in the profiler's own sections.
#[test]
fn a_streaming_kernel_stands_where_the_profiler_puts_it() {
    let found = of(&VECTOR_ADD, timed()).unwrap();
    assert_eq!(found.bound_by, Some(BoundBy::Dram), "{}", found.bound_reason);
    near(level(&found, Level::Dram).fraction, 0.6676);
    near(level(&found, Level::L2).fraction, 0.2226);
    near(level(&found, Level::L1).fraction, 0.1030);
    near(level(&found, Level::Dram).rate, 3.21e12);
    let single = precision(&found, Precision::Fp32);
    near(single.rate, 16_777_216.0 / 58.912e-6);
    near(Some(single.ceiling.as_ref().unwrap().per_second), 66.4e12);
    // A precision that the kernel does not use still has a ceiling.
    assert!(precision(&found, Precision::Fp64).ceiling.is_some());
    assert_eq!(found.points.len(), 3, "{:?}", found.points);
    let dram = found.points.iter().find(|point| point.level == Level::Dram).unwrap();
    near(Some(dram.intensity), 16_777_216.0 / 189_111_296.0);
    // Below the ridge, memory determines the attainable rate, so both fractions are equal.
    near(dram.fraction, 0.6676);
    let time = found.time.unwrap();
    assert_eq!((time.basis, time.seconds), (TimeBasis::Profiled, 58.912e-6));
    assert_eq!(time.unprofiled_seconds, Some(52e-6));
}

#[test]
fn ceilings_from_the_devices_facts_say_so() {
    let values = [("flop_count_single", 1e9), ("dram_bytes", 1e8), ("duration", 1e-4)];
    let found = of(&values, Timed::default()).unwrap();
    let single = precision(&found, Precision::Fp32).ceiling.clone().unwrap();
    assert_eq!(single.source, CeilingSource::DeviceFacts);
    near(Some(single.per_second), 132.0 * 256.0 * 1.98e9);
    assert!(single.derivation.contains("peak clock"), "{}", single.derivation);
    near(Some(level(&found, Level::Dram).ceiling.as_ref().unwrap().per_second), 4.917e12);
    assert!(level(&found, Level::L1).ceiling.is_some() && level(&found, Level::L1).bytes.is_none());
    assert!(found.memory.iter().all(|roof| roof.level != Level::L2), "nothing is known of L2");
    // The use of half of the units is unknown, so any of them may be busy.
    assert_eq!(found.bound_by, None, "{}", found.bound_reason);
}

#[test]
fn the_busiest_unit_limits_and_else_latency_does() {
    let with = |changes: &[(&'static str, f64)]| {
        let mut values = VECTOR_ADD.to_vec();
        for change in changes {
            values.retain(|(id, _)| *id != change.0);
            values.push(*change);
        }
        of(&values, timed()).unwrap().bound_by
    };
    assert_eq!(with(&[("dram_throughput", 45.0), ("dram_bytes", 1e8)]), Some(BoundBy::Latency));
    // The values are those of `matmul_tiled` in the same capture: L1 at 94 %, FMA at 11 %.
    let busy_l1 = [("l1_throughput", 94.28), ("sm_active_cycles", 98.0)];
    assert_eq!(with(&busy_l1), Some(BoundBy::L1));
    assert_eq!(with(&[("fma_pipe_active", 91.0)]), Some(BoundBy::Compute));
    assert_eq!(with(&[("l2_bytes", 0.8 * 6016.0 * 1.707e9 * 58.9e-6)]), Some(BoundBy::L2));
    let short = Timed { median_s: Some(3e-6), ..timed() };
    assert_eq!(of(&VECTOR_ADD, short).unwrap().bound_by, Some(BoundBy::Launch));
}

#[test]
fn the_emulated_device_has_intensities_and_no_rates() {
    let device = emulated_h200();
    let facts = Facts { device: &device, resources: None, inputs: &[], timed: timed() };
    let values = metrics(&[
        ("flop_count_single", 1e6),
        ("l2_sectors_global", 1e5),
        ("ideal_read_bytes", 8e5),
        ("ideal_write_bytes", 2e5),
    ]);
    let found = roofline(Values::new(&values), &facts).unwrap();
    assert_eq!((found.bound_by, &found.time), (None, &None));
    assert_eq!(found.notes, [EMULATED]);
    let intensity = |level| {
        let point = found.points.iter().find(|point| point.level == level).unwrap();
        assert_eq!((point.rate, point.attainable, point.fraction), (None, None, None));
        point.intensity
    };
    assert_eq!((intensity(Level::L1), intensity(Level::Dram)), (1e6 / 3.2e6, 1.0));
    assert!(level(&found, Level::Dram).bytes_note.is_some());
}

#[test]
fn nothing_is_counted_twice_and_nothing_is_made_up() {
    assert_eq!(of(&[("duration", 1.0)], timed()), None);
    let tensor = [("flop_count_tensor", 10.0), ("flop_count_tensor_half", 4.0)];
    let found = of(&tensor, timed()).unwrap();
    assert_eq!(precision(&found, Precision::Tensor).operations, Some(6.0));
    assert_eq!(precision(&found, Precision::TensorHalf).operations, Some(4.0));
    // Without the profiled time, the unprofiled time is used, with a note.
    assert_eq!(found.time.unwrap().basis, TimeBasis::Unprofiled);
    assert!(found.notes[0].contains("unprofiled median"), "{:?}", found.notes);
    let nothing = of(&[("flop_count_single", 0.0), ("dram_bytes", 5e9)], timed()).unwrap();
    assert!(nothing.points.is_empty(), "a copy has no intensity");
}
