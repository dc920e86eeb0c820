//! Outputs of evaluations that become shared tensors of their callers. The main type is
//! [`KeptTensor`].

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::SharedTensors;
use super::put::{self, TensorOptions};
use crate::error::ServiceError;
use crate::settings::ProcessRole;
use crate::submission::JobRequest;
use warpgauge_contract::{EvaluateRequest, KeepOutput};
use warpgauge_executor::JobOutcome;
use warpgauge_model::FailureCode;
use warpgauge_report::{EvaluateResponse, KeptOutput, KernelVerdict, OutputReport};
use warpgauge_shared_tensors::{FileElements, HeldTensor, NewTensor, TensorHolders};
use warpgauge_tensor::shape;

/// Options for the outputs to keep, by the names of the outputs.
pub(crate) type Wanted = BTreeMap<String, KeepOutput>;

/// A tensor that was created from an output. Dropping it deletes the tensor, unless a report that
/// mentions the tensor was written.
pub(crate) struct KeptTensor {
    holders: Arc<dyn TensorHolders>,
    owner: String,
    id: Uuid,
    told: bool,
}

impl KeptTensor {
    /// Keeps the tensor, because a report mentions it.
    pub(crate) fn told(mut self) {
        self.told = true;
    }
}

impl Drop for KeptTensor {
    fn drop(&mut self) {
        if self.told {
            return;
        }
        if let Ok((_, freed)) = self.holders.registry().delete(self.id, &self.owner) {
            self.holders.free_later(freed.into_iter().collect());
        }
    }
}

/// A job whose outputs become tensors.
pub(crate) trait KeepsOutputs: Sync {
    /// Returns the owner of the job and of its tensors.
    fn owner(&self) -> &str;
    /// Removes and returns the file of an output, or the reason why there is none. Returns `None`
    /// if the executor sent neither.
    fn take_output(&self, name: &str) -> Option<Result<tempfile::TempPath, String>>;
    /// Keeps a tensor until the job's report is written.
    fn keep_tensor(&self, tensor: KeptTensor);
}

/// Returns the outputs that a request asks to keep.
pub(crate) fn wanted(request: &JobRequest) -> Wanted {
    match request {
        JobRequest::Evaluate(request) | JobRequest::Execute(request) => {
            request.keep_outputs.clone()
        }
        JobRequest::Compare(_) | JobRequest::Sweep(_) | JobRequest::Gate(_) => Wanted::new(),
    }
}

impl SharedTensors {
    /// Checks whether the outputs can be kept as requested.
    pub(crate) fn check_kept(&self, request: &EvaluateRequest) -> Result<(), ServiceError> {
        if !request.keep_outputs.is_empty() && matches!(self.role, ProcessRole::Command) {
            let message = "only a running server keeps outputs: send the \
                           contract to a server, or request the outputs (`return_outputs`)";
            return Err(super::invalid("keep_outputs", FailureCode::InvalidValue, message));
        }
        for (name, how) in &request.keep_outputs {
            let placed = |error: ServiceError| error.within(&format!("keep_outputs.{name}"));
            put::place(self.holders.as_ref(), how.cuda_device).map_err(placed)?;
            how.ttl_s.map(put::time_to_live).transpose().map_err(placed)?;
        }
        Ok(())
    }

    /// Keeps the outputs of a job whose kernel was not found incorrect. Reports the result for each
    /// output. A failure here does not affect the verdict on the kernel.
    pub(crate) async fn keep_outputs(
        &self,
        job: &dyn KeepsOutputs,
        wanted: Wanted,
        outcome: &mut JobOutcome,
    ) {
        let JobOutcome::Evaluated(report) = outcome else { return };
        for (name, how) in wanted {
            let kept = match self.kept(job, &name, &how, report).await {
                Ok(held) => KeptOutput {
                    tensor_id: Some(held.id.to_string()),
                    device: Some(held.tensor.place.to_string()),
                    reason: None,
                },
                // The executor's reason is more specific.
                Err(_) if report.kept_outputs.contains_key(&name) => continue,
                Err(reason) => KeptOutput::not_kept(reason),
            };
            report.kept_outputs.insert(name, kept);
        }
    }

    async fn kept(
        &self,
        job: &dyn KeepsOutputs,
        name: &str,
        how: &KeepOutput,
        report: &EvaluateResponse,
    ) -> Result<HeldTensor, String> {
        if !is_right(report) {
            return Err(
                "outputs are kept only if the kernel ended normally and was not found wrong"
                    .to_owned(),
            );
        }
        let output = report.outputs.get(name);
        let output = output.ok_or_else(|| "it is not a tensor".to_owned())?;
        let file = job.take_output(name);
        let file =
            file.unwrap_or_else(|| Err("its content did not arrive with the report".to_owned()))?;
        let elements = elements(&file, output, how)
            .map_err(|error| format!("its content cannot be read: {error}"))?;
        let new = self.new_tensor(job, how, &elements).map_err(|error| error.to_string())?;
        let (tell, told) = oneshot::channel();
        let (holders, owner) = (Arc::clone(&self.holders), job.owner().to_owned());
        // The task continues even if the job stops, because a tensor and its entry in the registry
        // must exist together or not at all. A tensor without a receiver is deleted.
        tokio::spawn(async move {
            let held = put::hold(holders.as_ref(), new, elements).await;
            let held = held.map(|held| {
                (
                    KeptTensor { holders: Arc::clone(&holders), owner, id: held.id, told: false },
                    held,
                )
            });
            let _ = tell.send(held);
        });
        let held = told.await.map_err(|_| "its task ended without a result".to_owned())?;
        let (guard, held) = held.map_err(|error| error.to_string())?;
        job.keep_tensor(guard);
        Ok(held)
    }

    fn new_tensor(
        &self,
        job: &dyn KeepsOutputs,
        how: &KeepOutput,
        elements: &FileElements,
    ) -> Result<NewTensor, ServiceError> {
        let options = TensorOptions {
            cuda_device: how.cuda_device,
            sample_rate: how.sample_rate,
            name: how.name.clone(),
            ttl_s: how.ttl_s,
            evict: how.evict,
        };
        put::new(self.holders.as_ref(), job.owner(), &options, elements)
    }
}

/// Returns whether the kernel ended normally, and no check found it incorrect.
fn is_right(report: &EvaluateResponse) -> bool {
    report.kernel_verdict() <= KernelVerdict::Weak
}

fn elements(file: &Path, output: &OutputReport, how: &KeepOutput) -> std::io::Result<FileElements> {
    let file = File::open(file)?;
    let bytes = shape::bytes(&output.shape, output.dtype).map_err(std::io::Error::other)?;
    let found = file.metadata()?.len();
    if found != bytes {
        let message = format!("it has {found} bytes instead of {bytes}");
        return Err(std::io::Error::other(message));
    }
    Ok(FileElements {
        file: Arc::new(file),
        offset: 0,
        bytes,
        dtype: output.dtype,
        shape: output.shape.clone(),
        sample_rate: how.sample_rate,
    })
}
