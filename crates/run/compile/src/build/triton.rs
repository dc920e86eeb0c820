//! Replaces the commands that Triton would start: its assembler, and the system's C compiler for
//! modules that call the driver.

use super::order::{AssemblyOrder, ModuleOrder, PythonHost};
use super::plan::{Plan, text};
use crate::cache::KeyCompiler;
use crate::error::CompileError;
use crate::protocol::{BuildStep, BuildWay};
use crate::toolchain::{Toolchain, TorchInstall, host};
use warpgauge_model::FailureCode;

/// Directory of NVIDIA's files in Triton's package.
const BACKEND: &str = "triton/backends/nvidia";

/// First architecture for which Triton may have a separate assembler.
const BLACKWELL: u32 = 100;

/// Assembler options of Triton that access no files.
const OPTIONS: [&str; 8] = [
    "-lineinfo",
    "-suppress-debug-info",
    "-g",
    "--fmad=false",
    "-v",
    "--opt-level",
    "0",
    "--opt-level=0",
];

/// Plans the assembly of machine code from PTX.
pub(super) fn assembly(
    order: &AssemblyOrder,
    python: &PythonHost,
    toolchain: &Toolchain,
) -> Result<Plan, CompileError> {
    let torch = torch(toolchain)?;
    let Some(arch) = python.arch else { return Err(no_device()) };
    let programs = torch.site_packages.join(BACKEND).join("bin");
    let own = Some(programs.join("ptxas-blackwell")).filter(|it| arch >= BLACKWELL && it.is_file());
    let program = own.unwrap_or_else(|| programs.join("ptxas"));
    if !program.is_file() {
        return Err(CompileError::Environment {
            what: format!("the Triton beside PyTorch has no assembler, {}", program.display()),
            remedy: "reinstall Triton beside PyTorch".into(),
        });
    }
    if let Some(other) = order.options.iter().find(|it| !OPTIONS.contains(&it.as_str())) {
        let shown: String = other.chars().take(80).collect();
        let message = format!("assembler option {shown:?} is unknown or not allowed here");
        return Err(CompileError::rejected(FailureCode::CompilerOptionRefused, message));
    }
    // From compute capability 9.0 on Triton uses architecture-specific features.
    let suffix = if arch >= 90 { "a" } else { "" };
    let mut arguments = order.options.clone();
    arguments.push(format!("--gpu-name=sm_{arch}{suffix}"));
    arguments.extend(["kernel.ptx", "-o", "kernel.cubin"].map(str::to_owned));
    let mut plan = Plan::of("ptxas");
    plan.compilers.push(KeyCompiler::of("ptxas".into(), &program));
    plan.execute.push(programs);
    plan.files.push(("kernel.ptx".to_owned(), order.ptx.clone()));
    let ways = vec![BuildWay { name: String::new(), arguments }];
    plan.stages = vec![vec![BuildStep { name: "ptxas".to_owned(), program, ways }]];
    plan.output = "kernel.cubin".to_owned();
    Ok(plan)
}

/// Plans the compilation of a module from C, with Triton's options.
pub(super) fn module(
    order: &ModuleOrder,
    python: &PythonHost,
    toolchain: &Toolchain,
) -> Result<Plan, CompileError> {
    let torch = torch(toolchain)?;
    let program = host::cc().ok_or_else(|| CompileError::Environment {
        what:
            "there is no gcc in /usr/local/bin, /usr/bin or /bin, which compiles Triton's launchers"
                .into(),
        remedy: "install one (Debian: `apt install gcc`)".into(),
    })?;
    let headers = torch.site_packages.join(BACKEND).join("include");
    let (source, output) = (format!("{}.c", order.name), format!("{}.so", order.name));
    // The process has already loaded the library with the driver's functions.
    let mut arguments = vec![source.clone()];
    arguments.extend(["-O3", "-shared", "-fPIC", "-Wno-psabi", "-o"].map(str::to_owned));
    arguments.push(output.clone());
    arguments.extend([headers.as_path(), &python.include].map(|dir| format!("-I{}", text(dir))));
    let mut plan = Plan::of("c");
    plan.compilers.push(KeyCompiler::of("gcc".into(), &program));
    plan.compilers.push(KeyCompiler::of("cuda.h".into(), &headers.join("cuda.h")));
    let patch = python.include.join("patchlevel.h");
    plan.compilers.push(KeyCompiler::of(format!("Python {}", torch.python_version), &patch));
    plan.read.extend([headers, python.include.clone()]);
    plan.files.push((source, order.source.clone()));
    let ways = vec![BuildWay { name: String::new(), arguments }];
    plan.stages = vec![vec![BuildStep { name: "gcc".to_owned(), program, ways }]];
    plan.output = output;
    Ok(plan)
}

fn torch(toolchain: &Toolchain) -> Result<&TorchInstall, CompileError> {
    toolchain
        .torch()
        .map_err(|why| CompileError::Environment { what: why.reason, remedy: why.remedy })
}

fn no_device() -> CompileError {
    let message = "PTX is assembled for the device that runs it, and there is no GPU here";
    CompileError::rejected(FailureCode::NotSupported, message.to_owned())
}
