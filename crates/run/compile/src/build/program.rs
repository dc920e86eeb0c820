//! The commands that build a whole program from CUDA C++.

use std::path::{Path, PathBuf};

use super::flags::{self, Linked};
use super::plan::{CXX_REMEDY, NVCC_REMEDY, Plan, SYSTEM_LIBRARIES, library_in, text};
use crate::cache::KeyCompiler;
use crate::error::CompileError;
use crate::protocol::{BuildStep, BuildWay, FILES};
use crate::source::{PROGRAM_NAME, source_of};
use crate::toolchain::{NvccInstall, Toolchain, host, library_dirs};
use warpgauge_contract::KernelCode;
use warpgauge_model::{FailureCode, Target};

/// File name of the program that the build creates.
const OUTPUT: &str = "program";

/// Request to build a program for a target.
#[derive(Debug, Clone)]
pub struct ProgramOrder<'a> {
    /// CUDA C++ source with a `main()`, and options of nvcc, which may name CUDA libraries
    /// (`-lcublas`).
    pub kernel: &'a KernelCode,
    /// The device that the program runs on.
    pub target: Target,
    /// Path of the emulator's library, which replaces CUDA's driver and runtime. `None` for a GPU.
    pub emulator: Option<&'a Path>,
}

/// Checks a build request and plans its commands.
pub(super) fn plan(order: &ProgramOrder<'_>, toolchain: &Toolchain) -> Result<Plan, CompileError> {
    let (nvcc, cxx) = compilers(toolchain).map_err(|(what, remedy)| CompileError::Environment {
        what: format!("programs are compiled by nvcc: {what}"),
        remedy: remedy.to_owned(),
    })?;
    let arch = order.target.architecture();
    let source = source_of(order.kernel)?;
    let options = order.kernel.metadata.as_ref().map_or(&[][..], |data| &data.compiler_options);
    let (libraries, options): (Vec<String>, Vec<String>) =
        options.iter().cloned().partition(|option| option.trim_start().starts_with("-l"));
    let checked = flags::device(&options, arch)?;
    let named = format!("{arch}{}", checked.arch_suffix.map(String::from).unwrap_or_default());
    // The emulator executes PTX.
    let kind = if order.emulator.is_some() { "compute" } else { "sm" };
    let mut plan = Plan::of("program");
    plan.options.push(format!("-gencode=arch=compute_{named},code={kind}_{named}"));
    let mut arguments = plan.options.clone();
    if let Some(library) = order.emulator {
        // The emulator provides driver and runtime in one library.
        arguments.extend(["-cudart", "none", "--no-compress"].map(str::to_owned));
        arguments.push(text(library));
    }
    let words = checked.words.into_iter();
    let words = words.chain(checked.lineinfo.then(|| "-lineinfo".to_owned())).collect::<Vec<_>>();
    plan.options.extend(words.iter().cloned());
    arguments.extend(words);
    if !source.files.is_empty() {
        arguments.extend(["-I", FILES].map(str::to_owned));
    }
    for directory in &nvcc.include_dirs {
        arguments.extend(["-isystem".to_owned(), text(directory)]);
    }
    plan.options.extend(libraries.iter().cloned());
    let directories = library_dirs(nvcc.root());
    arguments.extend(directories.iter().flat_map(|it| ["-L".to_owned(), text(it)]));
    arguments.extend([PROGRAM_NAME, "-o", OUTPUT].map(str::to_owned));
    arguments.extend(linked(order, nvcc, &libraries)?);
    let ways = vec![BuildWay { name: String::new(), arguments }];
    let step = BuildStep { name: OUTPUT.to_owned(), program: nvcc.path.clone(), ways };
    plan.compilers.push(KeyCompiler::of(format!("nvcc {}", nvcc.version), &nvcc.path));
    plan.compilers.push(KeyCompiler::of("g++".into(), &cxx));
    if let Some(library) = order.emulator {
        plan.compilers.push(KeyCompiler::of("emulator".into(), library));
        plan.read.push(library.to_owned());
    }
    plan.execute.push(nvcc.root().to_owned());
    plan.read.extend(nvcc.include_dirs.iter().cloned());
    plan.files.push((PROGRAM_NAME.to_owned(), source.text.into_owned()));
    let files = source.files.into_iter().map(|(path, text)| (format!("{FILES}/{path}"), text));
    plan.files.extend(files);
    plan.stages = vec![vec![step]];
    plan.output = OUTPUT.to_owned();
    Ok(plan)
}

/// Returns nvcc and the host compiler that it needs. Fails with a description of what is missing
/// and a remedy.
pub(super) fn compilers(
    toolchain: &Toolchain,
) -> Result<(&NvccInstall, PathBuf), (&'static str, &'static str)> {
    let nvcc = toolchain.nvcc.as_ref().ok_or(("no nvcc was found", NVCC_REMEDY))?;
    let missing =
        ("there is no g++ in /usr/local/bin, /usr/bin or /bin, which it needs", CXX_REMEDY);
    Ok((nvcc, host::cxx().ok_or(missing)?))
}

/// Returns the options that link libraries. At run time the program searches for a CUDA library
/// where it was linked from.
fn linked(
    order: &ProgramOrder<'_>,
    nvcc: &NvccInstall,
    given: &[String],
) -> Result<Vec<String>, CompileError> {
    let mut words = Vec::new();
    for linked in flags::link(given)? {
        let name = match linked {
            Linked::Option(option) => {
                words.push(option);
                continue;
            }
            Linked::OfCuda(name) => name,
        };
        match (name.as_str(), order.emulator) {
            // The driver and the runtime are already linked.
            ("cudart", _) | ("cuda", Some(_)) => {}
            (_, Some(_)) => {
                let message = format!(
                    "-l{name}: the emulated device provides CUDA's driver and runtime, but no other NVIDIA \
                     library; run it on a GPU"
                );
                return Err(CompileError::rejected(FailureCode::NotSupported, message));
            }
            _ => words.extend(library(nvcc, &name)?),
        }
    }
    Ok(words)
}

/// Returns the options for a library of the toolkit: its path, and a run-time search path for its
/// directory.
fn library(nvcc: &NvccInstall, name: &str) -> Result<Vec<String>, CompileError> {
    let mut directories = library_dirs(nvcc.root());
    directories.extend(SYSTEM_LIBRARIES.map(PathBuf::from));
    let found = directories.iter().find_map(|it| Some((it, library_in(it, name)?)));
    if let Some((directory, path)) = found {
        let search = format!("-rpath={}", directory.display());
        return Ok(vec![path, "-Xlinker".to_owned(), search]);
    }
    // The real driver is not in the link path; the toolkit contains a stub for it.
    let stubs = directories.iter().map(|it| it.join("stubs"));
    stubs.into_iter().find_map(|it| library_in(&it, name)).map(|path| vec![path]).ok_or_else(|| {
        let message = format!(
            "-l{name}: there is no lib{name}.so in the CUDA toolkit at {}, or in the system's libraries",
            nvcc.root().display()
        );
        CompileError::rejected(FailureCode::CompilerOptionRefused, message)
    })
}
