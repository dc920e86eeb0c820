//! Converts an interpreter's answer to an artifact. The answer is checked like an image that a
//! caller sent.

use std::path::Path;

use super::parameters;
use crate::artifact::{
    CompileTimings, CompiledLaunch, CompiledModule, KernelInfo, PassedValue, Scratch,
};
use crate::binary::{Ptx, cuda_version_of, read_cubin, read_ptx};
use crate::describe::Knowledge;
use crate::diagnostics::bound_log;
use crate::error::CompileError;
use crate::protocol::triton::{DescriptorMeta, TritonBuilt};
use crate::ptxas;
use warpgauge_model::{FailureCode, ImageFormat, Target};

/// Maximum number of threads per block on any device.
const MAX_THREADS: u32 = 1024;

/// Maximum shared memory of a block, bytes: more than any device has.
const MAX_SHARED: u32 = 1 << 20;

/// Maximum number of blocks of a cluster on any device.
const MAX_CLUSTER: u32 = 16;

/// Maximum scratch memory of one block, bytes.
const MAX_SCRATCH: u64 = 1 << 30;

/// Languages whose texts are stored, in the order of compilation.
const STAGES: [&str; 4] = ["ttir", "ttgir", "llir", "ptx"];

/// Maximum length of a stored text, bytes.
const MAX_STAGE_BYTES: usize = 4 << 20;

/// Returns the artifact, without its key and without facts about the compiler that only the caller
/// knows. `site_packages` is the directory that contains Triton's package.
pub(super) fn artifact(
    built: TritonBuilt,
    compiler: String,
    target: &Target,
    site_packages: &Path,
) -> Result<CompiledModule, CompileError> {
    let launch_problem = problem(&built);
    if let Some(problem) = launch_problem {
        return Err(faulty(&problem));
    }
    let text = built.texts.get("ptx").map_or("", String::as_str);
    let ptx = read_ptx(text).map_err(|error| faulty(&error.to_string()))?;
    check_driver(&ptx, target)?;
    let symbol = &built.metadata.name;
    let Some(entry) = ptx.kernels.iter().find(|kernel| kernel.symbol == *symbol) else {
        return Err(faulty(&format!("the PTX contains no kernel {symbol:?}")));
    };
    let maps = built.metadata.tensordesc_meta.as_deref().unwrap_or_default();
    check_maps(maps)?;
    let given = parameters::of_code(&built.parameters, maps, &entry.params)
        .map_err(|error| faulty(&error))?;
    let needs_scratch = built.metadata.global_scratch_size > 0;
    if needs_scratch && !given.iter().any(|(_, passed)| *passed == PassedValue::Scratch) {
        return Err(faulty("it needs scratch memory, but has no parameter for it"));
    }
    let (params, passed): (Vec<_>, Vec<_>) = given.into_iter().unzip();
    let mut kernel = KernelInfo {
        symbol: symbol.clone(),
        name: built.kernel.clone(),
        params: Some(params),
        resources: None,
    };
    let (image, format) = if built.cubin.is_empty() {
        (text.as_bytes().into(), ImageFormat::Ptx)
    } else {
        kernel.resources = resources(&built)?;
        (built.cubin.as_slice().into(), ImageFormat::Cubin)
    };
    let launch = launch(&built, passed);
    Ok(CompiledModule {
        variables: Vec::new(),
        image,
        format,
        kernels: vec![kernel],
        entry: 0,
        compiler,
        options: Vec::new(),
        log: bound_log(ptxas::without_usage(&built.log)),
        diagnostics: Vec::new(),
        key: String::new(),
        cache_hit: false,
        timings: CompileTimings { total_ms: 0.0, compiler_ms: built.compiler_ms },
        stages: stages(&built, site_packages),
        launch: Some(launch),
    })
}

/// Returns the texts to store. They refer to lines of Triton's library, because kernels call its
/// functions. The directories in these references are replaced by relative ones. The code that runs
/// is not changed.
fn stages(built: &TritonBuilt, site_packages: &Path) -> Vec<(String, String)> {
    let here = format!("{}/triton/", site_packages.display());
    let stages = STAGES.iter().filter_map(|&stage| {
        let text = built.texts.get(stage).filter(|text| text.len() <= MAX_STAGE_BYTES)?;
        Some((stage.to_owned(), text.replace(&here, "triton/")))
    });
    stages.collect()
}

/// Rejects tensor maps that Triton's launcher supports and this program does not.
fn check_maps(maps: &[Option<DescriptorMeta>]) -> Result<(), CompileError> {
    let what = maps.iter().flatten().find_map(|meta| match meta {
        DescriptorMeta { fp4_padded: true, .. } => Some("padded elements of four bits"),
        DescriptorMeta { is_im2col: true, .. } => Some("a convolution's access (im2col)"),
        _ => None,
    });
    let Some(what) = what else { return Ok(()) };
    Err(CompileError::rejected(
        FailureCode::UnsupportedDecorator,
        format!(
            "a descriptor of the contract is for {what}, which is not supported: create it in the kernel \
             with `tl.make_tensor_descriptor`"
        ),
    ))
}

/// Checks that the driver is recent enough. Code of a CUDA major version needs a driver of that
/// version or later.
fn check_driver(ptx: &Ptx, target: &Target) -> Result<(), CompileError> {
    let needed = cuda_version_of(ptx.version) / 1000;
    let driver = target.driver_version / 1000;
    if target.emulated || needed <= driver {
        return Ok(());
    }
    Err(CompileError::Environment {
        what: format!(
            "this Triton generates code for CUDA {needed}, but the driver supports CUDA {driver}"
        ),
        remedy: "use an older Triton, or a newer driver".into(),
    })
}

/// Returns the reason why a launch is impossible, or `None` if it is possible.
fn problem(built: &TritonBuilt) -> Option<String> {
    let metadata = &built.metadata;
    let threads = metadata.num_warps.saturating_mul(32);
    if !(1..=MAX_THREADS).contains(&threads) {
        return Some(format!(
            "it has {threads} threads per block; 1 to {MAX_THREADS} are possible"
        ));
    }
    if metadata.shared > MAX_SHARED {
        return Some(format!("it needs {} bytes of shared memory", metadata.shared));
    }
    if !(1..=MAX_CLUSTER).contains(&metadata.num_ctas) {
        return Some(format!("it has {} blocks in a cluster", metadata.num_ctas));
    }
    let align = metadata.global_scratch_align;
    if metadata.global_scratch_size > MAX_SCRATCH || !align.is_power_of_two() || align > 4096 {
        let bytes = metadata.global_scratch_size;
        return Some(format!(
            "it needs {bytes} bytes of scratch memory per block, aligned to {align}"
        ));
    }
    (metadata.profile_scratch_size > 0)
        .then(|| "it is instrumented for Triton's profiler".to_owned())
}

fn launch(built: &TritonBuilt, parameters: Vec<PassedValue>) -> CompiledLaunch {
    let metadata = &built.metadata;
    CompiledLaunch {
        threads: metadata.num_warps * 32,
        shared_bytes: metadata.shared,
        blocks_per_program: metadata.num_ctas,
        cooperative: metadata.launch_cooperative_grid,
        parameters,
        scratch: Scratch {
            bytes_per_block: metadata.global_scratch_size,
            align: metadata.global_scratch_align,
        },
        constants: built.constants.iter().map(|(n, v)| (n.clone(), v.clone())).collect(),
    }
}

/// Returns the kernel's resource usage according to the machine code and the assembler.
fn resources(built: &TritonBuilt) -> Result<Option<warpgauge_model::Resources>, CompileError> {
    let cubin = read_cubin(&built.cubin).map_err(|error| faulty(&error.to_string()))?;
    let knowledge = Knowledge { usage: ptxas::usage(&built.log), ..Knowledge::default() };
    let kernel = cubin.kernels.into_iter().find(|kernel| kernel.symbol == built.metadata.name);
    let kernel = kernel.ok_or_else(|| faulty("the machine code lacks the kernel"))?;
    Ok(knowledge.machine_code(kernel).resources)
}

fn faulty(what: &str) -> CompileError {
    let message = format!("the result of Triton's compiler cannot be run: {what}");
    CompileError::rejected(FailureCode::CompilerFailed, message)
}
