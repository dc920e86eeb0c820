//! Outputs to be stored. The receiver of the order's events gets their elements as files.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::progress::{ActiveOrder, ProgressEvent};
use crate::reporting::Ran;
use warpgauge_contract::{EvaluateRequest, ReturnOutputs};
use warpgauge_report::{EvaluateResponse, KeptOutput, OutputReport};
use warpgauge_tensor::{Blob, TensorData, encoding};

/// Requests all outputs of an untimed run, unless the request names outputs to return or store. The
/// outputs are the purpose of such a run.
pub(crate) fn return_something(request: &mut EvaluateRequest) {
    if request.return_outputs == ReturnOutputs::None && request.keep_outputs.is_empty() {
        request.return_outputs = ReturnOutputs::All;
    }
}

/// Emits an event for each output to be stored, after a run on a device.
pub(crate) fn hand_over(job: &ActiveOrder<'_>, ran: &Ran) {
    for output in &ran.outcome.told.outputs {
        let name = &ran.prepared.job.program.buffers[output.buffer].name;
        let Some(file) = &output.file else { continue };
        if ran.request.keep_outputs.contains_key(name) {
            job.emit(ProgressEvent::Output { name: name.clone(), file: file.clone() });
        }
    }
}

/// Moves the outputs `names` of a torch kernel from its report to files in a directory. Returns the
/// files by name. Outputs in `shown` also remain in the report. Blocking.
pub(crate) fn taken_out(
    names: &[String],
    shown: &ReturnOutputs,
    report: &mut EvaluateResponse,
    directory: &Path,
) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(output) = report.outputs.get_mut(name) else { continue };
        if output.data_b64.is_none() {
            let reason = "a torch kernel's outputs are part of its report, but this output exceeds the maximum size of a report \
                          (limits.max_output_bytes)";
            report.kept_outputs.insert(name.clone(), KeptOutput::not_kept(reason));
            continue;
        }
        let path = directory.join(format!("output-{index}.bin"));
        match unpack(output, &path) {
            Ok(()) => files.push((name.clone(), path)),
            Err(error) => {
                let reason = format!("its content cannot be written to a file: {error}");
                report.kept_outputs.insert(name.clone(), KeptOutput::not_kept(reason));
            }
        }
        if !shown.include(name) {
            (output.data_b64, output.compress, output.format) = (None, None, None);
        }
    }
    files
}

/// Writes the elements of an output to a file.
fn unpack(
    output: &OutputReport,
    path: &Path,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let text = output.data_b64.clone().unwrap_or_default();
    let data = TensorData {
        compress: output.compress.unwrap_or_default(),
        format: output.format.unwrap_or_default(),
        ..TensorData::raw(Blob::from_base64(text))
    };
    encoding::decode_to_file(&data, output.dtype, &output.shape, &File::create(path)?)?;
    Ok(())
}
