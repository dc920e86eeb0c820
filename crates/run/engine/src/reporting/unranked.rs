//! Reasons why the time of a kernel has no rank although no check failed. This module has no side
//! effects.

use crate::reporting::AUDITS;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::{DeviceInfo, DeviceKind};
use warpgauge_worker::protocol::{EvaluatedRun, RunOutcome, VariablesKept};

/// Returns the reason why the time of a run has no rank, or `None` if it has one.
pub(crate) fn unranked(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    outcome: &RunOutcome<EvaluatedRun>,
) -> Option<String> {
    barely_verified(device, outcome).or_else(|| unlisted(request, outcome))
}

/// Returns a reason if too few timed launches were verified, because each verification takes long.
/// Then a kernel that omits work in some launches could remain undetected. Never applies to the
/// emulated device, whose times are not ranked.
fn barely_verified(device: &DeviceInfo, outcome: &RunOutcome<EvaluatedRun>) -> Option<String> {
    let audits = &outcome.told.audits;
    let few = audits.skipped > 0 && audits.done < AUDITS && device.kind == DeviceKind::Cuda;
    few.then(|| {
        format!(
            "{} timed launches were verified, but at least {AUDITS} are needed, because \
             verifying one takes long: the time has no rank. Make the reference kernel faster, or \
             the tensors smaller",
            audits.done
        )
    })
}

/// Returns a reason if a kernel could keep a result in state that cannot be listed, while its
/// inputs are the same for all launches. The caller can accept that and rank the time.
fn unlisted(request: &EvaluateRequest, outcome: &RunOutcome<EvaluatedRun>) -> Option<String> {
    let Some(VariablesKept::NotKnown(reason)) = &outcome.told.variables else { return None };
    (!request.measure.rank_unlisted_state).then(|| {
        format!(
            "not all inputs vary, and the state that the kernel's modules keep between launches is not known \
             ({reason}), so a result may have been kept: the time has no rank. Make all inputs vary, \
             avoid such state, or set `measure.rank_unlisted_state`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::h200;
    use warpgauge_worker::protocol::AuditFacts;

    #[test]
    fn a_time_has_no_rank_where_too_few_launches_could_be_verified() {
        let told = |done, skipped, kind| {
            let mut outcome = RunOutcome::<EvaluatedRun>::default();
            outcome.told.audits = AuditFacts { done, skipped };
            barely_verified(&DeviceInfo { kind, ..h200() }, &outcome)
        };
        let note = told(12, 54, DeviceKind::Cuda).expect("a note");
        assert!(note.starts_with("12 timed launches were verified, but at least 66"), "{note}");
        // All launches verified; enough of many verified; nothing to rank.
        assert_eq!(told(20, 0, DeviceKind::Cuda), None);
        assert_eq!(told(AUDITS, 3, DeviceKind::Cuda), None);
        assert_eq!(told(12, 54, DeviceKind::Emulator), None);
    }

    #[test]
    fn a_time_has_no_rank_where_state_is_not_listed_and_inputs_stay() {
        let mut outcome = RunOutcome::<EvaluatedRun>::default();
        let mut request =
            serde_json::from_str::<EvaluateRequest>(r#"{"kernel": {"kernel_type": "ptx"}}"#)
                .unwrap();
        assert_eq!(unlisted(&request, &outcome), None);
        outcome.told.variables = Some(VariablesKept::PutBack);
        assert_eq!(unlisted(&request, &outcome), None);
        outcome.told.variables = Some(VariablesKept::NotKnown("the image uses malloc".to_owned()));
        let why = unlisted(&request, &outcome).expect("a reason");
        assert!(why.contains("(the image uses malloc)"), "{why}");
        request.measure.rank_unlisted_state = true;
        assert_eq!(unlisted(&request, &outcome), None);
    }
}
