//! Checks of compilers, Python packages and NVIDIA's tools.

use std::path::Path;

use super::{Check, State};
use warpgauge_compile::toolchain::{Toolchain, ToolkitProgram};
use warpgauge_config::Config;

/// Checks the compilers and Python packages.
pub(super) fn compilers(found: &Toolchain) -> Vec<Check> {
    let at = |version: &str, path: &Path| format!("{version} ({})", path.display());
    let nvrtc = match found.nvrtc.first() {
        Some(best) if best.lacks.is_empty() => {
            Check::ok("nvrtc", NVRTC, at(&best.version_text(), &best.path))
        }
        Some(best) => {
            let found = format!(
                "{}, without {}",
                at(&best.version_text(), &best.path),
                best.lacks.join(", ")
            );
            Check::lacks("nvrtc", NVRTC, State::Weak, (found, "warpgauge toolchain install"))
        }
        // If nvcc is installed, it can replace NVRTC.
        None => {
            let state = if found.nvcc.is_some() { State::Absent } else { State::Fault };
            Check::lacks("nvrtc", NVRTC, state, ("not found", "warpgauge toolchain install"))
        }
    };
    let nvcc = match &found.nvcc {
        Some(nvcc) => Check::ok("nvcc", NVCC, at(&nvcc.version, &nvcc.path)),
        None => {
            let remedy = "warpgauge toolchain install --with nvcc";
            Check::lacks("nvcc", NVCC, State::Absent, ("not found", remedy))
        }
    };
    vec![nvrtc, nvcc, python(found), torch(found), triton(found)]
}

const NVRTC: &str = "compiles CUDA kernels, and the kernels that write inputs and examine outputs";
const NVCC: &str = "compiles whole programs, and sources that NVRTC rejects";

fn python(found: &Toolchain) -> Check {
    let purpose = "runs Triton's compiler and PyTorch";
    let of_torch = found.torch.as_ref().map(|it| (&it.python_version, &it.python));
    let of_triton = found.triton.as_ref().map(|it| (&it.python_version, &it.python));
    if let Some((version, path)) = of_torch.or(of_triton) {
        return Check::ok("python", purpose, format!("{version} ({})", path.display()));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&paths).map(|place| place.join("python3"));
    match places.into_iter().find(|path| path.is_file()) {
        Some(path) => Check::ok("python", purpose, path.display().to_string()),
        None => Check::lacks(
            "python",
            purpose,
            State::Absent,
            ("no python3 on PATH", "install Python 3.10 or later with pip and venv"),
        ),
    }
}

fn torch(found: &Toolchain) -> Check {
    let purpose = "runs torch kernels and references, and computes expectations";
    let found = found.torch().map(|it| (it.version.as_str(), it.site_packages.as_path()));
    package("torch", purpose, found.map_err(|why| why.reason))
}

fn triton(found: &Toolchain) -> Check {
    let found = found.triton().map(|it| (it.version.as_str(), it.site_packages.as_path()));
    package("triton", "compiles Triton kernels", found.map_err(|why| why.reason))
}

/// Returns the check of a Python package. It contains the version and the directory, or the reason
/// why the package is absent.
fn package(
    name: &'static str,
    purpose: &'static str,
    found: Result<(&str, &Path), String>,
) -> Check {
    match found {
        Ok((version, site)) => Check::ok(name, purpose, format!("{version} ({})", site.display())),
        Err(reason) => {
            let remedy = format!("warpgauge toolchain install --with {name}");
            Check::lacks(name, purpose, State::Absent, (reason, remedy))
        }
    }
}

/// Checks NVIDIA's tools. Only evaluations on a GPU use them.
pub(super) fn profilers(found: &Toolchain, config: &Config) -> Vec<Check> {
    let purpose = "reads hardware counters of a GPU from within a worker";
    let cupti = match found.cupti.first() {
        Some(path) => Check::ok("cupti", purpose, path.display().to_string()),
        None => Check::lacks(
            "cupti",
            purpose,
            State::Absent,
            ("not found", "pip install nvidia-cuda-cupti-cu12, or install the CUDA toolkit"),
        ),
    };
    let tools = [
        (
            "ncu",
            &found.ncu,
            "reads hardware counters of a GPU",
            "install Nsight Compute (https://developer.nvidia.com/nsight-compute)",
        ),
        (
            "nsys",
            &found.nsys,
            "traces the activity of a GPU",
            "install Nsight Systems (https://developer.nvidia.com/nsight-systems)",
        ),
        (
            "compute-sanitizer",
            &found.compute_sanitizer,
            "checks memory accesses on a GPU; the emulator has built-in checks",
            "install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads)",
        ),
    ];
    let named = config.tools.path.split(':').filter(|path| !path.is_empty());
    let named = named.map(Path::new).collect::<Vec<_>>();
    let tools = tools.map(|(name, tool, purpose, remedy)| {
        // Directories in the configuration are searched first.
        let own = named.iter().map(|place| place.join(name)).find(|path| path.is_file());
        match (own, tool) {
            (Some(path), _) => Check::ok(name, purpose, path.display().to_string()),
            (None, Some(ToolkitProgram { version, path })) => {
                let version = version.as_deref().unwrap_or("unknown version");
                Check::ok(name, purpose, format!("{version} ({})", path.display()))
            }
            (None, None) => {
                let remedy = format!("{remedy}, or name its directory in WARPGAUGE_TOOLS");
                Check::lacks(name, purpose, State::Absent, ("not found", remedy))
            }
        }
    });
    std::iter::once(cupti).chain(tools).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_compiler_has_one_fault_and_its_remedy() {
        let none = compilers(&Toolchain::default());
        let faults = none.iter().filter(|check| check.state == State::Fault).collect::<Vec<_>>();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].name, "nvrtc");
        assert_eq!(faults[0].remedy.as_deref(), Some("warpgauge toolchain install"));
        let torch = none.iter().find(|check| check.name == "torch").unwrap();
        assert_eq!(torch.state, State::Absent);
        assert!(!torch.found.is_empty());
    }
}
