//! Data about the parts of a toolchain. The main type is [`Toolchain`].

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::torch::{NoTorch, TorchInstall};
use super::triton::{NoTriton, TritonInstall};

/// The parts of a toolchain that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Toolchain {
    /// Run-time compilation libraries, newest first, one per version.
    pub nvrtc: Vec<NvrtcInstall>,
    /// The offline compiler, nvcc.
    pub nvcc: Option<NvccInstall>,
    /// Disassembler of cubins and fatbins; it needs `nvdisasm`.
    pub cuobjdump: Option<ToolkitProgram>,
    /// The disassembler of cubins, `nvdisasm`.
    pub nvdisasm: Option<ToolkitProgram>,
    /// The command-line tool of Nsight Compute.
    pub ncu: Option<ToolkitProgram>,
    /// The command-line tool of Nsight Systems.
    pub nsys: Option<ToolkitProgram>,
    /// The memory and race checker, Compute Sanitizer.
    pub compute_sanitizer: Option<ToolkitProgram>,
    /// CUPTI libraries, which read hardware counters in the process that launches kernels.
    pub cupti: Vec<PathBuf>,
    /// NVIDIA libraries with functions that can replace kernels, and the libraries that they need.
    #[serde(skip)]
    pub libraries: Vec<PathBuf>,
    /// Triton, which compiles kernels in Python.
    pub triton: Option<TritonInstall>,
    /// Reason why there is no Triton. `None` if there is one.
    pub no_triton: Option<NoTriton>,
    /// PyTorch, which runs kernels in Python.
    pub torch: Option<TorchInstall>,
    /// Reason why there is no PyTorch. `None` if there is one.
    pub no_torch: Option<NoTorch>,
}

/// Place where a part was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartOrigin {
    /// A directory in the configuration or in `WARPGAUGE_TOOLCHAIN`.
    Explicit,
    /// A Python virtual environment.
    Venv,
    /// `$CUDA_HOME` or `$CUDA_PATH`.
    CudaHome,
    /// `/usr/local/cuda*`.
    UsrLocal,
    /// The loader's or the shell's search path.
    Path,
    /// The program's cache, filled by `warpgauge toolchain install`.
    Cache,
}

impl std::fmt::Display for PartOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Explicit => "explicit",
            Self::Venv => "venv",
            Self::CudaHome => "CUDA_HOME",
            Self::UsrLocal => "/usr/local",
            Self::Path => "path",
            Self::Cache => "cache",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NvrtcInstall {
    /// Absolute path of the library.
    pub path: PathBuf,
    /// Major and minor version, e.g. (13, 0).
    pub version: (u32, u32),
    /// Complete version, e.g. `13.0.88`, if the installation shows it.
    pub full_version: Option<String>,
    /// Where the library was found.
    pub source: PartOrigin,
    /// Header directories of the toolkit that belong to the library, in search order. The list is
    /// empty if there are none.
    pub include_dirs: Vec<PathBuf>,
    /// Headers of the toolkit that sources need and that none of these directories contains.
    pub lacks: Vec<&'static str>,
}

impl NvrtcInstall {
    /// Returns the version in a form for messages, e.g. `13.0.88` or `13.0`.
    pub fn version_text(&self) -> String {
        let (major, minor) = self.version;
        self.full_version.clone().unwrap_or_else(|| format!("{major}.{minor}"))
    }

    /// Returns whether the library contains bundled toolkit headers that it can unpack, as it does
    /// since 13.3.
    pub fn has_bundled_headers(&self) -> bool {
        self.version >= (13, 3)
    }
}

/// An installation of nvcc, with the header directories that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NvccInstall {
    /// Absolute path of the compiler driver.
    pub path: PathBuf,
    /// Version of nvcc, e.g. `13.0`.
    pub version: String,
    /// Where nvcc was found.
    pub source: PartOrigin,
    /// Additional header directories, in search order.
    pub include_dirs: Vec<PathBuf>,
}

impl NvccInstall {
    /// Returns the root directory of the installation, which contains `bin`.
    pub fn root(&self) -> &Path {
        let bin = self.path.parent();
        bin.and_then(Path::parent).unwrap_or(Path::new("/"))
    }
}

/// A program of the CUDA toolkit other than nvcc.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolkitProgram {
    /// Absolute path of the program.
    pub path: PathBuf,
    /// Version. `None` if the installation does not show it without running the program.
    pub version: Option<String>,
}

impl Toolchain {
    /// Returns the installation of Triton.
    ///
    /// # Errors
    /// Returns why there is no usable Triton, and a remedy.
    pub fn triton(&self) -> Result<&TritonInstall, NoTriton> {
        let why = || self.no_triton.clone().unwrap_or_else(NoTriton::not_found);
        self.triton.as_ref().ok_or_else(why)
    }

    /// Returns the installation of PyTorch.
    ///
    /// # Errors
    /// Returns why there is no usable PyTorch, and a remedy.
    pub fn torch(&self) -> Result<&TorchInstall, NoTorch> {
        let why = || self.no_torch.clone().unwrap_or_else(NoTorch::not_found);
        self.torch.as_ref().ok_or_else(why)
    }

    /// Uses the disassemblers in Triton's package if no toolkit contains them.
    pub(super) fn borrow_from_triton(&mut self) {
        let Some(triton) = &self.triton else { return };
        for (tool, name) in [(&mut self.cuobjdump, "cuobjdump"), (&mut self.nvdisasm, "nvdisasm")] {
            if tool.is_none() {
                *tool = triton.bundled(name).map(|path| ToolkitProgram { path, version: None });
            }
        }
    }

    /// Returns the NVRTC installations that generate code for a driver, best first.
    ///
    /// Machine code of a CUDA major version needs a driver of that major version or later. Within
    /// one major version, code of any minor version runs on any driver. For PTX (emulated devices)
    /// every installation is suitable.
    pub(crate) fn nvrtc_for(&self, driver_version: i32, machine_code: bool) -> Vec<&NvrtcInstall> {
        let major = u32::try_from(driver_version / 1000).unwrap_or(0);
        let fits = |install: &&NvrtcInstall| !machine_code || install.version.0 <= major;
        let mut fitting: Vec<&NvrtcInstall> = self.nvrtc.iter().filter(fits).collect();
        // Libraries of the driver's major version come first, then older ones. A newer one is
        // suitable only for PTX. Installations without all headers come after those with all
        // headers.
        fitting.sort_by_key(|install| {
            let (own, minor) = install.version;
            let is_partial = !install.lacks.is_empty();
            (own > major, is_partial, std::cmp::Reverse(own), std::cmp::Reverse(minor))
        });
        fitting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(versions: &[(u32, u32)]) -> Toolchain {
        let install = |&version: &(u32, u32)| NvrtcInstall {
            path: format!("/{}.{}", version.0, version.1).into(),
            version,
            full_version: None,
            source: PartOrigin::Explicit,
            include_dirs: Vec::new(),
            lacks: Vec::new(),
        };
        Toolchain { nvrtc: versions.iter().map(install).collect(), ..Toolchain::default() }
    }

    fn chosen(versions: &[(u32, u32)], driver: i32, machine_code: bool) -> Vec<(u32, u32)> {
        let toolchain = toolchain(versions);
        toolchain.nvrtc_for(driver, machine_code).iter().map(|i| i.version).collect()
    }

    #[test]
    fn machine_code_is_never_of_a_newer_major_version_than_the_driver() {
        let all = [(13, 5), (12, 9), (12, 4)];
        assert_eq!(chosen(&all, 13000, true), [(13, 5), (12, 9), (12, 4)]);
        assert_eq!(chosen(&all, 12040, true), [(12, 9), (12, 4)]);
        assert_eq!(chosen(&[(13, 5)], 12040, true), []);
    }

    #[test]
    fn ptx_for_the_emulator_may_come_from_any() {
        assert_eq!(chosen(&[(13, 5), (12, 9)], 12000, false), [(12, 9), (13, 5)]);
        assert_eq!(chosen(&[(13, 5)], 12000, false), [(13, 5)]);
    }
}
