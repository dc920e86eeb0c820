//! Comparisons of torch kernels with kernels for a device: what is right is the reference's to say, whichever it
//! is. Torch kernels compute on the CPU, and no time is compared with one that another thing was timed by.

use std::collections::BTreeMap;
use std::time::Instant;

use super::compare::{SharedCase, assembled, candidate_report};
use super::evaluate::seed;
use crate::compare::{REFERENCE_PATH, placed, unusable_reference};
use crate::error::{self, ExecError, Problem};
use crate::local::LocalExecutor;
use crate::progress::ActiveOrder;
use crate::run::{Purpose, ms};
use warpgauge_contract::{Candidate, CompareRequest, EvaluateRequest, KernelFamily, ReturnOutputs};
use warpgauge_model::{DeviceKind, FailureCode, JobStage};
use warpgauge_report::{CandidateReport, CompareResponse, EvaluateResponse, OutputReport};
use warpgauge_tensor::{Blob, TensorData};

impl LocalExecutor {
    /// Takes a comparison of both kinds of kernels to its report.
    pub(in super::super) async fn compare_mixed(
        &self,
        job: &ActiveOrder<'_>,
        request: CompareRequest,
    ) -> Result<CompareResponse, ExecError> {
        let arrived = Instant::now();
        warpgauge_contract::validate_compare(&request, &self.limits).map_err(error::invalid)?;
        job.stage(JobStage::WaitingForDevice);
        let mut response = match request.ref_kernel.family() == KernelFamily::Torch {
            true => Box::pin(self.compare_with_torch(job, &request)).await?,
            false => Box::pin(self.compare_with_device(job, &request)).await?,
        };
        response.timings.total = ms(arrived);
        Ok(response)
    }

    /// Compares with a torch kernel.
    async fn compare_with_torch(
        &self,
        job: &ActiveOrder<'_>,
        request: &CompareRequest,
    ) -> Result<CompareResponse, ExecError> {
        let shared = SharedCase { executor: self, job, request, seed: seed() };
        let reference = Box::pin(shared.judge(&request.ref_kernel, false)).await;
        let reference = usable(reference.map(|judgement| judgement.report))?;
        let mut timings = reference.timings;
        let mut candidates = Vec::new();
        for (index, Candidate { name, kernel }) in
            request.named_candidates().into_iter().enumerate()
        {
            let own = match kernel.family() == KernelFamily::Torch {
                true => {
                    let judged = Box::pin(shared.judge(&kernel, true)).await;
                    judged.map(|judgement| judgement.report)
                }
                false => {
                    let alone = request.evaluation_of(&kernel);
                    self.evaluate(job, alone, Purpose::Rank).await
                }
            };
            let own = own.map_err(|error| placed(error, &request.path_of(index)))?;
            timings.add(&own.timings);
            let why = unranked(&reference, &own);
            candidates.push(candidate_report(name, own, &why));
        }
        Ok(with_device(assembled(job.id(), reference, candidates, timings)))
    }

    /// Compares with a kernel for a device: those for the same device as always, torch kernels with what it
    /// leaves for the contract's own inputs.
    async fn compare_with_device(
        &self,
        job: &ActiveOrder<'_>,
        request: &CompareRequest,
    ) -> Result<CompareResponse, ExecError> {
        let all = request.named_candidates();
        let in_python = |one: &Candidate| one.kernel.family() == KernelFamily::Torch;
        let mut response = if all.iter().all(in_python) {
            let reference = request.evaluation_of(&request.ref_kernel);
            let reference = usable(self.evaluate(job, reference, Purpose::Rank).await)?;
            let timings = reference.timings;
            assembled(job.id(), reference, Vec::new(), timings)
        } else {
            let candidates = all.iter().filter(|one| !in_python(one)).cloned().collect();
            let request = CompareRequest { custom_kernel: None, candidates, ..request.clone() };
            self.compare(job, request).await?
        };
        for (index, Candidate { name, kernel }) in all.iter().enumerate() {
            if kernel.family() != KernelFamily::Torch {
                continue;
            }
            let alone = request.evaluation_of(kernel);
            let own = self.evaluate(job, alone, Purpose::Evaluate).await;
            let own = own.map_err(|error| placed(error, &request.path_of(index)))?;
            response.timings.add(&own.timings);
            let why = unranked(&response.reference, &own);
            let report: CandidateReport = candidate_report(name.clone(), own, &why);
            response.candidates.insert(index.min(response.candidates.len()), report);
        }
        if let Some(first) = response.candidates.first() {
            response.kernel_exec_result = first.evaluation.kernel_exec_result.clone();
            response.not_compared.clone_from(&first.not_compared);
            (response.comparison, response.counted) = (first.comparison.clone(), first.counted);
        }
        Ok(with_device(response))
    }

    /// Has kernels for a device leave what a torch kernel is expected to, for the contract's own inputs: they
    /// are data from there on.
    pub(super) async fn expect_from_device(
        &self,
        job: &ActiveOrder<'_>,
        request: &mut EvaluateRequest,
    ) -> Result<(), ExecError> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, expected) in &request.expected {
            let kernel =
                expected.kernel.as_deref().filter(|one| one.family() != KernelFamily::Torch);
            let Some(kernel) = kernel else { continue };
            let identity = serde_json::to_string(kernel).unwrap_or_else(|_| name.clone());
            found.entry(identity).or_default().push(name.clone());
        }
        for names in found.into_values() {
            let path = format!("expected.{}.kernel", names[0]);
            let oracle = request.expected[&names[0]].kernel.as_deref();
            let io = request.kernel.io.clone().unwrap_or_default();
            let Some(oracle) = oracle else { continue };
            let run = EvaluateRequest {
                kernel: oracle.as_reference(&io, request.kernel.kernel_type),
                expected: BTreeMap::new(),
                return_outputs: ReturnOutputs::Names(names.clone()),
                keep_outputs: BTreeMap::new(),
                profile: None,
                ..request.clone()
            };
            let report = self.evaluate(job, run, Purpose::Execute).await;
            let report = report.map_err(|error| at(error, &path))?;
            for name in names {
                let left = report.outputs.get(&name).and_then(content);
                let left = left.ok_or_else(|| not_left(&report, &path))?;
                if let Some(expected) = request.expected.get_mut(&name) {
                    (expected.data, expected.kernel) = (Some(left), None);
                }
            }
        }
        Ok(())
    }
}

/// A reference that can be compared with.
fn usable(reference: Result<EvaluateResponse, ExecError>) -> Result<EvaluateResponse, ExecError> {
    let reference = reference.map_err(|error| placed(error, REFERENCE_PATH))?;
    if reference.kernel_exec_result.runtime.is_none() {
        return Err(unusable_reference(&reference));
    }
    Ok(reference)
}

/// What an output holds, as content of a request.
fn content(output: &OutputReport) -> Option<TensorData> {
    Some(TensorData {
        dtype: Some(output.dtype),
        shape: Some(output.shape.clone()),
        compress: output.compress?,
        format: output.format?,
        ..TensorData::raw(Blob::from_base64(output.data_b64.clone()?))
    })
}

/// Problems of a reference as those of the request that names it.
fn at(error: ExecError, path: &str) -> ExecError {
    let ExecError::Invalid(problems) = error else { return error };
    let moved = problems.into_iter().map(|problem| match problem.path.strip_prefix("kernel") {
        Some(rest) => Problem { path: format!("{path}{rest}"), ..problem },
        None => problem,
    });
    ExecError::Invalid(moved.collect())
}

/// A reference that leaves nothing is the contract's fault.
fn not_left(report: &EvaluateResponse, path: &str) -> ExecError {
    let result = &report.kernel_exec_result;
    let failure = report.failure.as_ref().map(|failure| &failure.message);
    let why = result.compilation_error.as_ref().or(failure).or(result.validation_error.as_ref());
    let why = why.map_or("it leaves no outputs", String::as_str);
    ExecError::Invalid(vec![Problem {
        path: path.to_owned(),
        code: FailureCode::ReferenceFailed,
        message: format!("the reference cannot be used: {why}"),
    }])
}

/// The comparison with the device that one of its kernels ran on.
fn with_device(mut response: CompareResponse) -> CompareResponse {
    let candidates = response.candidates.iter().map(|candidate| &candidate.evaluation);
    let first = std::iter::once(&response.reference).chain(candidates);
    if let Some(report) = first.into_iter().find(|report| report.device.is_some()) {
        let (device, gpu_type) = (report.device.clone(), report.gpu_type.clone());
        (response.device, response.gpu_type) = (device, gpu_type);
    }
    response
}

/// Why neither is called faster.
fn unranked(reference: &EvaluateResponse, candidate: &EvaluateResponse) -> String {
    let place = |report: &EvaluateResponse| match report.device.as_ref().map(|device| device.kind) {
        None => "the CPU",
        Some(DeviceKind::Emulator) => "the emulated device",
        Some(DeviceKind::Cuda) => "a GPU",
    };
    let (one, other) = (place(reference), place(candidate));
    if one == other {
        return format!("both ran on {one}, whose times rank nothing: both are in the reports");
    }
    format!(
        "the reference ran on {one} and this one on {other}: times of different clocks are never compared, \
         and are in the reports of each; whether it is right is said"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_references_stand_where_they_are() {
        let problem = |path: &str| {
            let code = FailureCode::MissingIo;
            ExecError::Invalid(vec![Problem {
                path: path.to_owned(),
                code,
                message: String::new(),
            }])
        };
        for (path, wanted) in
            [("kernel.io.launch", "expected.y.kernel.io.launch"), ("timeout", "timeout")]
        {
            let ExecError::Invalid(moved) = at(problem(path), "expected.y.kernel") else {
                panic!("another error");
            };
            assert_eq!(moved[0].path, wanted);
        }
    }
}
