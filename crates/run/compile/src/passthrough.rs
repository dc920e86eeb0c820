//! Checks PTX, cubins and fatbins, which need no compilation, before a driver loads them.

use super::artifact::{CompileTimings, CompiledModule, KernelInfo};
use super::binary::{
    Cubin, FatbinEntry, FatbinKind, Ptx, cuda_version_of, read_cubin, read_fatbin, read_ptx,
    variables_of,
};
use super::cache::KeyInputs;
use super::describe::Knowledge;
use super::error::CompileError;
use super::job::kernel_name;
use super::select::Wanted;
use super::source::source_text;
use warpgauge_contract::{Backend, KernelCode, KernelType};
use warpgauge_model::{FailureCode, ImageFormat, Target};

/// Maximum size of an image, bytes.
const MAX_BINARY_BYTES: u64 = 256 << 20;

/// Name of the compiler in artifacts that were not compiled here.
const PASSTHROUGH: &str = "passthrough";

/// An image that a caller sent.
pub(crate) struct Passthrough {
    kind: KernelType,
    code: Vec<u8>,
    target: Target,
    kernel_name: Option<String>,
    any_kernel: bool,
}

impl Passthrough {
    /// Extracts the image of a request. Returns `None` for CUDA source.
    pub(crate) fn new(
        kernel: &KernelCode,
        target: &Target,
        any_kernel: bool,
    ) -> Result<Option<Self>, CompileError> {
        let code = match kernel.kernel_type {
            KernelType::Cuda => return Ok(None),
            KernelType::Ptx => source_text(kernel)?.as_bytes().to_vec(),
            KernelType::Cubin | KernelType::Fatbin => binary(kernel)?,
            other => {
                let message = format!("kernels of type {other:?} are not compiled here");
                return Err(CompileError::rejected(FailureCode::UnsupportedKernelType, message));
            }
        };
        let kernel_name = kernel_name(kernel)?.map(str::to_owned);
        Ok(Some(Self { kind: kernel.kernel_type, code, target: *target, kernel_name, any_kernel }))
    }

    /// Checks the image and describes its kernels.
    pub(crate) fn check(self) -> Result<CompiledModule, CompileError> {
        let wanted = Wanted { name: self.kernel_name.as_deref(), any: self.any_kernel };
        let mut artifact = match self.kind {
            KernelType::Cubin => cubin(&self.code, &self.target, wanted)?,
            KernelType::Fatbin => fatbin(&self.code, &self.target, wanted)?,
            _ => ptx(&String::from_utf8_lossy(&self.code), &self.target, wanted)?,
        };
        let inputs = KeyInputs {
            kind: self.kind,
            code: &self.code,
            options: &[],
            arch_suffix: None,
            backend: Backend::default(),
            name_expressions: &[],
            fields: &[],
            kernel_name: wanted.key(),
            target: self.target,
            lineinfo: false,
            compiler: None,
            prelude: "",
            headers: &[],
        };
        artifact.key = inputs.key().to_string();
        Ok(artifact)
    }
}

fn binary(kernel: &KernelCode) -> Result<Vec<u8>, CompileError> {
    let kind = format!("{:?}", kernel.kernel_type).to_lowercase();
    let Some(blob) = &kernel.binary_b64 else {
        let message = format!("kernel.binary_b64 is missing; send the {kind} there as base64");
        return Err(CompileError::rejected(FailureCode::MissingBinary, message));
    };
    let bytes = blob.to_bytes(MAX_BINARY_BYTES).map_err(|e| {
        let message = format!("kernel.binary_b64 does not give a {kind}: {e}");
        CompileError::rejected(FailureCode::InvalidBinary, message)
    })?;
    if bytes.is_empty() {
        let message = format!("kernel.binary_b64 is empty; send the {kind} there as base64");
        return Err(CompileError::rejected(FailureCode::MissingBinary, message));
    }
    Ok(bytes)
}

/// Checks PTX text and describes its kernels.
fn ptx(text: &str, target: &Target, wanted: Wanted<'_>) -> Result<CompiledModule, CompileError> {
    let ptx = read_ptx(text)
        .map_err(|e| CompileError::rejected(FailureCode::InvalidPtx, e.to_string()))?;
    check_ptx(&ptx, target)?;
    let knowledge = Knowledge::default();
    let kernels: Vec<KernelInfo> = ptx.kernels.into_iter().map(|k| knowledge.ptx(k)).collect();
    let entry = wanted.of(&kernels, &[])?;
    Ok(artifact(text.as_bytes(), ImageFormat::Ptx, kernels, entry))
}

fn check_ptx(ptx: &Ptx, target: &Target) -> Result<(), CompileError> {
    let needed = cuda_version_of(ptx.version);
    // The emulator reads the PTX, and rejects unsupported instructions rather than versions.
    if !target.emulated && needed > target.driver_version {
        let (major, minor) = ptx.version;
        let message = format!(
            "the PTX is version {major}.{minor}, which needs a driver for CUDA {} or newer; this \
             driver supports CUDA {}: compile with an older toolkit, or send the CUDA source",
            cuda_text(needed),
            cuda_text(target.driver_version)
        );
        return Err(CompileError::rejected(FailureCode::PtxTooNew, message));
    }
    let Some((arch, suffix)) = ptx.arch() else {
        let message =
            format!("the PTX target {:?} is not an architecture such as sm_80", ptx.target);
        return Err(CompileError::rejected(FailureCode::InvalidPtx, message));
    };
    let device = target.architecture();
    // Code for `sm_NNa` runs only on its exact architecture, and code for `sm_NNf` within its
    // family.
    let fits = match suffix {
        "" => arch <= device,
        "a" => arch == device,
        "f" => arch <= device && arch / 10 == device / 10,
        _ => false,
    };
    if !fits {
        let message = format!(
            "the PTX is for {}, but the device is sm_{device}; compile for sm_{device} or an older \
             architecture",
            ptx.target
        );
        return Err(CompileError::rejected(FailureCode::WrongArchitecture, message));
    }
    Ok(())
}

fn cuda_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Returns whether machine code runs on a device: the major architectures are equal, and the
/// device's minor version is the same or later.
fn runs_on(code: u32, device: u32) -> bool {
    code / 10 == device / 10 && code <= device
}

/// Checks a cubin and describes its kernels.
fn cubin(
    image: &[u8],
    target: &Target,
    wanted: Wanted<'_>,
) -> Result<CompiledModule, CompileError> {
    let cubin = read_cubin(image)
        .map_err(|e| CompileError::rejected(FailureCode::InvalidCubin, e.to_string()))?;
    let device = target.architecture();
    if target.emulated {
        let message = format!(
            "the cubin contains machine code for sm_{}, which an emulated device cannot run; send PTX \
             or CUDA source",
            cubin.arch
        );
        return Err(CompileError::rejected(FailureCode::EmulatorNeedsPtx, message));
    }
    if !runs_on(cubin.arch, device) {
        let message = format!(
            "the cubin is for sm_{}, but the device is sm_{device}; compile for sm_{device}, or \
             send PTX or CUDA source",
            cubin.arch
        );
        return Err(CompileError::rejected(FailureCode::WrongArchitecture, message));
    }
    let kernels = machine_code(cubin);
    let entry = wanted.of(&kernels, &[])?;
    Ok(artifact(image, ImageFormat::Cubin, kernels, entry))
}

fn machine_code(cubin: Cubin) -> Vec<KernelInfo> {
    let knowledge = Knowledge::default();
    cubin.kernels.into_iter().map(|k| knowledge.machine_code(k)).collect()
}

/// Checks a fat binary, finds the image that the driver would load, and describes its kernels.
fn fatbin(
    image: &[u8],
    target: &Target,
    wanted: Wanted<'_>,
) -> Result<CompiledModule, CompileError> {
    let entries = read_fatbin(image)
        .map_err(|e| CompileError::rejected(FailureCode::InvalidFatbin, e.to_string()))?;
    let device = target.architecture();
    let Some(chosen) = choose(&entries, device, target.emulated) else {
        let message = format!(
            "the fatbin has no image for {}sm_{device}; it contains {}",
            if target.emulated { "an emulated device (which needs PTX) of " } else { "" },
            contents(&entries)
        );
        return Err(CompileError::rejected(FailureCode::WrongArchitecture, message));
    };
    let Some(inner) = chosen.image() else {
        if target.emulated {
            let message = "the PTX in the fatbin is compressed in an unsupported format; send \
                the PTX itself, or build with --no-compress";
            return Err(CompileError::rejected(FailureCode::EmulatorNeedsPtx, message));
        }
        return opaque(image, &entries, wanted);
    };
    match chosen.kind {
        FatbinKind::Ptx => {
            let text = String::from_utf8_lossy(&inner);
            let text = text.trim_end_matches('\0');
            let inside = ptx(text, target, wanted)?;
            if target.emulated {
                return Ok(inside);
            }
            Ok(artifact(image, ImageFormat::Fatbin, inside.kernels, inside.entry))
        }
        _ => {
            let inside = cubin(&inner, target, wanted)?;
            Ok(artifact(image, ImageFormat::Fatbin, inside.kernels, inside.entry))
        }
    }
}

/// Returns the newest machine code that runs on the device, or otherwise the newest PTX that can be
/// compiled for it.
fn choose<'a, 'b>(
    entries: &'b [FatbinEntry<'a>],
    device: u32,
    emulated: bool,
) -> Option<&'b FatbinEntry<'a>> {
    let best = |kind, fits: &dyn Fn(u32) -> bool| {
        entries.iter().filter(|e| e.kind == kind && fits(e.arch)).max_by_key(|e| e.arch)
    };
    let ptx = || best(FatbinKind::Ptx, &|arch| arch <= device);
    if emulated {
        return ptx();
    }
    best(FatbinKind::Cubin, &|arch| runs_on(arch, device)).or_else(ptx)
}

fn contents(entries: &[FatbinEntry<'_>]) -> String {
    let name = |entry: &FatbinEntry<'_>| match entry.kind {
        FatbinKind::Ptx => format!("PTX for compute_{}", entry.arch),
        FatbinKind::Cubin => format!("machine code for sm_{}", entry.arch),
        FatbinKind::Other(kind) => format!("an image of kind {kind} for sm_{}", entry.arch),
    };
    match entries {
        [] => "no image".into(),
        entries => entries.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

/// Describes a fat binary whose image cannot be read here. The driver will read it, so the caller
/// must give the kernel name.
fn opaque(
    image: &[u8],
    entries: &[FatbinEntry<'_>],
    wanted: Wanted<'_>,
) -> Result<CompiledModule, CompileError> {
    let Some(name) = wanted.name else {
        let message = format!(
            "the images of the fatbin are compressed in an unsupported format ({}): give \
             metadata.kernel_name",
            contents(entries)
        );
        return Err(CompileError::rejected(FailureCode::AmbiguousKernel, message));
    };
    let kernel =
        KernelInfo { symbol: name.into(), name: name.into(), params: None, resources: None };
    Ok(artifact(image, ImageFormat::Fatbin, vec![kernel], 0))
}

fn artifact(
    image: &[u8],
    format: ImageFormat,
    kernels: Vec<KernelInfo>,
    entry: usize,
) -> CompiledModule {
    CompiledModule {
        variables: variables_of(image, format),
        image: image.into(),
        format,
        kernels,
        entry,
        compiler: PASSTHROUGH.into(),
        options: Vec::new(),
        log: String::new(),
        diagnostics: Vec::new(),
        key: String::new(),
        cache_hit: false,
        timings: CompileTimings::default(),
        launch: None,
        stages: Vec::new(),
    }
}

#[cfg(test)]
#[path = "passthrough_tests.rs"]
mod tests;
