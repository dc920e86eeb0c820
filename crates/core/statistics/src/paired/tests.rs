//! Verdicts on constructed blocks.

use super::*;

/// Returns blocks with a fixed pattern of noise. The candidate takes `effect` times as long as the
/// reference.
fn blocks(n: usize, effect: f32, noise: f32) -> Vec<PairedBlock> {
    // The signs have no memory, so successive blocks are not correlated.
    let pattern = [1.0, -1.0, -1.0, 1.0, 0.5, -0.5, 1.0, -1.0];
    (0..n)
        .map(|i| {
            let b = effect * (1.0 + noise * pattern[i % 8]);
            PairedBlock {
                order: BlockOrder::of_block(i),
                a: [vec![1.0; 5], vec![1.0; 5]],
                b: [vec![b; 5], vec![b; 5]],
                clock_hz: [Some(1.9e9); 4],
                throttle_reasons: 0,
            }
        })
        .collect()
}

fn done(outcome: LookOutcome) -> PairedComparison {
    match outcome {
        LookOutcome::Done(comparison) => *comparison,
        LookOutcome::Continue { next_look } => panic!("wants {next_look} blocks"),
    }
}

#[test]
fn a_look_waits_for_its_blocks_and_disregards_later_ones() {
    let policy = ComparePolicy::default();
    let all = blocks(40, 1.05, 0.004);
    assert_eq!(decide_at_look(&all[..15], 0, &policy), LookOutcome::Continue { next_look: 16 });
    let comparison = done(decide_at_look(&all, 0, &policy));
    assert_eq!((comparison.verdict, comparison.blocks_used), (PairedVerdict::Slower, 16));
    assert_eq!(comparison.blocks.len(), 16);
    let speedup = comparison.speedup.expect("a speedup");
    assert!((speedup - 1.0 / 1.05).abs() < 0.002, "{speedup}");
    assert!(comparison.speedup_ci_low.unwrap() < speedup);
    assert!(comparison.speedup_ci_high.unwrap() > speedup);
    assert!((comparison.confidence - 0.995).abs() < 1e-12);
    assert!(comparison.p_value.unwrap() <= 0.01);
}

#[test]
fn what_is_not_resolved_goes_on_until_the_last_look() {
    let policy = ComparePolicy::default();
    let all = blocks(128, 1.006, 0.03);
    assert_eq!(decide_at_look(&all, 0, &policy), LookOutcome::Continue { next_look: 32 });
    assert_eq!(decide_at_look(&all, 2, &policy), LookOutcome::Continue { next_look: 128 });
    let last = done(decide_at_look(&all, 3, &policy));
    assert_eq!(last.verdict, PairedVerdict::Inconclusive);
    assert_eq!(last.reasons[0], PairedReason::DifferenceUnresolved);
    assert!(last.minimum_detectable_effect.unwrap() > 0.01);
    assert!(last.p_value.unwrap() > 0.01);
}

#[test]
fn a_difference_that_fades_is_none() {
    let policy = ComparePolicy::default();
    let mut fading = blocks(16, 1.0, 0.004);
    for (index, block) in fading.iter_mut().enumerate() {
        // The factor falls from 1.7 to 1.
        let factor = (0.53 * (15 - index) as f32 / 15.0).exp();
        block.b.iter_mut().flatten().for_each(|ms| *ms *= factor);
    }
    let comparison = done(decide_at_look(&fading, 0, &ComparePolicy { looks: vec![16], ..policy }));
    assert_eq!(comparison.verdict, PairedVerdict::Inconclusive);
    assert!(!comparison.reasons.contains(&PairedReason::BeyondMargin), "{:?}", comparison.reasons);
    assert_eq!(comparison.p_value, None);
}

#[test]
fn the_end_is_a_look_with_an_answer_or_cuts_one_short() {
    let policy = ComparePolicy::default();
    let clear = blocks(32, 1.05, 0.004);
    for count in [16, 32] {
        let end = decide_at_end(&clear[..count], &policy);
        assert_eq!((end.verdict, end.blocks_used), (PairedVerdict::Slower, count as u32));
        assert!(!end.reasons.contains(&PairedReason::EndedEarly), "{count}: a look decided");
    }
    let between = decide_at_end(&clear[..20], &policy);
    assert_eq!((between.verdict, between.blocks_used), (PairedVerdict::Slower, 20));
    assert!(between.reasons.contains(&PairedReason::EndedEarly));
    // At this look the measurement would have continued.
    let unclear = blocks(128, 1.006, 0.03);
    let at_look = decide_at_end(&unclear[..32], &policy);
    assert_eq!(at_look.verdict, PairedVerdict::Inconclusive);
    assert!(at_look.reasons.contains(&PairedReason::EndedEarly));
    let last = decide_at_end(&unclear, &policy);
    assert!(!last.reasons.contains(&PairedReason::EndedEarly));
    assert_eq!(decide_at_end(&[], &policy).blocks_used, 0);
}

#[test]
fn blocks_that_vary_too_much_for_the_time_are_hopeless() {
    let policy = ComparePolicy { floor: 0.015, ..ComparePolicy::default().with_early_look() };
    for (sd, most, ratio, hopeless) in [
        (0.20, 32, 1.0, true),
        (0.20, 32, 1.02, true),
        (0.20, 32, 2.0, false),
        (0.02, 128, 1.0, false),
        (0.05, 128, 1.0, false),
        (0.20, 128, 1.0, true),
    ] {
        let few = blocks(8, ratio, sd);
        assert_eq!(is_hopeless(&few, most, &policy), hopeless, "{sd} {most} {ratio}");
    }
    // What is decided, or cannot be decided for another reason, is not hopeless.
    assert!(!is_hopeless(&blocks(8, 1.0, 0.001), 128, &policy));
    assert!(!is_hopeless(&[], 128, &policy));
    // Four blocks must vary more.
    for (sd, most, ratio, hopeless) in
        [(0.20, 16, 1.0, true), (0.20, 16, 2.0, false), (0.04, 32, 1.0, false)]
    {
        let few = blocks(4, ratio, sd);
        assert_eq!(is_hopeless(&few, most, &policy), hopeless, "{sd} {most} {ratio}");
    }
    assert!(!is_hopeless(&blocks(3, 1.0, 0.3), 16, &policy));
}

#[test]
fn throttled_blocks_forbid_a_verdict() {
    let policy = ComparePolicy::default();
    let mut all = blocks(128, 1.05, 0.004);
    for block in all.iter_mut().step_by(4) {
        block.throttle_reasons = 0x40;
        block.a.iter_mut().chain(&mut block.b).flatten().for_each(|ms| *ms *= 1.2);
    }
    assert_eq!(decide_at_look(&all, 0, &policy), LookOutcome::Continue { next_look: 32 });
    let last = done(decide_at_look(&all, 3, &policy));
    assert_eq!(last.verdict, PairedVerdict::Inconclusive);
    assert_eq!(last.reasons[0], PairedReason::TooManyDropped);
    assert_eq!(last.dropped, [DropCount { reason: DropReason::Throttle, count: 32 }]);
    assert_eq!((last.blocks_used, last.p_value), (96, None));
    all.iter_mut().for_each(|block| block.throttle_reasons = 0x40);
    let none = done(decide_at_look(&all, 0, &policy));
    assert_eq!(none.verdict, PairedVerdict::Inconclusive);
    assert_eq!(none.reasons[0], PairedReason::AllBlocksDropped);
    assert_eq!((none.time, none.speedup, none.blocks_dropped), (None, None, 16));
}

#[test]
fn dropped_blocks_forbid_no_verdict_where_no_disturbance_was_as_large_as_the_difference() {
    let policy = ComparePolicy::default();
    for (factor, verdict) in [(3.0, PairedVerdict::Slower), (1.0 / 3.0, PairedVerdict::Faster)] {
        let mut all = blocks(16, factor, 0.004);
        for block in all.iter_mut().step_by(3) {
            block.a[1].iter_mut().chain(&mut block.b[0]).for_each(|ms| *ms *= 1.5);
        }
        let apart = done(decide_at_look(&all, 0, &policy));
        assert_eq!(apart.verdict, verdict, "{:?}", apart.reasons);
        assert_eq!(apart.dropped, [DropCount { reason: DropReason::SlotsDisagree, count: 6 }]);
        assert!(apart.reasons.contains(&PairedReason::SlotsApart) && apart.p_value.is_some());
        // Exchanging two slots of one rejected block makes the arms overlap, so the result is no
        // longer clear.
        let PairedBlock { a: [_, a], b: [b, _], .. } = &mut all[0];
        std::mem::swap(a, b);
        let mixed = conclude(&all, &policy);
        assert_eq!(mixed.verdict, PairedVerdict::Inconclusive, "{factor}");
        assert_eq!(mixed.reasons[0], PairedReason::TooManyDropped);
        all[0].b[0].clear();
        assert_eq!(conclude(&all, &policy).verdict, PairedVerdict::Inconclusive, "{factor}");
    }
    let mut few = blocks(16, 3.0, 0.004);
    few.iter_mut().take(9).for_each(|block| block.throttle_reasons = 0x40);
    assert_eq!(conclude(&few, &policy).reasons[0], PairedReason::TooFewBlocks);
}

#[test]
fn a_slower_clock_is_told_from_more_cycles() {
    let mut all = blocks(16, 1.05, 0.004);
    for block in &mut all {
        block.clock_hz =
            block.order.arms().map(|arm| Some(if arm == Arm::A { 1.9e9 } else { 1.9e9 / 1.05 }));
    }
    let induced = conclude(&all, &ComparePolicy::default());
    assert_eq!(induced.verdict, PairedVerdict::Slower);
    assert!(induced.clock_induced && induced.reasons.contains(&PairedReason::ClockInduced));
    assert!((induced.cycles.unwrap().ratio - 1.0).abs() < 0.001);
    assert!(induced.reasons.contains(&PairedReason::EndedEarly));
    for block in &mut all {
        block.b.iter_mut().flatten().for_each(|x| *x /= 1.05);
    }
    let masked = conclude(&all, &ComparePolicy::default());
    assert_eq!(masked.verdict, PairedVerdict::Same);
    assert!(!masked.clock_induced && masked.reasons.contains(&PairedReason::ClockMasked));
    all[3].clock_hz[0] = None;
    let unknown = conclude(&all, &ComparePolicy::default());
    assert!(unknown.cycles.is_none());
    assert!(unknown.reasons.contains(&PairedReason::ClockUnknown));
}

/// Returns blocks in which every launch of an arm takes exactly the given milliseconds.
fn without_noise(a_ms: f32, b_ms: f32) -> Vec<PairedBlock> {
    let mut all = blocks(16, 1.0, 0.0);
    for block in &mut all {
        block.a.iter_mut().flatten().for_each(|x| *x = a_ms);
        block.b.iter_mut().flatten().for_each(|x| *x = b_ms);
    }
    all
}

#[test]
fn one_tick_of_the_clock_is_no_difference() {
    // The times are 5 µs with a tick of 0.1 µs; the candidate always reads one tick more.
    let all = without_noise(0.005, 0.0051);
    let fine = ComparePolicy::default();
    assert_eq!(conclude(&all, &fine).verdict, PairedVerdict::Slower);
    let coarse = ComparePolicy { resolution_ms: 1.02e-4, ..fine };
    let comparison = conclude(&all, &coarse);
    assert_eq!(comparison.verdict, PairedVerdict::Same);
    assert!(comparison.reasons.contains(&PairedReason::MarginFromResolution));
}

#[test]
fn a_clock_that_shows_nothing_makes_no_two_kernels_the_same() {
    // The times are 5 µs and 8 µs, with a resolution of 15 µs.
    let all = without_noise(0.005, 0.008);
    let policy = ComparePolicy { resolution_ms: 0.015, ..ComparePolicy::default() };
    // More blocks would not help.
    let comparison = done(decide_at_look(&all, 0, &policy));
    assert!(comparison.margin > 2.0, "{}", comparison.margin);
    assert_eq!(comparison.verdict, PairedVerdict::Inconclusive);
    assert!(comparison.reasons.contains(&PairedReason::DifferenceUnresolved));
    assert!(comparison.reasons.contains(&PairedReason::MarginFromResolution));
    // A policy that explicitly allows such a wide equivalence gets the verdict `same`.
    let asked = ComparePolicy { equivalence: comparison.equivalence, ..policy };
    assert_eq!(conclude(&all, &asked).verdict, PairedVerdict::Same);
}

#[test]
fn one_extreme_block_does_not_decide() {
    let mut all = blocks(128, 1.0, 0.001);
    for block in all.iter_mut().take(16) {
        block.b.iter_mut().flatten().for_each(|x| *x *= 50.0);
    }
    let comparison = conclude(&all, &ComparePolicy::default());
    assert_eq!(comparison.verdict, PairedVerdict::Inconclusive, "{:?}", comparison.reasons);
}

#[test]
fn too_few_blocks_and_none_are_said_so() {
    let policy = ComparePolicy::default();
    let few = conclude(&blocks(7, 1.5, 0.001), &policy);
    assert_eq!(few.reasons[0], PairedReason::TooFewBlocks);
    let none = conclude(&[], &policy);
    assert_eq!(none.verdict, PairedVerdict::Inconclusive);
    assert_eq!(none.reasons[0], PairedReason::TooFewBlocks);
    let json = serde_json::to_value(&none).expect("JSON");
    assert_eq!(json["reasons"][0], "too_few_blocks");
    assert!(json.get("speedup").is_none());
}

#[test]
fn work_that_some_launches_leave_to_others_is_no_gain() {
    let policy = ComparePolicy::default();
    // One launch in ten, in fifteen or in forty does all the work, which takes as long as the
    // reference's.
    for every in [10, 15, 40] {
        let mut all = blocks(128, 1.0, 0.002);
        let launches = all.iter_mut().flat_map(|block| block.b.iter_mut().flatten());
        for (index, ms) in launches.enumerate() {
            let works = (index * 7 + index / 11) % every == 0;
            *ms *= if works { every as f32 - 0.1 * (every - 1) as f32 } else { 0.1 };
        }
        let found = conclude(&all, &policy);
        assert!(found.reasons.contains(&PairedReason::MeansCompared), "{every}: {found:?}");
        assert_ne!(found.verdict, PairedVerdict::Faster, "{every}: {:?}", found.speedup);
    }
    // Occasional disturbances by the device affect both arms.
    let mut all = blocks(128, 1.05, 0.002);
    for block in &mut all {
        block.a[0][2] *= 3.0;
        block.b[1][3] *= 3.0;
    }
    let found = conclude(&all, &policy);
    assert_eq!(found.verdict, PairedVerdict::Slower);
    assert!(!found.reasons.contains(&PairedReason::MeansCompared));
}
