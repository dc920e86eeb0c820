//! Builds the report of a measurement from the worker's raw readings. This module has no side
//! effects.

use warpgauge_contract::{EvaluateRequest, Isolation, Role};
use warpgauge_model::{CacheState, DeviceInfo, DeviceKind};
use warpgauge_report::{
    BatchReport, ClockReport, GpuReport, InputsShown, LoadReport, MeasurementReport, SealedReport,
    StateReport,
};
use warpgauge_statistics::{
    FloorDevice, RankedBy, Reading, RuntimeStats, SampleBatch, Screened, SpeedOfLight, Summary,
    health_flags, load_agrees, rates, screen, sealed_times, speed_of_light, throttle_reasons,
};
use warpgauge_tensor::shape;
use warpgauge_validate::{Reason, ReasonCode};
use warpgauge_worker::protocol::{
    BatchFacts, EvaluatedRun, LastingFacts, LoadFacts, RunOutcome, VariablesKept,
};

/// Version of the timing method. Any change that affects times must change it.
const METHOD_VERSION: u32 = 2;

/// Factor on the time of an empty launch. A median below the product depends mostly on the launch,
/// not on the kernel.
const FLOOR_FACTOR: f64 = 1.25;

/// Returns the valid samples, and the rejected ones by reason.
pub(crate) fn screened(outcome: &RunOutcome<EvaluatedRun>) -> Screened {
    let batches = outcome.told.batches.iter().map(|facts| SampleBatch {
        samples: facts.trials,
        reading: Reading {
            sm_clock_hz: facts.clock.map(|clock| clock.median_hz),
            throttle_reasons: facts.throttle_reasons.unwrap_or(0),
            ..Reading::default()
        },
    });
    screen(&batches.collect::<Vec<_>>())
}

/// Valid samples, and how they compare with the samples of sealed launches.
pub(crate) struct Kept {
    /// Times in milliseconds, in launch order.
    pub samples: Vec<f32>,
    pub sealed: Option<SealedReport>,
}

/// Returns the valid samples. If the times of sealed launches disagree with the others, only the
/// sealed ones count.
pub(crate) fn kept(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    outcome: &RunOutcome<EvaluatedRun>,
    screened: &Screened,
) -> Kept {
    let told = &outcome.told;
    let (mut sealed, mut others, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    let mut place = 0;
    for (facts, rejected) in told.batches.iter().zip(&screened.batches) {
        let batch = told.samples_ms.iter().enumerate().skip(place).take(facts.trials as usize);
        for (index, &ms) in batch.filter(|_| rejected.is_none()) {
            let is_sealed = told.sealed.launches.binary_search(&(index as u32)).is_ok();
            if is_sealed { &mut sealed } else { &mut others }.push(ms);
            samples.push(ms);
        }
        place += facts.trials as usize;
    }
    if request.isolation == Isolation::Sealed {
        let launches = told.samples_ms.len() as u32;
        return Kept { samples, sealed: Some(SealedReport { launches, ..Default::default() }) };
    }
    // Times on the emulated device are not comparable.
    let times = sealed_times(&sealed, &others).filter(|_| device.kind == DeviceKind::Cuda);
    if times.is_some_and(|times| !times.agree) {
        samples = sealed;
    }
    let report = SealedReport {
        launches: told.sealed.launches.len() as u32,
        median_ms: times.map(|times| times.sealed_ms),
        others_median_ms: times.map(|times| times.others_ms),
        agree: times.map(|times| times.agree),
        unavailable: told.sealed.unavailable.clone(),
    };
    Kept { samples, sealed: (report != SealedReport::default()).then_some(report) }
}

/// Returns a reason if the times cannot be correct: no sample is valid, or the median is below the
/// speed of light.
pub(crate) fn impossible(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    screened: &Screened,
    kept: &[f32],
) -> Option<Reason> {
    if screened.no_valid_samples() {
        let counts = screened.rejected.iter().map(|r| format!("{} for {:?}", r.count, r.reason));
        let text = format!(
            "no timed launch is valid: {}; let the device cool, or check whether other processes use it",
            counts.collect::<Vec<_>>().join(", ")
        );
        return Some(Reason::new(ReasonCode::NoValidSamples, text));
    }
    let light = floor(request, device)?;
    let median = Summary::new(kept)?.median;
    let floor_ms = light.floor_ms.filter(|_| light.excludes(median))?;
    let derivation = light.derivation.join("; ");
    Some(Reason::faster_than_light(median * 1e-3, floor_ms * 1e-3, &derivation))
}

/// Returns a note if mean and median differ so much that kernels are ranked by the mean.
pub(crate) fn parted(stats: &RuntimeStats) -> Option<String> {
    (stats.ranked_by == RankedBy::Mean).then(|| {
        format!(
            "the mean is {:.1} % above the median, in the second measurement as in the first: some \
             launches may do the work of others, so the mean ranks the kernel",
            100.0 * (stats.mean / stats.median - 1.0)
        )
    })
}

/// Returns the minimum time for the contract's work (speed of light). Returns `None` if the
/// contract states no work, or on the emulated device, which has no such bound.
fn floor(request: &EvaluateRequest, device: &DeviceInfo) -> Option<SpeedOfLight> {
    let work = request.work.as_ref()?;
    Some(speed_of_light(work, &peaks(device)?, request.measure.cache))
}

/// Returns the peak rates of a GPU that its driver reports, or `None` for the emulated device.
fn peaks(device: &DeviceInfo) -> Option<FloorDevice> {
    (device.kind == DeviceKind::Cuda).then_some(FloorDevice {
        memory_clock_khz: device.memory_clock_khz,
        memory_bus_bits: device.memory_bus_bits,
        l2_bytes: device.l2_bytes,
        multiprocessors: device.multiprocessors,
        sm_clock_khz: device.clock_khz,
        compute_capability: device.target.compute_capability,
    })
}

/// Returns the number of bytes that a launch transfers if each tensor is transferred once: inputs
/// are read, outputs written, and inout tensors both. This is an assumption, because a kernel need
/// not read a whole input.
fn buffer_bytes(request: &EvaluateRequest) -> Option<f64> {
    let args = &request.kernel.io.as_ref()?.args;
    let moved = args.iter().filter(|arg| arg.role != Role::Scratch);
    let tensors = moved.filter_map(|arg| Some((arg.tensor_spec.as_ref()?, arg.role)));
    let bytes = tensors.map(|(spec, role)| {
        let times = if role == Role::Inout { 2.0 } else { 1.0 };
        Some(shape::bytes(&spec.shape, spec.dtype).ok()? as f64 * times)
    });
    bytes.sum::<Option<f64>>().filter(|bytes| *bytes > 0.0)
}

/// Returns the report of a run's times, or `None` if nothing was timed.
pub(crate) fn report(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    outcome: &RunOutcome<EvaluatedRun>,
    screened: &Screened,
    kept: &Kept,
) -> Option<MeasurementReport> {
    if outcome.told.samples_ms.is_empty() {
        return None;
    }
    let emulated = device.kind == DeviceKind::Emulator;
    let summary = Summary::new(&kept.samples);
    let median = summary.as_ref().map(|summary| summary.median);
    let at_floor = median
        .zip(outcome.told.empty_launch_ms)
        .is_some_and(|(median, empty)| median < FLOOR_FACTOR * empty);
    let mut notes = Vec::new();
    if emulated {
        notes.push("times are those of the emulation: they say nothing about a GPU".to_owned());
    }
    if at_floor {
        notes.push(
            "the kernel is so short that the time is mostly that of launching it; measure more \
             work in one launch"
                .to_owned(),
        );
    }
    notes.extend(kept.sealed.as_ref().and_then(sealed_note));
    // With a hot cache, a timed launch finds just-written inputs in the cache, but a load launch
    // does not. So the two are not comparable.
    let alike = !emulated && request.measure.cache == CacheState::Cold;
    let load = outcome.told.load.as_ref().map(|facts| load(facts, median.filter(|_| alike)));
    notes.extend(outcome.told.lasting.and_then(lasting_note));
    notes.extend(load.as_ref().zip(median).and_then(|(load, median)| load_note(load, median)));
    let state = outcome.told.variables.as_ref().map(|kept| state(kept, device.kind));
    Some(MeasurementReport {
        method: if emulated { "emulated" } else { "cuda_events_gated" }.to_owned(),
        method_version: METHOD_VERSION,
        cache: request.measure.cache,
        regime: request.measure.regime,
        inputs: match &state {
            _ if outcome.told.inputs_moved => InputsShown::Fresh,
            Some(state) if state.not_known.is_empty() => InputsShown::SameStateWiped,
            _ => InputsShown::Same,
        },
        input_sets: outcome.told.input_sets,
        state,
        grid_blocks: None,
        warmup_launches: outcome.told.warmup_launches,
        warmup_stable: outcome.told.warmup_stable,
        stopped: outcome.told.stopped,
        summary,
        empty_launch_ms: outcome.told.empty_launch_ms,
        at_floor,
        speed_of_light: floor(request, device),
        rates: peaks(device).zip(median).and_then(|(device, median)| {
            rates(request.work.as_ref(), buffer_bytes(request), &device, median)
        }),
        rejected: screened.rejected.clone(),
        audited: outcome.told.audits.done,
        sealed: kept.sealed.clone(),
        load,
        sm_clock: clock(&outcome.told.batches),
        gpu: gpu(outcome, device),
        unranked: None,
        batches: outcome.told.batches.iter().map(batch).collect(),
        notes,
        samples_ms: outcome.told.samples_ms.clone(),
    })
}

/// Returns a note if sealed launches disagree with the others, or if there are no sealed launches.
fn sealed_note(sealed: &SealedReport) -> Option<String> {
    if let Some(reason) = &sealed.unavailable {
        return Some(format!("no launch was judged from outside the kernel's process: {reason}"));
    }
    let (median, others) = sealed.median_ms.zip(sealed.others_median_ms)?;
    (sealed.agree == Some(false)).then(|| {
        format!(
            "launches judged from outside the kernel's process take {:.1} % longer than the others, \
             in which the kernel may have found data that it should not find: only the former count",
            100.0 * (median / others - 1.0)
        )
    })
}

/// Returns the report of the load before the timed launches. `timed_ms` is the median of the timed
/// launches, if it is comparable.
fn load(facts: &LoadFacts, timed_ms: Option<f64>) -> LoadReport {
    let agree = facts.median_ms.zip(timed_ms).map(|(load, timed)| load_agrees(load, timed));
    let LoadFacts { launches, verified, share, median_ms } = *facts;
    LoadReport { launches, verified, share, median_ms, agree }
}

/// Returns a note if the times of the load launches differ from those of the timed launches.
fn load_note(load: &LoadReport, timed_ms: f64) -> Option<String> {
    let load_ms = load.median_ms.filter(|_| load.agree == Some(false))?;
    Some(format!(
        "launches that put the device under load differ from the timed ones by {:+.1} %: the kernel \
         may distinguish them, or the clock rate recovers between timed launches, so that their times may not \
         be those of continuous use",
        100.0 * (load_ms / timed_ms - 1.0)
    ))
}

/// Returns a note if fewer consecutive launches than planned ran without restored state of a kernel
/// that keeps state.
fn lasting_note(facts: LastingFacts) -> Option<String> {
    let LastingFacts { launches, wanted } = facts;
    (launches < wanted).then(|| {
        format!(
            "the kernel keeps state, but only {launches} instead of {wanted} consecutive launches ran \
             without restoring it: the time limit does not allow more, so a kernel that becomes \
             wrong later is not detected; raise `timeout`, or make the tensors smaller"
        )
    })
}

/// Returns the memory that could carry a result from one launch to the next on a device, and how
/// the service handles each part.
fn state(variables: &VariablesKept, device: DeviceKind) -> StateReport {
    let modules = "variables and constants of the kernel's modules";
    let (mut put_back, mut looked_at, mut not_known) = (vec!["outputs"], Vec::new(), Vec::new());
    let unlisted;
    match variables {
        VariablesKept::PutBack => put_back.push(modules),
        VariablesKept::NotKnown(reason) => {
            unlisted = format!("{modules}: {reason}");
            not_known.push(&*unlisted);
        }
    }
    // The emulated device gives each launch its own shared and local memory. It also knows the
    // buffer of each access.
    put_back.push("shared memory");
    match device {
        DeviceKind::Cuda => {
            looked_at.push("inputs, and the rest of the pages that the buffers lie on");
            not_known.extend([
                "local memory",
                "memory of the context that no buffer owns: what the driver keeps beside code and \
                 variables",
            ]);
        }
        DeviceKind::Emulator => {
            put_back.push("local memory");
            looked_at.push("inputs");
        }
    }
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    StateReport {
        put_back: owned(put_back),
        looked_at: owned(looked_at),
        not_known: owned(not_known),
    }
}

fn batch(facts: &BatchFacts) -> BatchReport {
    let sm_clock_hz = facts.clock.map(|clock| clock.median_hz);
    BatchReport { trials: facts.trials, sm_clock_hz }
}

/// Returns the clock over all batches, weighted by their durations.
fn clock(batches: &[BatchFacts]) -> Option<ClockReport> {
    let clocks = batches.iter().filter_map(|batch| batch.clock);
    let (mut cycles, mut seconds) = (0.0, 0.0);
    let (mut min_hz, mut max_hz) = (f64::INFINITY, 0.0_f64);
    for clock in clocks {
        cycles += clock.median_hz * clock.span_s;
        seconds += clock.span_s;
        min_hz = min_hz.min(clock.median_hz);
        max_hz = max_hz.max(clock.median_hz);
    }
    (seconds > 0.0).then(|| ClockReport { mean_hz: cycles / seconds, min_hz, max_hz })
}

fn gpu(outcome: &RunOutcome<EvaluatedRun>, device: &DeviceInfo) -> Option<GpuReport> {
    let settings = outcome.told.settings.clone()?;
    let health = outcome.told.health.unwrap_or_default();
    let of_batches = outcome.told.batches.iter().filter_map(|batch| batch.throttle_reasons);
    let bits = health.iter().filter_map(|health| health.throttle_reasons).chain(of_batches);
    let bits = bits.fold(0, |a, b| a | b);
    let other_processes = health.iter().filter_map(|health| health.other_processes).max();
    let reading = Reading {
        sm_clock_hz: clock(&outcome.told.batches).map(|clock| clock.mean_hz),
        throttle_reasons: bits,
        other_processes,
        ..Reading::default()
    };
    Some(GpuReport {
        driver: settings.driver,
        max_sm_clock_mhz: settings.max_sm_clock_mhz,
        power_limit_w: settings.power_limit_w,
        power_w: health.iter().filter_map(|health| health.power_w).collect(),
        temperature_c: health.iter().filter_map(|health| health.temperature_c).collect(),
        throttle_reasons: throttle_reasons(bits),
        flags: health_flags(&reading, f64::from(device.clock_khz) * 1e3),
        other_processes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_that_differs_from_timed_launches_is_told() {
        let facts = LoadFacts { launches: 40, verified: 16, share: 0.9, median_ms: Some(0.24) };
        let rests = load(&facts, Some(0.2));
        assert_eq!((rests.launches, rests.verified, rests.agree), (40, 16, Some(false)));
        let note = load_note(&rests, 0.2).expect("a note");
        assert!(note.contains("differ from the timed ones by +20.0 %"), "{note}");
        let honest = load(&facts, Some(0.235));
        assert_eq!((honest.agree, load_note(&honest, 0.235)), (Some(true), None));
        // If load and timed launches are not comparable, there is no statement.
        let unlike = load(&facts, None);
        assert_eq!((unlike.agree, load_note(&unlike, 0.2)), (None, None));
    }

    #[test]
    fn what_is_not_known_of_a_gpu_is_said() {
        let gpu = state(&VariablesKept::PutBack, DeviceKind::Cuda);
        assert!(gpu.not_known.iter().any(|text| text.contains("no buffer owns")), "{gpu:?}");
        assert!(gpu.put_back.iter().any(|text| text.contains("constants")), "{gpu:?}");
        let emulated = state(&VariablesKept::PutBack, DeviceKind::Emulator);
        assert!(emulated.not_known.is_empty(), "{emulated:?}");
        let unknown = state(&VariablesKept::NotKnown("why".to_owned()), DeviceKind::Emulator);
        let said = ["variables and constants of the kernel's modules: why"];
        assert_eq!(unknown.not_known, said, "{unknown:?}");
    }
}
