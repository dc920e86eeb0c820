//! Chooses one of several configurations of a Triton kernel. This replaces `@triton.autotune`,
//! whose host code is not run.
//!
//! All configurations are compiled in parallel. Those that are wrong or fail are eliminated, with
//! the reason. The rest are timed in rounds by the usual timing code. Each round eliminates the
//! slower half and doubles the launches of the others, until one is left. On the emulated device,
//! exact counts decide instead. The choice is remembered for the same source, arguments and device.

mod candidates;
mod winners;

use std::time::Instant;

use super::DeviceBackend;
use crate::clock::ms;
use crate::error::{ExecError, Problem};
use crate::host::need_of;
use crate::progress::ActiveOrder;
use candidates::{Contender, MAX_CONFIGURATIONS};
use warpgauge_compile::{CompileOptions, Tunable};
use warpgauge_contract::{EvaluateRequest, KernelCode, KernelType, Role};
use warpgauge_model::{DeviceInfo, DeviceKind, FailureCode, JobStage};
use warpgauge_report::{TunedBy, TunedOutcome, TuningReport};
use warpgauge_statistics::rank_counted;
use warpgauge_tensor::InitKind;

pub(crate) use winners::Winners;

/// Number of timed launches of each configuration in the first round.
const FIRST_LAUNCHES: u32 = 5;

/// Maximum number of timed launches of a configuration in a round.
const MOST_LAUNCHES: u32 = 100;

impl DeviceBackend {
    /// Chooses a configuration for the request's kernel if the kernel has several and the request
    /// names none.
    ///
    /// Other faults of the kernel are ignored here, because its evaluation reports them.
    pub(crate) async fn tuned(
        &self,
        job: &ActiveOrder<'_>,
        request: &mut EvaluateRequest,
        device: &DeviceInfo,
    ) -> Result<Option<TuningReport>, ExecError> {
        if request.kernel.kernel_type != KernelType::Triton {
            return Ok(None);
        }
        let began = Instant::now();
        job.stage(JobStage::Compiling);
        let timeout = crate::prepare::time_for(request.timeout);
        let options = CompileOptions { timeout, owner: job.owner(), ..CompileOptions::default() };
        let choices = self.host.compiler.choices(&request.kernel, &device.target, options).await;
        let Some(tunable) = choices else { return Ok(None) };
        let key = winners::key(request, device, job.owner());
        if let Some(mut report) = self.winners.get(&key, &tunable) {
            choose(&mut request.kernel, report.chosen);
            report.from_cache = true;
            report.total_ms = ms(began);
            return Ok(Some(report));
        }
        check(request, &tunable)?;
        let mut report = self.tune(job, request, &tunable, device).await?;
        report.total_ms = ms(began);
        choose(&mut request.kernel, report.chosen);
        if report.decided_by != TunedBy::Nothing {
            self.winners.put(key, &report);
        }
        Ok(Some(report))
    }

    async fn tune(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        tunable: &Tunable,
        device: &DeviceInfo,
    ) -> Result<TuningReport, ExecError> {
        let request = &beside_itself(request, tunable);
        let mut contenders =
            candidates::compiled(&self.host, job, request, tunable, device).await?;
        job.stage(JobStage::WaitingForDevice);
        let mut lease = self.host.quiet_lease(&need_of(job, device, request)).await?;
        let emulated = device.kind == DeviceKind::Emulator;
        let mut launches = if emulated { 1 } else { FIRST_LAUNCHES };
        loop {
            for contender in contenders.iter_mut().filter(|one| one.is_in()) {
                contender.run(self, job, request, &mut lease, launches).await?;
            }
            let left = contenders.iter().filter(|one| one.is_in()).count();
            if emulated || left <= 1 {
                break;
            }
            leave_out_slower_half(&mut contenders);
            launches = (2 * launches).min(MOST_LAUNCHES);
        }
        let chosen = if emulated {
            least_work(&contenders)
        } else {
            contenders.iter().position(Contender::is_in).or_else(|| best_of_outdone(&contenders))
        };
        Ok(report(contenders, chosen, tunable, emulated))
    }
}

/// Returns the request for trials. If the kernel itself defines an expected output, as the
/// reference of a comparison does, the request uses the kernel's first configuration for that
/// output.
fn beside_itself(request: &EvaluateRequest, tunable: &Tunable) -> EvaluateRequest {
    let mut request = request.clone();
    let Some(first) = tunable.configurations.first() else { return request };
    let named = |kernel: &KernelCode| {
        kernel.metadata.as_ref().and_then(|metadata| metadata.kernel_name.clone())
    };
    let KernelCode { source_code: source, files, .. } = request.kernel.clone();
    let name = named(&request.kernel);
    for expected in request.expected.values_mut() {
        if let Some(kernel) = &mut expected.kernel
            && kernel.kernel_type == KernelType::Triton
            && (&kernel.source_code, &kernel.files, named(kernel))
                == (&source, &files, name.clone())
            && kernel.metadata.as_ref().is_none_or(|metadata| metadata.configuration.is_none())
        {
            choose(kernel, first.index);
        }
    }
    request
}

/// Eliminates the slower half of the remaining configurations.
fn leave_out_slower_half(contenders: &mut [Contender]) {
    let times = contenders.iter().enumerate().filter(|(_, one)| one.is_in());
    let times = times.map(|(index, one)| (index, one.shown.median_ms.unwrap_or(f64::INFINITY)));
    for index in slower_half(times.collect()) {
        contenders[index].leave(TunedOutcome::Outdone, None);
    }
}

/// Returns the slower half of the entries by time: at least one entry, and never all of several.
fn slower_half(mut times: Vec<(usize, f64)>) -> Vec<usize> {
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let stay = times.len().div_ceil(2).min(times.len().saturating_sub(1));
    times.drain(stay..).map(|(index, _)| index).collect()
}

/// Returns the eliminated configuration that reached the most rounds; among equals, the fastest. It
/// is used if the fastest configuration failed in a late round.
fn best_of_outdone(contenders: &[Contender]) -> Option<usize> {
    let outdone = contenders
        .iter()
        .enumerate()
        .filter(|(_, one)| one.shown.outcome == TunedOutcome::Outdone)
        .filter_map(|(index, one)| Some((index, one.shown.rounds, one.shown.median_ms?)));
    outdone.min_by(|a, b| b.1.cmp(&a.1).then(a.2.total_cmp(&b.2))).map(|(index, ..)| index)
}

/// Returns the configuration whose exact counts show the least work; among equals, the first.
fn least_work(contenders: &[Contender]) -> Option<usize> {
    let counted: Vec<_> =
        contenders.iter().map(|one| one.shown.counted.filter(|_| one.is_in())).collect();
    let first = rank_counted(&counted).into_iter().next().map(|rank| rank.index as usize);
    // Without counts, all configurations are equal.
    first.or_else(|| contenders.iter().position(Contender::is_in))
}

fn report(
    mut contenders: Vec<Contender>,
    chosen: Option<usize>,
    tunable: &Tunable,
    emulated: bool,
) -> TuningReport {
    for (index, contender) in contenders.iter_mut().enumerate() {
        if Some(index) == chosen {
            contender.shown.outcome = TunedOutcome::Chosen;
        } else if contender.is_in() {
            contender.leave(TunedOutcome::Outdone, None);
        }
    }
    let first = contenders.first().map_or(0, |first| first.shown.index);
    let index = chosen.map_or(first, |chosen| contenders[chosen].shown.index);
    let tried = u32::try_from(contenders.len()).unwrap_or(u32::MAX);
    TuningReport {
        configurations: contenders.into_iter().map(|one| one.shown).collect(),
        chosen: index,
        decided_by: match chosen {
            None => TunedBy::Nothing,
            Some(_) if emulated => TunedBy::Counts,
            Some(_) => TunedBy::Times,
        },
        pruned: tunable.configurations_in_all.saturating_sub(tried),
        from_cache: false,
        total_ms: 0.0,
    }
}

/// Sets the configuration of a kernel.
pub(crate) fn choose(kernel: &mut KernelCode, index: u32) {
    kernel.metadata.get_or_insert_default().configuration = Some(index);
}

/// Checks that the contract is consistent with the arguments of `@triton.autotune`. Each launch
/// here finds the contract's initial values, and no host code resets anything.
fn check(request: &EvaluateRequest, tunable: &Tunable) -> Result<(), ExecError> {
    let invalid = |path: String, message: String| {
        ExecError::Invalid(vec![Problem { path, code: FailureCode::UnsupportedDecorator, message }])
    };
    if tunable.configurations.len() > MAX_CONFIGURATIONS {
        let message = format!(
            "@triton.autotune lists {} configurations; at most {MAX_CONFIGURATIONS} are tried: prune \
             them with prune_configs_by",
            tunable.configurations.len()
        );
        return Err(invalid("kernel".to_owned(), message));
    }
    let args = request.kernel.io.as_ref().map_or(&[][..], |io| &io.args);
    for &index in &tunable.reset_to_zero {
        let Some(arg) = args.get(index) else { continue };
        let init = arg.tensor_spec.as_ref().and_then(|spec| spec.init.as_ref());
        let zeros = init.is_some_and(|init| init.kind == InitKind::Zeros);
        if arg.role != Role::Inout || !zeros {
            return Err(invalid(
                format!("kernel.io.args[{index}]"),
                format!(
                    "@triton.autotune resets `{}` to zero, so the kernel adds to its content: give \
                     it `role: inout` and `init: {{kind: zeros}}`",
                    arg.name
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_half_goes_until_one_is_left() {
        let mut left: Vec<(usize, f64)> =
            [5.0, 1.0, f64::INFINITY, 3.0, 2.0].into_iter().enumerate().collect();
        let mut rounds = Vec::new();
        while left.len() > 1 {
            let gone = slower_half(left.clone());
            left.retain(|(index, _)| !gone.contains(index));
            rounds.push(left.iter().map(|(index, _)| *index).collect::<Vec<_>>());
        }
        assert_eq!(rounds, [vec![1, 3, 4], vec![1, 4], vec![1]]);
        assert_eq!(slower_half(Vec::new()), Vec::<usize>::new());
    }
}
