//! Evaluates a small kernel. This check decides whether evaluations can run.

use serde_json::json;

use super::{Check, State};
use crate::cli::format::duration_ms;
use crate::cli::{CliError, local};
use warpgauge_config::Config;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::DeviceKind;
use warpgauge_report::{EvaluateResponse, KernelVerdict};
use warpgauge_service::{DeviceView, JobSubmission};

pub(super) const NAME: &str = "evaluation";

const PURPOSE: &str = "a small kernel is compiled, launched, checked and timed";

/// The evaluated kernel, which doubles each element.
const SOURCE: &str = "extern \"C\" __global__ void twice(const float* x, float* y, int n) {\n\
    \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
    \x20   if (i < n) y[i] = 2.0f * x[i];\n}\n";

/// The reference kernel. It computes the same result in another way, so that the outputs are really
/// checked.
const REFERENCE: &str = "extern \"C\" __global__ void sum(const float* x, float* y, int n) {\n\
    \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
    \x20   if (i < n) y[i] = x[i] + x[i];\n}\n";

/// Evaluates the kernel. Returns the checks of the evaluation and of the GPU.
pub(super) fn run(config: &Config) -> Result<(Check, Check), CliError> {
    let request: EvaluateRequest = serde_json::from_value(contract())
        .map_err(|error| CliError::Internal(format!("the doctor's contract: {error}")))?;
    let mut devices = Vec::new();
    let seen = &mut devices;
    let outcome = local::with_service(config, |service| async move {
        *seen = service.machine.status().devices;
        Ok(service.evaluations.evaluate(request, JobSubmission::local()).await?)
    });
    let gpu = gpu(&devices);
    match outcome {
        Err(CliError::Interrupted) => Err(CliError::Interrupted),
        Err(error) => Ok((failed(&error.render()), gpu)),
        Ok(response) => Ok((judged(&response), gpu)),
    }
}

fn contract() -> serde_json::Value {
    let args = json!([
        {"name": "x", "type": "tensor", "role": "input",
         "tensor_spec": {"shape": [1024], "dtype": "float32", "init": {"kind": "randn", "seed": 1}}},
        {"name": "y", "type": "tensor", "role": "output",
         "tensor_spec": {"shape": [1024], "dtype": "float32"}},
        {"name": "n", "type": "int", "value": 1024},
    ]);
    let launch = json!({"grid": {"x": 4}, "block": {"x": 256}});
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": SOURCE, "metadata": {"kernel_name": "twice"},
                   "io": {"args": args, "launch": launch}},
        "expected": {"y": {"kernel": {"kernel_type": "cuda", "source_code": REFERENCE,
                                      "metadata": {"kernel_name": "sum"}}}},
        "tolerance": {"atol": 0.0, "rtol": 0.0},
        "num_trials": 5,
    })
}

fn gpu(devices: &[DeviceView]) -> Check {
    let purpose = "provides real times; times on the emulator do not predict those on a GPU";
    let gpus = devices.iter().filter(|view| view.device.kind == DeviceKind::Cuda);
    let gpus = gpus.map(|view| {
        let device = &view.device;
        format!(
            "{} {}, compute {}, {}",
            device.id, device.name, device.compute_capability, view.state
        )
    });
    let gpus = gpus.collect::<Vec<_>>();
    if gpus.is_empty() {
        let remedy = "install the driver, or use a machine with a GPU: --server URL";
        return Check::lacks("gpu", purpose, State::Absent, ("none in use", remedy));
    }
    Check::ok("gpu", purpose, gpus.join("; "))
}

fn failed(why: &str) -> Check {
    let lines = why.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let remedy = "solve the problems above, then run: warpgauge doctor";
    Check::lacks(NAME, PURPOSE, State::Fault, (lines, remedy))
}

fn judged(response: &EvaluateResponse) -> Check {
    if response.kernel_verdict() != KernelVerdict::Correct {
        return failed(&format!(
            "{}: {}",
            response.kernel_verdict().words(),
            response.verdict_line(None)
        ));
    }
    let device = response.device.as_ref().map_or("no device", |device| &device.name);
    let took = duration_ms(response.timings.total);
    Check::ok(NAME, PURPOSE, format!("a small kernel is correct on {device} ({took})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_is_one() {
        let request: EvaluateRequest = serde_json::from_value(contract()).unwrap();
        assert!(request.expected.contains_key("y"));
    }

    #[test]
    fn an_error_is_a_fault_in_one_line() {
        let check = failed("cannot start\n  because: no compiler");
        assert_eq!(
            (check.state, check.found.as_str()),
            (State::Fault, "cannot start because: no compiler")
        );
        assert_eq!(gpu(&[]).state, State::Absent);
    }
}
