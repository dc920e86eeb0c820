//! Report entries for software that was found on this machine.

use std::path::Path;

use warpgauge_compile::toolchain::Toolchain;
use warpgauge_contract::KernelType;
use warpgauge_report::ToolReport;

/// Returns the report of a Python package that some kernels need.
pub(crate) fn package(
    kernel_type: KernelType,
    found: Result<(&Path, &str), (String, String)>,
) -> ToolReport {
    let (there, why) = match found {
        Ok(there) => (Some(there), None),
        Err(why) => (None, Some(why)),
    };
    ToolReport {
        name: kernel_type.name().to_owned(),
        available: there.is_some(),
        path: there.map(|(path, _)| path.display().to_string()),
        version: there.map(|(_, version)| version.to_owned()),
        reason: why.as_ref().map(|(reason, _)| reason.clone()),
        remedy: why.map(|(_, remedy)| remedy),
    }
}

/// Returns the compilers that were found, one per line.
pub(crate) fn compilers(toolchain: &Toolchain) -> Vec<String> {
    let nvrtc = toolchain.nvrtc.iter().map(|found| {
        format!("nvrtc {} ({}, {})", found.version_text(), found.source, found.path.display())
    });
    let nvcc = toolchain.nvcc.iter().map(|found| {
        format!("nvcc {} ({}, {})", found.version, found.source, found.path.display())
    });
    let triton = toolchain.triton.iter().map(|found| {
        format!("triton {} ({}, {})", found.version, found.source, found.site_packages.display())
    });
    nvrtc.chain(nvcc).chain(triton).collect()
}
