//! Compilations without a run: `POST /compile`.

use std::time::Instant;

use base64::Engine as _;

use crate::clock::ms;
use crate::error::{self, ExecError, Problem};
use crate::host::Host;
use crate::prepare::bind::type_name;
use crate::reporting::assemble;
use warpgauge_compile::{CompileError, CompileOptions, KernelInfo, Param};
use warpgauge_contract::{CompileRequest, KernelMetadata};
use warpgauge_model::{Diagnostic, FailureCode, Target};
use warpgauge_report::{CompileResponse, KernelParameter, KernelSignature, ResponseStatus};
use warpgauge_turns::Owner;

/// Maximum number of kernels whose parameters are reported.
const MAX_SIGNATURES: usize = 256;

/// Compiles a kernel and returns a report.
pub(crate) async fn run(
    host: &Host,
    request: CompileRequest,
    owner: Owner,
) -> Result<CompileResponse, ExecError> {
    let arrived = Instant::now();
    warpgauge_contract::validate_kernel(&request.kernel, &host.limits).map_err(error::invalid)?;
    let (target, arch_suffix) = match &request.arch {
        Some(arch) => named_target(host, arch)?,
        None => (host.default_device()?.target, None),
    };
    let options =
        CompileOptions { owner, any_kernel: true, arch_suffix, ..CompileOptions::default() };
    let compiled = host.compiler.compile(&request.kernel, &target, options).await;
    let mut response = CompileResponse {
        job_id: uuid::Uuid::new_v4().to_string(),
        status: ResponseStatus::Success,
        compiled: compiled.is_ok(),
        compilation_error: None,
        diagnostics: Vec::new(),
        compile: None,
        image_b64: None,
        image_format: None,
        signatures: Vec::new(),
        total_ms: 0.0,
    };
    match compiled {
        Ok(artifact) => {
            response.diagnostics = artifact.diagnostics.clone();
            response.image_format = Some(assemble::format_name(artifact.format).to_owned());
            if request.return_image {
                let text = base64::engine::general_purpose::STANDARD.encode(&artifact.image);
                response.image_b64 = Some(text);
            }
            response.signatures =
                artifact.kernels.iter().take(MAX_SIGNATURES).map(signature).collect();
            let mut report = assemble::compile_report(&artifact);
            if is_unnamed(&request) && artifact.kernels.len() > 1 {
                // Each kernel is listed in the signatures, with its resources.
                (report.symbol, report.resources) = (String::new(), None);
            }
            response.compile = Some(report);
        }
        Err(CompileError::Rejected(failure))
            if failure.code == FailureCode::NoKernel && has_template(&request) =>
        {
            response.compiled = true;
            response.diagnostics = failure.diagnostics;
            response.diagnostics.insert(0, note(failure.message));
        }
        Err(CompileError::Rejected(failure)) => {
            response.compilation_error = Some(failure.message);
            response.diagnostics = failure.diagnostics;
        }
        Err(other) => return Err(error::from_compile(other)),
    }
    response.total_ms = ms(arrived);
    Ok(response)
}

/// Returns whether a request names no kernel.
fn is_unnamed(request: &CompileRequest) -> bool {
    request.kernel.metadata.as_ref().and_then(KernelMetadata::name).is_none()
}

/// Returns whether a source that is compiled without a kernel name contains a kernel template.
fn has_template(request: &CompileRequest) -> bool {
    let texts = request.kernel.source_code.iter().chain(request.kernel.files.values());
    let mut kernels = texts.flat_map(|text| warpgauge_code::source::find_kernels(text));
    is_unnamed(request) && kernels.any(|kernel| kernel.template)
}

fn note(message: String) -> Diagnostic {
    Diagnostic::note(message)
}

/// Returns the signature of a kernel. It contains the parameter types that the compiled image
/// contains.
fn signature(kernel: &KernelInfo) -> KernelSignature {
    let parameter = |param: &Param| KernelParameter {
        name: param.name.clone(),
        c_type: type_name(&param.ctype, param.bytes),
        bytes: param.bytes,
    };
    KernelSignature {
        name: kernel.name.clone(),
        symbol: kernel.symbol.clone(),
        parameters: kernel.params.as_ref().map(|all| all.iter().map(parameter).collect()),
        resources: kernel.resources,
    }
}

/// Converts `sm_90` (machine code) or `compute_90` (PTX) to a target with the driver version of the
/// default device. Also returns the suffix letter of names such as `sm_90a`.
fn named_target(host: &Host, arch: &str) -> Result<(Target, Option<char>), ExecError> {
    let (digits, emulated) = match (arch.strip_prefix("sm_"), arch.strip_prefix("compute_")) {
        (Some(digits), _) => (digits, false),
        (None, Some(digits)) => (digits, true),
        (None, None) => ("", false),
    };
    let suffix = digits.chars().last().filter(|last| matches!(last, 'a' | 'f'));
    let number = digits.strip_suffix(['a', 'f']).unwrap_or(digits).parse::<u32>().ok();
    let capability = number.filter(|n| (50..=199).contains(n)).ok_or_else(|| {
        ExecError::Invalid(vec![Problem {
            path: "arch".to_owned(),
            code: FailureCode::InvalidValue,
            message: format!(
                "`{arch}` is not an architecture; expected one like sm_90, sm_90a or compute_90{}",
                match arch.starts_with(|first: char| first.is_ascii_digit()) {
                    true => format!(" (did you mean `sm_{arch}`?)"),
                    false => String::new(),
                }
            ),
        }])
    })?;
    let driver_version = host.default_device()?.target.driver_version;
    let compute_capability = (capability / 10, capability % 10);
    Ok((Target { compute_capability, driver_version, emulated }, suffix))
}
