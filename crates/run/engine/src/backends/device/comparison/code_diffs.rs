//! Differences between the codes of compared kernels. Machine code is compared if it can be
//! disassembled, otherwise PTX.

use std::sync::Arc;

use super::Evaluated;
use crate::backends::device::DeviceBackend;
use crate::error;
use crate::progress::ActiveOrder;
use warpgauge_code::listing::{CodeDiff, CodeLanguage};
use warpgauge_compile::{CompileOptions, CompiledModule, Compiler};
use warpgauge_contract::{Candidate, CompareRequest, KernelCode, KernelType};
use warpgauge_model::{DeviceInfo, ImageFormat, Target};
use warpgauge_turns::Owner;

/// The listing of an image's code, and the symbol of the kernel in it.
struct Listed {
    text: Arc<str>,
    symbol: String,
}

/// Returns the difference between each candidate and the reference, or the reason why it is
/// unknown. An entry is `None` if a kernel did not compile or the codes are equal.
pub(super) async fn all(
    backend: &DeviceBackend,
    job: &ActiveOrder<'_>,
    request: &CompareRequest,
    candidates: &[(usize, Candidate)],
    device: &DeviceInfo,
    evaluated: &[Evaluated],
) -> Vec<Option<Result<CodeDiff, String>>> {
    let Some((reference, others)) = evaluated.split_first() else { return Vec::new() };
    let mut diffs = Vec::with_capacity(others.len());
    let compiler = &backend.host.compiler;
    for (own, (_, candidate)) in others.iter().zip(candidates) {
        let (Some(a), Some(b)) = (&reference.prepared, &own.prepared) else {
            diffs.push(None);
            continue;
        };
        if a.artifact.same_code(&b.artifact) == Some(true) {
            diffs.push(None);
            continue;
        }
        let sides = [(&request.ref_kernel, &a.artifact), (&candidate.kernel, &b.artifact)];
        diffs.push(Some(code_diff(compiler, sides, device.target, job.owner()).await));
    }
    diffs
}

async fn code_diff(
    compiler: &Compiler,
    sides: [(&KernelCode, &CompiledModule); 2],
    target: Target,
    owner: Owner,
) -> Result<CodeDiff, String> {
    let language = common_language(compiler, sides)?;
    let [reference, candidate] = sides;
    let reference = listed(compiler, reference, language, target, owner).await?;
    let candidate = listed(compiler, candidate, language, target, owner).await?;
    let compared = tokio::task::spawn_blocking(move || {
        let read = |listed: &Listed| {
            warpgauge_code::listing::instructions(&listed.text, language, &listed.symbol)
                .ok_or_else(|| format!("the listing does not contain the kernel {}", listed.symbol))
        };
        Ok(warpgauge_code::listing::diff(language, &read(&reference)?, &read(&candidate)?))
    });
    compared.await.map_err(|error| format!("comparing the codes failed: {error}"))?
}

/// Returns a language in which both kernels can be listed.
fn common_language(
    compiler: &Compiler,
    sides: [(&KernelCode, &CompiledModule); 2],
) -> Result<CodeLanguage, String> {
    let formats = sides.map(|(_, artifact)| artifact.format);
    if formats.contains(&ImageFormat::Library) {
        return Err("the code of a library's function is not listed".to_owned());
    }
    let reasons = formats.map(|format| compiler.cannot_disassemble(format));
    if reasons.iter().all(Option::is_none) {
        return Ok(CodeLanguage::Sass);
    }
    let has_ptx = |(code, artifact): &(&KernelCode, &CompiledModule)| {
        artifact.format == ImageFormat::Ptx
            || code.kernel_type == KernelType::Cuda
            || ptx_of(artifact).is_some()
    };
    if sides.iter().all(has_ptx) {
        return Ok(CodeLanguage::Ptx);
    }
    let why = reasons.into_iter().flatten().map(|why| error::chain(&why)).next();
    Err(why.unwrap_or_else(|| "one kernel is machine code, the other is PTX".to_owned()))
}

async fn listed(
    compiler: &Compiler,
    (code, artifact): (&KernelCode, &CompiledModule),
    language: CodeLanguage,
    target: Target,
    owner: Owner,
) -> Result<Listed, String> {
    let listed = |text: Arc<str>, of: &CompiledModule| Listed {
        text,
        symbol: of.entry_kernel().symbol.clone(),
    };
    match (language, artifact.format) {
        (CodeLanguage::Sass, format) => {
            let text = compiler.disassemble(&artifact.image, format, owner).await;
            Ok(listed(text.map_err(|why| error::chain(&why))?, artifact))
        }
        (CodeLanguage::Ptx, ImageFormat::Ptx) => {
            Ok(listed(String::from_utf8_lossy(&artifact.image).into(), artifact))
        }
        (CodeLanguage::Ptx, _) if ptx_of(artifact).is_some() => {
            Ok(listed(ptx_of(artifact).unwrap_or_default().into(), artifact))
        }
        (CodeLanguage::Ptx, _) => {
            let code = KernelCode { io: None, ..code.clone() };
            let target = Target { emulated: true, ..target };
            let options = CompileOptions { owner, ..CompileOptions::default() };
            let made = compiler.compile(&code, &target, options).await;
            let made = made.map_err(|why| error::chain(&why))?;
            Ok(listed(String::from_utf8_lossy(&made.image).into(), &made))
        }
    }
}

/// Returns the PTX from which machine code was assembled, if the compiler kept it.
fn ptx_of(artifact: &CompiledModule) -> Option<&str> {
    let found = artifact.stages.iter().find(|(language, _)| language == "ptx");
    found.map(|(_, text)| text.as_str())
}
