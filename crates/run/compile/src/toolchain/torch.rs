//! Finds an interpreter that can import PyTorch. The directories and rules are the same as for
//! Triton.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::discover::ToolchainSearch;
use super::triton::{self, Answer, NoTriton, NoTritonCode, Package};
use super::types::PartOrigin;

pub(super) const TORCH: Package = Package { name: "torch", title: "PyTorch" };

/// Version that this program recommends and installs.
pub(super) const PINNED: &str = "2.11.0";

/// Oldest and newest supported version of PyTorch, major and minor.
pub const TORCH_VERSIONS: ((u32, u32), (u32, u32)) = ((2, 6), (2, 15));

/// Remedy that installs a usable PyTorch.
const INSTALL: &str = "`warpgauge toolchain install --with torch` installs one (5 GB)";

/// An installation of PyTorch, with the interpreter that imports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TorchInstall {
    /// Absolute path of the Python interpreter that imports PyTorch.
    pub python: PathBuf,
    /// Version of the interpreter, e.g. `3.11.7`.
    pub python_version: String,
    /// Directory that contains the package `torch`. The process that starts the interpreter adds
    /// the directory to `sys.path`.
    pub site_packages: PathBuf,
    /// Files and directories that the interpreter itself reads and executes.
    pub roots: Vec<PathBuf>,
    /// Version of PyTorch, e.g. `2.11.0`.
    pub version: String,
    /// Where PyTorch was found.
    pub source: PartOrigin,
}

/// Reason why there is no usable PyTorch, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct NoTorch {
    pub reason: String,
    pub remedy: String,
}

impl NoTorch {
    /// Returns the error for the case that PyTorch was found nowhere.
    pub(super) fn not_found() -> Self {
        Self {
            reason: "PyTorch was not found".to_owned(),
            remedy: format!(
                "{INSTALL}, or name a Python that has the package `torch` in compile.python \
                 (WARPGAUGE_PYTHON)"
            ),
        }
    }

    /// Converts an error about an interpreter to one about PyTorch, with a remedy for PyTorch.
    fn of(why: NoTriton) -> Self {
        let remedy = match why.code {
            NoTritonCode::Interpreter => {
                format!("name one that works in compile.python (WARPGAUGE_PYTHON), or {INSTALL}")
            }
            _ => why.remedy,
        };
        Self { reason: why.reason, remedy }
    }
}

/// Searches for PyTorch in all directories.
pub(super) fn find(search: &ToolchainSearch) -> Result<TorchInstall, NoTorch> {
    triton::find_package(search, &TORCH, install)
        .map_err(|why| why.map_or_else(NoTorch::not_found, NoTorch::of))
}

/// Returns the PyTorch that this program installed in `directory`.
pub(super) fn find_in(directory: &Path) -> Result<TorchInstall, NoTorch> {
    triton::find_in(directory, &TORCH, install).map_err(NoTorch::of)
}

/// Returns the PyTorch that the answer of the interpreter `python` describes.
fn install(python: &Path, answer: &Answer, source: PartOrigin) -> Result<TorchInstall, NoTriton> {
    let shown = python.display();
    let no = |code, reason: String| {
        let remedy = format!("`{shown} -m pip install torch=={PINNED} numpy`, or {INSTALL}");
        NoTriton { code, reason, remedy }
    };
    let Some(package) = &answer.torch else {
        let reason = format!("{shown} (Python {}) has no PyTorch", answer.version);
        return Err(no(NoTritonCode::NotInstalled, reason));
    };
    let incomplete = |what: String| {
        let reason = format!("the PyTorch that {shown} imports is not usable: {what}");
        no(NoTritonCode::Incomplete, reason)
    };
    let site_packages = package.parent().and_then(Path::parent).filter(|dir| dir.is_absolute());
    let site_packages =
        site_packages.ok_or_else(|| incomplete(format!("it is in {}", package.display())))?;
    let version = triton::distribution(site_packages, &["torch-"]).ok_or_else(|| {
        incomplete(format!("there is no torch-….dist-info in {}", site_packages.display()))
    })?;
    if !is_supported(&version) {
        let (oldest, newest) = TORCH_VERSIONS;
        let range = format!("{}.{} to {}.{}", oldest.0, oldest.1, newest.0, newest.1);
        let reason = format!("{shown} has PyTorch {version}; versions {range} are supported");
        return Err(no(NoTritonCode::UnsupportedVersion, reason));
    }
    let python = answer.interpreter(python);
    Ok(TorchInstall {
        roots: triton::roots(&python, answer),
        python,
        python_version: answer.version.clone(),
        site_packages: site_packages.to_owned(),
        version,
        source,
    })
}

fn is_supported(version: &str) -> bool {
    let mut parts = version.split(['.', '+']).map(|part| part.parse::<u32>().unwrap_or(0));
    let pair = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    (TORCH_VERSIONS.0..=TORCH_VERSIONS.1).contains(&pair)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::triton::testing::script;
    use super::*;

    /// Creates a fake interpreter with PyTorch of that version, in the detail that discovery reads.
    fn interpreter(root: &Path, version: Option<&str>) -> PathBuf {
        let site = root.join("site");
        let origin = site.join("torch/__init__.py");
        if let Some(version) = version {
            fs::create_dir_all(origin.parent().unwrap()).unwrap();
            fs::create_dir_all(site.join(format!("torch-{version}.dist-info"))).unwrap();
            fs::write(&origin, "").unwrap();
        }
        let python = root.join("python3");
        let told = version.map_or("null".to_owned(), |_| format!("\"{}\"", origin.display()));
        let answer = format!(
            r#"{{"executable": "{0}", "version": "3.11.7", "base_executable": null, "base_prefix": "/none", "package": null, "torch": {told}, "library": [], "mapped": ["{0}"]}}"#,
            python.display()
        );
        script(&python, &format!("echo '{answer}'"))
    }

    fn found(version: Option<&str>) -> Result<TorchInstall, NoTorch> {
        let root = tempfile::tempdir().unwrap();
        let python = interpreter(root.path(), version);
        let cache_dir = root.path().join("data");
        find(&ToolchainSearch { cache_dir, python: Some(python), ..ToolchainSearch::default() })
    }

    #[test]
    fn an_interpreter_has_pytorch_or_it_is_said_why_not() {
        let install = found(Some("2.11.0")).unwrap();
        assert_eq!((install.version.as_str(), install.source), ("2.11.0", PartOrigin::Explicit));
        assert!(install.site_packages.ends_with("site"));
        assert_eq!(found(Some("2.9.1+cpu")).unwrap().version, "2.9.1+cpu");
        let why = found(Some("1.13.1")).unwrap_err();
        assert!(why.reason.contains("1.13.1") && why.remedy.contains("--with torch"), "{why}");
        let why = found(None).unwrap_err();
        assert!(why.reason.contains("has no PyTorch"), "{why}");
        assert!(why.remedy.contains("-m pip install torch=="), "{why}");
        assert!(NoTorch::not_found().to_string().contains("WARPGAUGE_PYTHON"));
    }
}
