//! Reasons why a kernel is rejected, as stable codes and sentences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Comparison;
use super::message::validation_error;

use warpgauge_model::FailureCode;

/// Reason why a kernel is rejected. Codes are never renamed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// An output differs from its expectation beyond the tolerance. The comparison lists the first mismatches; if
    /// rounding causes the error, give a `tolerance` that the algorithm can meet.
    OutputMismatch,
    /// Elements of an output were never written. Write every element in every launch; an output
    /// that keeps earlier content needs role `inout`.
    OutputUnwritten,
    /// An output holds NaN or an infinity where a number is expected. Look for division by zero,
    /// overflow and unwritten memory.
    NonFiniteOutput,
    /// An argument of role `input` was changed. Give arguments that the kernel writes role `output`
    /// or `inout`.
    InputModified,
    /// Memory outside a buffer was written. Check index computations at both ends of the buffer; run with `sanitize:
    /// true` to find the line.
    GuardBandWritten,
    /// Timed launches on equal inputs gave different results, not all of which are correct. Look
    /// for state that is kept between launches, data races and uninitialised memory.
    OutputVariesBetweenTrials,
    /// The outputs are correct for the contract's seed, but wrong for others. The code must not depend on the values
    /// of one input.
    WrongForOtherSeeds,
    /// The result depends on earlier launches. Keep nothing between launches: reset counters and
    /// accumulators within the launch.
    DependsOnHistory,
    /// Launches on the same inputs, with all state restored, give different results. Look for races between threads
    /// and blocks, and for memory that is read before it is written.
    Nondeterministic,
    /// The time is below the least time of the contract's `work` at the device's peak rates. The kernel does not do
    /// the work, or `work` declares more than is necessary.
    FasterThanLight,
    /// The kernel accessed memory outside its buffers. Run with `sanitize: true` to find the line.
    MemoryFault,
    /// The launch was rejected or ended abnormally. Check block size, shared memory and registers
    /// against the device's limits, and asserts and traps in the code.
    LaunchFailed,
    /// The kernel did not end within its time limit. Look for endless loops and barriers that not all threads reach;
    /// `timeout` can be raised to 600 s.
    Timeout,
    /// The buffers do not fit into the device's memory. Make the tensors smaller.
    OutOfMemory,
    /// A memory check reported a fault. The finding names the kernel, the thread and, if known, the
    /// line.
    SanitizerFault,
    /// No timed launch is a valid sample. The measurement gives the reason for each dropped sample.
    NoValidSamples,
    /// The contract's reference kernel failed, so there is no expectation. Correct the reference.
    ReferenceFailed,
    /// The program's exit code is not the expected one, or not 0 if none is expected. The report contains its output.
    ExitCode,
    /// A signal ended the program, e.g. after an access to unmapped memory.
    EndedBySignal,
}

/// Reason why a kernel is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Code of the reason. It stays the same in later versions.
    pub code: ReasonCode,
    /// Description of the fault, with its place and a remedy.
    pub message: String,
}

impl ReasonCode {
    /// Every code, in order of declaration.
    pub const ALL: [ReasonCode; 19] = [
        ReasonCode::OutputMismatch,
        ReasonCode::OutputUnwritten,
        ReasonCode::NonFiniteOutput,
        ReasonCode::InputModified,
        ReasonCode::GuardBandWritten,
        ReasonCode::OutputVariesBetweenTrials,
        ReasonCode::WrongForOtherSeeds,
        ReasonCode::DependsOnHistory,
        ReasonCode::Nondeterministic,
        ReasonCode::FasterThanLight,
        ReasonCode::MemoryFault,
        ReasonCode::LaunchFailed,
        ReasonCode::Timeout,
        ReasonCode::OutOfMemory,
        ReasonCode::SanitizerFault,
        ReasonCode::NoValidSamples,
        ReasonCode::ReferenceFailed,
        ReasonCode::ExitCode,
        ReasonCode::EndedBySignal,
    ];

    /// Returns the code's name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ReasonCode::OutputMismatch => "output_mismatch",
            ReasonCode::OutputUnwritten => "output_unwritten",
            ReasonCode::NonFiniteOutput => "non_finite_output",
            ReasonCode::InputModified => "input_modified",
            ReasonCode::GuardBandWritten => "guard_band_written",
            ReasonCode::OutputVariesBetweenTrials => "output_varies_between_trials",
            ReasonCode::WrongForOtherSeeds => "wrong_for_other_seeds",
            ReasonCode::DependsOnHistory => "depends_on_history",
            ReasonCode::Nondeterministic => "nondeterministic",
            ReasonCode::FasterThanLight => "faster_than_light",
            ReasonCode::MemoryFault => "memory_fault",
            ReasonCode::LaunchFailed => "launch_failed",
            ReasonCode::Timeout => "timeout",
            ReasonCode::OutOfMemory => "out_of_memory",
            ReasonCode::SanitizerFault => "sanitizer_fault",
            ReasonCode::NoValidSamples => "no_valid_samples",
            ReasonCode::ReferenceFailed => "reference_failed",
            ReasonCode::ExitCode => "exit_code",
            ReasonCode::EndedBySignal => "ended_by_signal",
        }
    }

    /// Returns the reason for a failed run, if the failure is the fault of the kernel or the reference, and not of
    /// the machine. `assert` and `trap` end a launch like any other fault. Findings of the verification have the same
    /// name in both enums.
    pub fn of_failure(code: &FailureCode) -> Option<Self> {
        Some(match code {
            FailureCode::IllegalAddress
            | FailureCode::MisalignedAddress
            | FailureCode::InvalidAddressSpace
            | FailureCode::InvalidPc
            | FailureCode::HardwareStackError => ReasonCode::MemoryFault,
            FailureCode::LaunchOutOfResources
            | FailureCode::IllegalInstruction
            | FailureCode::Assert
            | FailureCode::CooperativeLaunchTooLarge
            | FailureCode::InvalidValue => ReasonCode::LaunchFailed,
            FailureCode::LaunchTimeout => ReasonCode::Timeout,
            code => return Self::ALL.into_iter().find(|reason| reason.failure() == *code),
        })
    }

    /// Returns the failure code of a run that failed for this reason.
    pub fn failure(self) -> FailureCode {
        match self {
            ReasonCode::OutputMismatch => FailureCode::OutputMismatch,
            ReasonCode::OutputUnwritten => FailureCode::OutputUnwritten,
            ReasonCode::NonFiniteOutput => FailureCode::NonFiniteOutput,
            ReasonCode::InputModified => FailureCode::InputModified,
            ReasonCode::GuardBandWritten => FailureCode::GuardBandWritten,
            ReasonCode::OutputVariesBetweenTrials => FailureCode::OutputVariesBetweenTrials,
            ReasonCode::WrongForOtherSeeds => FailureCode::WrongForOtherSeeds,
            ReasonCode::DependsOnHistory => FailureCode::DependsOnHistory,
            ReasonCode::Nondeterministic => FailureCode::Nondeterministic,
            ReasonCode::FasterThanLight => FailureCode::FasterThanLight,
            ReasonCode::MemoryFault => FailureCode::MemoryFault,
            ReasonCode::LaunchFailed => FailureCode::LaunchFailed,
            ReasonCode::Timeout => FailureCode::Timeout,
            ReasonCode::OutOfMemory => FailureCode::OutOfMemory,
            ReasonCode::SanitizerFault => FailureCode::SanitizerFault,
            ReasonCode::NoValidSamples => FailureCode::NoValidSamples,
            ReasonCode::ReferenceFailed => FailureCode::ReferenceFailed,
            ReasonCode::ExitCode => FailureCode::ExitCode,
            ReasonCode::EndedBySignal => FailureCode::EndedBySignal,
        }
    }
}

impl std::fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Reason {
    /// Creates a reason from a code and a message.
    pub fn new(code: ReasonCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the reason for a failed comparison, or `None` if it passed. The most specific code is used: unwritten
    /// before not finite before different.
    pub fn of_comparison(output: &str, comparison: &Comparison) -> Option<Self> {
        let message = validation_error(output, comparison)?;
        let code = if comparison.unwritten > 0 {
            ReasonCode::OutputUnwritten
        } else if comparison.non_finite > 0 {
            ReasonCode::NonFiniteOutput
        } else {
            ReasonCode::OutputMismatch
        };
        Some(Self { code, message })
    }

    /// Returns the reason for a changed input. `element` is the first element that changed, if known.
    pub fn input_modified(input: &str, element: Option<u64>) -> Self {
        let place = element.map_or(String::new(), |at| format!(", first at element {at}"));
        let message = format!(
            "the kernel changed its input `{input}`{place}; an argument that the kernel writes \
             needs role `output` or `inout`"
        );
        Self { code: ReasonCode::InputModified, message }
    }

    /// Returns the reason for a write outside a buffer, `distance` bytes before its first byte (`before`) or
    /// after its last.
    pub fn guard_band_written(argument: &str, before: bool, distance: u64) -> Self {
        let place = if before { "before its start" } else { "past its end" };
        let message = format!(
            "the kernel wrote outside `{argument}`, {distance} bytes {place}; check its index \
             computations against the shapes of the contract, or run it with `sanitize: true` on \
             the emulator to find the line"
        );
        Self { code: ReasonCode::GuardBandWritten, message }
    }

    /// Returns the reason for a change of what a launch left, between the end of that launch and its
    /// verification.
    pub fn results_changed() -> Self {
        let message = "the results of a timed launch were changed after it had ended, in memory \
                       outside the buffers; check the kernel's index computations, or run it with \
                       `sanitize: true` on the emulator to find the line"
            .to_owned();
        Self { code: ReasonCode::GuardBandWritten, message }
    }

    /// Returns the reason for a time below the speed-of-light bound of the contract's work.
    pub fn faster_than_light(measured_s: f64, floor_s: f64, bound_by: &str) -> Self {
        let message = format!(
            "a launch takes {:.3e} s, less than the {:.3e} s that the contract's `work` needs at \
             the device's peak ({bound_by}); the kernel does not do the work, or `work` declares \
             too much",
            measured_s, floor_s
        );
        Self { code: ReasonCode::FasterThanLight, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filling, compare, resolve};
    use warpgauge_tensor::Dtype;

    #[test]
    fn names_are_those_on_the_wire() {
        for code in ReasonCode::ALL {
            let json = serde_json::to_value(code).unwrap();
            assert_eq!(json, code.name());
            assert_eq!(code.failure().as_str(), code.name(), "a failed run has the same code");
            assert_eq!(ReasonCode::of_failure(&code.failure()), Some(code));
            assert_eq!(serde_json::from_value::<ReasonCode>(json).unwrap(), code);
        }
        let distinct: std::collections::BTreeSet<_> = ReasonCode::ALL.into_iter().collect();
        assert_eq!(distinct.len(), ReasonCode::ALL.len());
    }

    #[test]
    fn the_most_telling_code_of_a_comparison_wins() {
        let expected = vec![0; 16];
        let filling = Filling::not_a_number(77);
        let reason = |actual: &[f32]| {
            let actual: Vec<u8> = actual.iter().flat_map(|x| x.to_le_bytes()).collect();
            let tolerance = resolve(None, Dtype::Float32, &[]);
            let result =
                compare(Dtype::Float32, &[4], &actual, &expected, Some(filling), &tolerance);
            Reason::of_comparison("y", &result).map(|reason| reason.code)
        };
        let poison = f32::from_bits(filling.word(Dtype::Float32));
        assert_eq!(reason(&[0.0; 4]), None);
        assert_eq!(reason(&[0.0, 1.0, 0.0, 0.0]), Some(ReasonCode::OutputMismatch));
        assert_eq!(reason(&[0.0, 1.0, f32::INFINITY, 0.0]), Some(ReasonCode::NonFiniteOutput));
        assert_eq!(reason(&[1.0, poison, f32::INFINITY, 0.0]), Some(ReasonCode::OutputUnwritten));
    }

    #[test]
    fn texts_say_what_where_and_what_to_do() {
        let input = Reason::input_modified("x", Some(17));
        assert!(input.message.contains("`x`, first at element 17"), "{}", input.message);
        let guard = Reason::guard_band_written("y", false, 12);
        assert!(guard.message.contains("12 bytes past its end"), "{}", guard.message);
    }

    #[test]
    fn failures_of_the_machine_are_no_reason_against_a_kernel() {
        assert_eq!(
            ReasonCode::of_failure(&FailureCode::IllegalAddress),
            Some(ReasonCode::MemoryFault)
        );
        assert_eq!(ReasonCode::of_failure(&FailureCode::Timeout), Some(ReasonCode::Timeout));
        assert_eq!(
            ReasonCode::of_failure(&FailureCode::GuardBandWritten),
            Some(ReasonCode::GuardBandWritten)
        );
        assert_eq!(ReasonCode::of_failure(&FailureCode::WorkerDied), None);
        assert_eq!(ReasonCode::of_failure(&FailureCode::EccUncorrectable), None);
    }
}
