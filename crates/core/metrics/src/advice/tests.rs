use super::super::facts::Timed;
use super::super::roofline::roofline;
use super::super::testing::{h200, metrics};
use super::*;
use warpgauge_model::Resources;
use warpgauge_tensor::Dtype;

fn advise_on(values: &[(&str, f64)], change: impl FnOnce(&mut Facts<'_>)) -> Vec<Advice> {
    let device = h200();
    let mut facts =
        Facts { device: &device, resources: None, inputs: &[], timed: Timed::default() };
    change(&mut facts);
    let metrics = metrics(values);
    let values = Values::new(&metrics);
    let roofline = roofline(values, &facts);
    let found = advise(values, &facts, roofline.as_ref());
    for advice in &found {
        assert!(!advice.evidence.is_empty(), "{advice:?}");
        assert!((0.0..=1.0).contains(&advice.share), "{advice:?}");
        for evidence in &advice.evidence {
            let is_metric = metrics.contains_key(&evidence.metric);
            assert!(is_metric || evidence.metric.contains('.'), "{evidence:?}");
            assert_eq!(
                metrics.get(&evidence.metric).map_or(Some(evidence.value), |m| m.value),
                Some(evidence.value)
            );
        }
    }
    found
}

fn codes(values: &[(&str, f64)]) -> Vec<AdviceCode> {
    advise_on(values, |_| {}).iter().map(|advice| advice.code).collect()
}

#[test]
fn nothing_is_said_without_numbers() {
    assert_eq!(codes(&[]), []);
    // Each of these rules needs two numbers, and here has only one.
    for id in ["l2_sectors_global", "shared_load_conflicts", "stall_barrier", "achieved_occupancy"]
    {
        assert_eq!(codes(&[(id, 1e6)]), [], "{id}");
    }
}

#[test]
fn each_rule_speaks_from_its_threshold_on() {
    use AdviceCode::*;
    type Sample = &'static [(&'static str, f64)];
    let cases: [(AdviceCode, Sample, Sample); 11] = [
        (
            // 133 blocks on 132 multiprocessors: one has two.
            TailEffect,
            &[("waves_per_sm", 0.504), ("grid_size", 133.0)],
            &[("waves_per_sm", 1.0), ("grid_size", 264.0)],
        ),
        (
            UncoalescedAccess,
            &[("l2_sectors_global", 100.0), ("l2_sectors_global_ideal", 50.0)],
            &[("l2_sectors_global", 100.0), ("l2_sectors_global_ideal", 95.0)],
        ),
        (
            UncoalescedAccess,
            &[("sectors_per_global_load", 32.0)],
            &[("sectors_per_global_load", 16.0)],
        ),
        (
            UncoalescedAccess,
            &[("global_load_efficiency", 25.0), ("global_load_sectors", 1e6)],
            &[("global_load_efficiency", 95.0), ("global_load_sectors", 1e6)],
        ),
        (
            BankConflicts,
            &[("shared_load_conflicts", 31.0), ("shared_load_wavefronts", 32.0)],
            &[("shared_load_conflicts", 1.0), ("shared_load_wavefronts", 32.0)],
        ),
        (
            LocalMemory,
            &[("local_load_requests", 50.0), ("global_load_requests", 50.0)],
            &[("local_load_requests", 0.0), ("global_load_requests", 50.0)],
        ),
        (
            TailEffect,
            &[("waves_per_sm", 1.1), ("grid_size", 1200.0)],
            &[("waves_per_sm", 1.95), ("grid_size", 2000.0)],
        ),
        (SmallGrid, &[("grid_size", 8.0)], &[("grid_size", 132.0)]),
        (Divergence, &[("threads_per_instruction", 8.0)], &[("threads_per_instruction", 31.0)]),
        (DramSaturated, &[("dram_throughput", 92.0)], &[("dram_throughput", 66.0)]),
        (
            BarrierStalls,
            &[("stall_barrier", 40.0), ("issue_active", 20.0)],
            &[("stall_barrier", 40.0), ("issue_active", 90.0)],
        ),
    ];
    for (code, speaks, silent) in cases {
        assert_eq!(codes(speaks), [code], "{speaks:?}");
        assert_eq!(codes(silent), [], "{silent:?}");
    }
}

#[test]
fn a_cause_precedes_the_waits_that_it_explains() {
    use AdviceCode::*;
    // Warps that wait for memory most of the time, since each request needs 32 sectors.
    let waits = [("stall_long_scoreboard", 53.0), ("issue_active", 3.0)];
    assert_eq!(codes(&waits), [MemoryLatency]);
    let rows = [("sectors_per_global_load", 32.0), ("l1_throughput", 56.0)];
    assert_eq!(codes(&[&waits[..], &rows].concat()), [UncoalescedAccess, MemoryLatency]);
}

#[test]
fn occupancy_names_its_limiter() {
    let found = advise_on(
        &[
            ("theoretical_occupancy", 25.0),
            ("occupancy_limit_registers", 2.0),
            ("occupancy_limit_shared_memory", 32.0),
            ("occupancy_limit_warps", 8.0),
            ("registers_per_thread", 128.0),
        ],
        |_| {},
    );
    assert_eq!(found[0].code, AdviceCode::LowOccupancy);
    assert!(found[0].message.contains("limited by registers (2 blocks fit)"), "{:?}", found[0]);
    let cited: Vec<&str> = found[0].evidence.iter().map(|one| one.metric.as_str()).collect();
    assert_eq!(
        cited,
        ["theoretical_occupancy", "occupancy_limit_registers", "registers_per_thread"]
    );
}

#[test]
fn wasted_traffic_counts_by_how_busy_memory_is() {
    let sectors = [("l2_sectors_global", 100.0), ("l2_sectors_global_ideal", 20.0)];
    let share = |dram: f64| {
        let values = [sectors[0], sectors[1], ("dram_throughput", dram)];
        let found = advise_on(&values, |_| {});
        assert_eq!(found[0].share_of, ShareOf::Time);
        found[0].share
    };
    assert!((share(70.0) - 0.56).abs() < 1e-9 && (share(5.0) - 0.04).abs() < 1e-9);
    assert_eq!(advise_on(&sectors, |_| {})[0].share_of, ShareOf::Traffic);
}

#[test]
fn spills_are_told_from_arrays() {
    let counted = [("local_load_requests", 50.0), ("global_load_requests", 50.0)];
    let found = |spilled: u32, values: &[(&str, f64)]| {
        let resources = Resources {
            spill_store_bytes: Some(spilled),
            spill_load_bytes: Some(spilled),
            ..Resources::default()
        };
        let device = h200();
        let facts = Facts {
            device: &device,
            resources: Some(&resources),
            inputs: &[],
            timed: Timed::default(),
        };
        let metrics = metrics(values);
        advise(Values::new(&metrics), &facts, None)
    };
    let said = |spilled: u32| found(spilled, &counted).remove(0).message;
    assert!(said(64).contains("registers are spilled"));
    assert!(said(0).contains("spilled no registers"));
    // Without counts, what the compiler reports is enough.
    let uncounted = found(916, &[("dram_throughput", 54.0)]);
    assert_eq!(uncounted[0].code, AdviceCode::LocalMemory);
    assert!(uncounted[0].message.contains("1832 bytes"), "{uncounted:?}");
    assert_eq!(found(0, &[("dram_throughput", 54.0)]), []);
}

#[test]
fn products_of_small_types_could_use_tensor_cores() {
    let values = [
        ("flop_count_single", 2e9),
        ("flop_count_half", 0.0),
        ("flop_count_tensor", 0.0),
        ("ffma_instructions", 1e9),
        ("dram_bytes", 1e7),
        ("duration", 1e-3),
    ];
    let with = |inputs: &'static [Dtype]| {
        let found = advise_on(&values, |facts| facts.inputs = inputs);
        found.iter().any(|advice| advice.code == AdviceCode::TensorCoresUnused)
    };
    assert!(with(&[Dtype::Float16, Dtype::Float16]));
    assert!(!with(&[Dtype::Float16]), "a product has two operands");
    assert!(!with(&[Dtype::Float32, Dtype::Float32]), "f32 would lose precision");
}

#[test]
fn the_list_is_short_and_the_largest_share_comes_first() {
    let found = advise_on(
        &[
            ("l2_sectors_global", 100.0),
            ("l2_sectors_global_ideal", 10.0),
            ("shared_load_conflicts", 31.0),
            ("shared_load_wavefronts", 62.0),
            ("local_load_requests", 50.0),
            ("global_load_requests", 50.0),
            ("grid_size", 8.0),
            ("threads_per_instruction", 8.0),
            ("stall_long_scoreboard", 70.0),
            ("stall_barrier", 30.0),
            ("stall_short_scoreboard", 30.0),
            ("issue_active", 10.0),
            ("theoretical_occupancy", 12.5),
            ("occupancy_limit_warps", 2.0),
        ],
        |_| {},
    );
    assert_eq!(found.len(), MAX_OBSERVATIONS);
    assert!(found.windows(2).all(|pair| pair[0].share >= pair[1].share), "{found:?}");
    assert_eq!(found[0].code, AdviceCode::SmallGrid);
}

#[test]
fn a_launch_that_takes_no_longer_than_an_empty_one_is_said_first() {
    let found = advise_on(&[("grid_size", 100.0), ("block_size", 32.0)], |facts| {
        facts.timed =
            Timed { median_s: Some(2.8e-6), empty_launch_s: Some(2.66e-6), ..Timed::default() };
    });
    assert_eq!(found[0].code, AdviceCode::LaunchBound);
    assert_eq!(found[0].evidence[0].metric, "kernel_exec_result.runtime_stats.median");
}

/// A copy whose base is off by four bytes touches five sectors where four would do.
#[test]
fn misaligned_is_not_uncoalesced() {
    let values = [
        ("sectors_per_global_load", 5.0),
        ("l2_sectors_global", 500.0),
        ("l2_sectors_global_ideal", 400.0),
    ];
    assert_eq!(codes(&values), [AdviceCode::MisalignedAccess]);
    let found = advise_on(&values, |_| {});
    assert!(found[0].message.contains("the base is misaligned"), "{}", found[0].message);
    assert!((found[0].share - 0.2).abs() < 1e-12);
    let strided = [("sectors_per_global_load", 32.0), ("sectors_per_global_store", 5.0)];
    assert_eq!(codes(&strided), [AdviceCode::UncoalescedAccess]);
}

#[test]
fn the_emulated_device_gives_no_advice_about_its_own_size() {
    let device = super::super::testing::emulated_h200();
    let facts = Facts { device: &device, resources: None, inputs: &[], timed: Timed::default() };
    let launches = [
        [("grid_size", 4.0), ("waves_per_sm", 0.03)],
        [("grid_size", 400.0), ("waves_per_sm", 1.1)],
    ];
    for values in launches {
        assert_eq!(codes(&values).len(), 1, "on a GPU: {values:?}");
        assert_eq!(advise(Values::new(&metrics(&values)), &facts, None), []);
    }
}
