//! Explanation of the verdict on a kernel in one line.

use super::{EvaluateResponse, KernelVerdict};
use warpgauge_contract::{KernelFamily, KernelRuntime, KernelType};
use warpgauge_model::Severity;

/// Maximum number of wrong outputs that the line names.
const MAX_OUTPUTS: usize = 3;

impl EvaluateResponse {
    /// Returns the reason for the verdict on the kernel. The line uses `name`, or else the name in
    /// the report.
    pub fn verdict_line(&self, name: Option<&str>) -> String {
        let family = self.kernel_exec_result.metadata.kernel_type.map(KernelType::family);
        let unnamed = format!("the {}", family.map_or("kernel", KernelFamily::noun));
        let own = self.kernel_exec_result.metadata.kernel_name.as_deref();
        let name = name.or(own).unwrap_or(&unnamed);
        let is_program = family.map(KernelFamily::runtime) == Some(KernelRuntime::Process);
        match self.kernel_verdict() {
            KernelVerdict::NotChecked if is_program => format!(
                "{name} ran; the contract has no expectation for it (`expected.stdout`, \
                 `expected.exit_code`)"
            ),
            KernelVerdict::NotChecked => format!(
                "{name} ran; the contract does not say what its outputs must be (`expected`)"
            ),
            verdict => format!("{name}: {}", self.found(verdict, is_program)),
        }
    }

    fn found(&self, verdict: KernelVerdict, is_program: bool) -> String {
        let failed = || {
            let failure = self.failure.as_ref();
            failure.map(|failure| format!("{} [{}]", failure.message, failure.code))
        };
        let against = self.kernel_exec_result.validation_error.clone();
        match verdict {
            KernelVerdict::Correct | KernelVerdict::NotChecked if is_program => {
                "the program ended as expected, with the expected output".to_owned()
            }
            KernelVerdict::Correct | KernelVerdict::NotChecked => {
                match self.validation.outputs.len() {
                    1 => "1 output checked".to_owned(),
                    n => format!("{n} outputs checked"),
                }
            }
            KernelVerdict::Weak => {
                let why = self.why_weak().unwrap_or_default();
                format!("it passes, but a useless kernel would pass too: {why}")
            }
            KernelVerdict::Wrong | KernelVerdict::Failed => failed()
                .or_else(|| self.wrong_outputs())
                .or(against)
                .unwrap_or_else(|| "outputs differ".to_owned()),
            KernelVerdict::NotCompiled => self.compiler_errors(),
            KernelVerdict::Error => {
                failed().unwrap_or_else(|| "the service gave no reason".to_owned())
            }
        }
    }

    /// Returns the number of wrong elements of each wrong output, for at most [`MAX_OUTPUTS`]
    /// outputs. Returns `None` if no output is wrong, or if a wrong output has only half precision.
    fn wrong_outputs(&self) -> Option<String> {
        let wrong = || self.validation.outputs.iter().filter(|(_, one)| !one.passed);
        if wrong().any(|(_, one)| one.half_precision) {
            return None;
        }
        let shown = wrong().take(MAX_OUTPUTS).map(|(name, one)| {
            let differ = one.elements - one.matched.min(one.elements);
            let mut text = format!("`{name}`: {differ} of {} elements ", one.elements);
            if one.unwritten == differ {
                return text + "were never written";
            }
            text.push_str("differ");
            // An element that was never written may contain NaN.
            let odd = one.non_finite.saturating_sub(one.unwritten);
            for (count, what) in [(one.unwritten, "never written"), (odd, "NaN or infinite")] {
                if count > 0 {
                    text.push_str(&format!(", {count} {what}"));
                }
            }
            text
        });
        let shown = shown.collect::<Vec<_>>().join("; ");
        let more = match wrong().count().saturating_sub(MAX_OUTPUTS) {
            0 => String::new(),
            more => format!("; {more} more outputs are wrong"),
        };
        (!shown.is_empty()).then(|| format!("{shown}{more}"))
    }

    fn compiler_errors(&self) -> String {
        let diagnostics = self.compile.iter().flat_map(|compile| &compile.diagnostics);
        match diagnostics.filter(|one| one.severity == Severity::Error).count() {
            0 => "the compiler rejected it".to_owned(),
            1 => "1 error".to_owned(),
            n => format!("{n} errors"),
        }
    }
}
