//! Headers of the toolkit for NVRTC. This module checks whether an installation has all of them,
//! and adds missing ones from other installations.

use std::path::{Path, PathBuf};

use super::types::NvrtcInstall;

/// One header of each part of a toolkit. Each part has a separate package.
const PARTS: [&str; 5] =
    ["cuda_fp16.h", "cooperative_groups.h", "cuda/std/version", "mma.h", "crt/mma.h"];

/// Prefixes of the names of headers that only a toolkit provides.
const FAMILIES: [&str; 11] = [
    "cooperative_groups",
    "crt/",
    "cub/",
    "cuda/",
    "cuda_bf16.h",
    "cuda_fp16.h",
    "cuda_fp8.h",
    "cuda_pipeline",
    "mma.h",
    "nv/",
    "thrust/",
];

/// Returns the parts of a toolkit that are in none of the directories.
fn lacking(directories: &[PathBuf]) -> Vec<&'static str> {
    let has = |part: &&str| directories.iter().any(|directory| directory.join(part).exists());
    PARTS.into_iter().filter(|part| !has(part)).collect()
}

/// Adds missing headers to an installation. An NVRTC with bundled headers uses those. Others get
/// the missing parts from directories of other installations with the same major version.
pub(super) fn complete(install: &mut NvrtcInstall, roots: &[PathBuf]) {
    install.lacks = lacking(&install.include_dirs);
    if install.lacks.is_empty() {
        return;
    }
    if install.has_bundled_headers() {
        install.include_dirs.clear();
        install.lacks.clear();
        return;
    }
    for root in roots {
        let lent = include_dirs(root);
        if lent.iter().find_map(|directory| header_version(directory)) != Some(install.version.0) {
            continue;
        }
        for directory in lent {
            if install.lacks.iter().any(|part| directory.join(part).exists()) {
                install.include_dirs.push(directory);
                install.lacks = lacking(&install.include_dirs);
            }
        }
    }
}

/// Returns the first toolkit header that, according to a log, the compiler cannot open.
pub(crate) fn missing_in(log: &str) -> Option<&str> {
    log.split("cannot open source file \"").skip(1).find_map(|rest| {
        let name = rest.split('"').next()?;
        FAMILIES.iter().any(|family| name.starts_with(family)).then_some(name)
    })
}

/// Returns the header directories of the installation with this root directory. The root directory
/// contains `lib` or `lib64`.
pub(super) fn include_dirs(root: &Path) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    let mut add = |dir: PathBuf, marker: &str| {
        if dir.join(marker).exists() && !dirs.contains(&dir) {
            dirs.push(dir);
        }
    };
    // In wheels of CUDA 12 each package has a separate directory.
    let packages = [root.to_owned(), root.join("../cuda_runtime"), root.join("../cuda_cccl")];
    for package in packages {
        let package = package.canonicalize().unwrap_or(package);
        for include in [package.join("include"), package.join("targets/x86_64-linux/include")] {
            add(include.clone(), "cuda_fp16.h");
            add(include.join("cccl"), "cuda/std/version");
            add(include, "cuda/std/version");
        }
    }
    dirs
}

/// Returns the major version of CUDA that the headers in `directory` belong to.
fn header_version(directory: &Path) -> Option<u32> {
    let text = ["cuda.h", "cuda_runtime_api.h"]
        .iter()
        .find_map(|name| std::fs::read_to_string(directory.join(name)).ok())?;
    let defined = text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("#define")?.trim_start();
        let value =
            rest.strip_prefix("CUDA_VERSION").or_else(|| rest.strip_prefix("CUDART_VERSION"))?;
        value.split_whitespace().next()?.parse::<u32>().ok()
    })?;
    Some(defined / 1000)
}
