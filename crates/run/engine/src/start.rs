//! Starts the components of an executor: compilers, workers and tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{self, ExecError};
use crate::support;
use warpgauge_compile::toolchain::{self, Toolchain, ToolchainSearch};
use warpgauge_compile::{Compiler, CompilerConfig};
use warpgauge_config::{Config, DeviceSelection};
use warpgauge_job_views::Unready;
use warpgauge_nsight::{ToolSearch, Tools};
use warpgauge_worker::{DeviceChoice, Fleet, FleetConfig};

/// Returns the path of the running program. Child processes are started from the same file.
pub fn program() -> Result<PathBuf, ExecError> {
    std::env::current_exe().map_err(|error| {
        ExecError::Unavailable(format!("cannot find the path of this program: {error}"))
    })
}

/// Returns the locations in which compilers are searched for.
pub fn toolchain_search(config: &Config) -> ToolchainSearch {
    let given = |text: &str| Some(text).filter(|text| !text.is_empty()).map(PathBuf::from);
    ToolchainSearch {
        explicit: given(&config.compile.toolchain),
        cache_dir: config.data_dir().to_owned(),
        python: given(&config.compile.python),
    }
}

/// Configures the search for NVIDIA's tools. The tools of the compilers' installation are used only
/// if no others are found.
pub(crate) fn start_tools(
    config: &Config,
    run_dir: &Path,
    toolchain: &Toolchain,
) -> Result<Tools, ExecError> {
    let directory = run_dir.join("tools");
    std::fs::create_dir(&directory).map_err(|error| {
        ExecError::Unavailable(format!("cannot create {}: {error}", directory.display()))
    })?;
    let disassemblers = toolchain.cuobjdump.iter().chain(&toolchain.nvdisasm);
    let brought = disassemblers.filter_map(|tool| tool.path.parent()).map(PathBuf::from);
    Ok(Tools::new(ToolSearch::new(&config.tools.path, directory).and_last(brought)))
}

pub(crate) fn start_compiler(
    config: &Config,
    data_dir: &Path,
    run_dir: &Path,
    program: &Path,
) -> Result<Arc<Compiler>, ExecError> {
    let search = toolchain_search(config);
    let toolchain = toolchain::discover(&search);
    if search.python.is_some()
        && let Err(why) = toolchain.triton()
    {
        tracing::warn!(reason = why.reason, remedy = why.remedy, "there is no Triton");
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parallelism = match config.compile.parallelism {
        0 => cores,
        given => given,
    };
    Compiler::new(CompilerConfig {
        program: program.to_owned(),
        cache_dir: data_dir.join("cubins"),
        cache_max_bytes: config.compile.cache_max_bytes,
        run_dir: run_dir.to_owned(),
        parallelism,
        shared: config.server.has_several_keys(),
        timeout: Duration::from_secs_f64(config.compile.timeout_s),
        toolchain,
    })
    .map(Arc::new)
    .map_err(|error| ExecError::Unavailable(error::chain(&error)))
}

pub(crate) async fn start_fleet(
    config: &Config,
    run_dir: &Path,
    program: &Path,
    compiler: &Arc<Compiler>,
) -> Result<Arc<Fleet>, ExecError> {
    let devices = match config.device_selection() {
        DeviceSelection::Auto => DeviceChoice::Auto,
        DeviceSelection::Emulator => DeviceChoice::Emulator,
        DeviceSelection::Ordinals(ordinals) => DeviceChoice::Ordinals(ordinals),
    };
    let emulator = Some(&config.devices.emulator).filter(|path| !path.is_empty());
    let fleet = FleetConfig {
        program: program.to_owned(),
        devices,
        emulator: emulator.map(PathBuf::from),
        cupti: compiler.toolchain().cupti.clone(),
        libraries: compiler.toolchain().libraries.clone(),
        run_dir: run_dir.to_owned(),
        hot_spare: config.devices.hot_spare,
        queue_capacity: config.devices.queue_capacity,
        start_timeout: Duration::from_secs(60),
    };
    Fleet::start(fleet, support::support_source(compiler))
        .await
        .map_err(|error| ExecError::Unavailable(error::chain(&error)))
}

/// Returns the reason if nothing can be evaluated because there is no CUDA compiler. On a GPU,
/// Triton is not a substitute: the workers' support kernels, which write inputs and examine
/// outputs, are in CUDA C++. For the emulated device, the program contains their PTX.
pub(crate) fn no_compiler(toolchain: &Toolchain, emulated: bool) -> Option<Unready> {
    let there = |path: &Path| path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0);
    let nvrtc = toolchain.nvrtc.iter().map(|found| found.path.as_path());
    let all: Vec<&Path> =
        nvrtc.chain(toolchain.nvcc.iter().map(|found| found.path.as_path())).collect();
    if all.iter().any(|path| there(path)) || (emulated && toolchain.triton.is_some()) {
        return None;
    }
    let remedy = "`warpgauge toolchain install` installs NVRTC, or name a CUDA toolkit in \
                  compile.toolchain (WARPGAUGE_TOOLCHAIN); then restart the server";
    let message = match all.first() {
        None => {
            let beside = toolchain.triton.as_ref().map_or("", |_| {
                " (Triton was, but the workers' own kernels, which write inputs and examine \
                 outputs, need one for requests in any language)"
            });
            format!("no CUDA compiler was found{beside}; {remedy}")
        }
        Some(path) => {
            format!(
                "the CUDA compiler {} no longer exists; restore it, or {remedy}",
                path.display()
            )
        }
    };
    Some(Unready::new("no_compiler", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_compile::toolchain::{NvrtcInstall, PartOrigin, TritonInstall};

    #[test]
    fn a_compiler_must_still_be_where_it_was_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libnvrtc.so");
        let install = NvrtcInstall {
            path: path.clone(),
            version: (13, 0),
            full_version: None,
            source: PartOrigin::Explicit,
            include_dirs: Vec::new(),
            lacks: Vec::new(),
        };
        let toolchain = Toolchain { nvrtc: vec![install], ..Toolchain::default() };
        let told =
            |toolchain: &Toolchain| no_compiler(toolchain, false).map(|unready| unready.message);
        assert!(told(&Toolchain::default()).unwrap().contains("toolchain install"));
        assert!(told(&toolchain).unwrap().contains(path.to_str().unwrap()));
        // The file was truncated while it was copied.
        std::fs::write(&path, "").unwrap();
        assert!(told(&toolchain).is_some());
        std::fs::write(&path, "library").unwrap();
        assert_eq!(told(&toolchain), None);
    }

    /// Workers of a GPU cannot be started without a CUDA compiler.
    #[test]
    fn triton_alone_is_no_compiler_on_a_gpu_and_the_message_has_the_reason() {
        let install = TritonInstall {
            python: "/python".into(),
            python_version: "3.12.0".into(),
            site_packages: "/packages".into(),
            roots: Vec::new(),
            version: "3.6.0".into(),
            ptxas: "/packages/ptxas".into(),
            ptxas_blackwell: None,
            torch: false,
            source: PartOrigin::Explicit,
        };
        let toolchain = Toolchain { triton: Some(install), ..Toolchain::default() };
        let told = no_compiler(&toolchain, false).unwrap().message;
        assert!(told.contains("Triton was") && told.contains("toolchain install"), "{told}");
        assert_eq!(no_compiler(&toolchain, true), None);
        assert!(no_compiler(&Toolchain::default(), true).is_some());
    }
}
