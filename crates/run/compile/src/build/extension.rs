//! The commands that build a PyTorch extension, with the same options as PyTorch's `load_inline`.

use std::path::{Path, PathBuf};

use super::flags::{self, Linked};
use super::lean;
use super::order::{ExtensionOrder, PythonHost};
use super::plan::{CXX_REMEDY, NVCC_REMEDY, Plan, SYSTEM_LIBRARIES, library_in, text};
use crate::cache::KeyCompiler;
use crate::error::CompileError;
use crate::protocol::{BuildStep, BuildWay};
use crate::toolchain::{NvccInstall, Toolchain, TorchInstall, host, library_dirs, toolkit_roots};
use warpgauge_model::FailureCode;

/// Names of the two variants of a compilation, as the log shows them.
const LEAN: &str = "lean headers";
const WHOLE: &str = "whole headers";

/// Options that PyTorch passes to nvcc.
const CUDA_FLAGS: [&str; 5] = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
];

/// Checks a build request and plans its commands.
pub(super) fn plan(
    order: &ExtensionOrder,
    python: &PythonHost,
    toolchain: &Toolchain,
) -> Result<Plan, CompileError> {
    let cxx = host::cxx().ok_or_else(no_cxx)?;
    let torch = toolchain
        .torch()
        .map_err(|why| CompileError::Environment { what: why.reason, remedy: why.remedy })?;
    let cuda = match (order.with_cuda || order.cuda.is_some()).then(|| nvcc(python, toolchain)) {
        Some(found) => Some(found?),
        None => None,
    };
    let making = Making { order, python, torch, cuda, cxx };
    let mut plan = Plan::of("extension");
    plan.read.extend([torch.site_packages.clone(), python.include.clone()]);
    plan.compilers.push(KeyCompiler::of("g++".into(), &making.cxx));
    let version = torch.site_packages.join("torch/version.py");
    plan.compilers.push(KeyCompiler::of(format!("torch {}", torch.version), &version));
    let patch = python.include.join("patchlevel.h");
    plan.compilers.push(KeyCompiler::of(format!("Python {}", torch.python_version), &patch));
    if let Some(nvcc) = cuda {
        plan.compilers.push(KeyCompiler::of(format!("nvcc {}", nvcc.version), &nvcc.path));
        plan.execute.push(nvcc.root().to_owned());
        plan.read.extend(nvcc.include_dirs.iter().cloned());
    }
    let mut compile = vec![making.host_step(&mut plan)?];
    if let Some(source) = &order.cuda {
        compile.push(making.cuda_step(source, &mut plan)?);
    }
    plan.stages = vec![compile, vec![making.link_step()?]];
    plan.output = format!("{}.so", order.name);
    Ok(plan)
}

fn no_cxx() -> CompileError {
    CompileError::Environment {
        what: "there is no g++ in /usr/local/bin, /usr/bin or /bin, which is needed to compile extensions"
            .into(),
        remedy: CXX_REMEDY.into(),
    }
}

/// Returns the CUDA C++ compiler. Fails if it does not support this PyTorch.
fn nvcc<'a>(
    python: &PythonHost,
    toolchain: &'a Toolchain,
) -> Result<&'a NvccInstall, CompileError> {
    let environment =
        |what: String, remedy: &str| CompileError::Environment { what, remedy: remedy.to_owned() };
    let Some(built_for) = &python.cuda else {
        let what = "this PyTorch is built for the CPU only".to_owned();
        return Err(environment(what, "install one that is built for CUDA"));
    };
    let found = toolchain.nvcc.as_ref().ok_or_else(|| {
        let what = "nvcc compiles the CUDA sources of extensions, but none was found".to_owned();
        environment(what, NVCC_REMEDY)
    })?;
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    if major(built_for) == major(&found.version) {
        return Ok(found);
    }
    let what = format!(
        "{} belongs to CUDA {}, but this PyTorch is built for CUDA {built_for}: it cannot load what this nvcc \
         compiles",
        found.path.display(),
        found.version
    );
    Err(environment(what, "set CUDA_HOME to a toolkit of the same major version"))
}

/// A build request together with the tools that build it.
struct Making<'a> {
    order: &'a ExtensionOrder,
    python: &'a PythonHost,
    torch: &'a TorchInstall,
    cuda: Option<&'a NvccInstall>,
    cxx: PathBuf,
}

impl Making<'_> {
    fn torch_include(&self) -> PathBuf {
        self.torch.site_packages.join("torch/include")
    }

    /// Returns the macro definitions and header directories for both compilers. They search the
    /// directory `lean` first.
    fn common(&self, lean: Option<&str>) -> Vec<String> {
        let mut words = vec![
            format!("-DTORCH_EXTENSION_NAME={}", self.order.name),
            "-DTORCH_API_INCLUDE_EXTENSION_H".to_owned(),
        ];
        words.extend(self.python.defines.iter().cloned());
        let mut add = |directory: String| words.extend(["-isystem".to_owned(), directory]);
        if let Some(lean) = lean {
            add(lean.to_owned());
        }
        add(text(&self.torch_include()));
        add(text(&self.torch_include().join("torch/csrc/api/include")));
        for directory in self.cuda_include() {
            add(text(&directory));
        }
        add(text(&self.python.include));
        if lean.is_some() {
            words.push("-DAT_PER_OPERATOR_HEADERS".to_owned());
        }
        words
    }

    /// Returns CUDA's header directories: those of the toolkit, and those of libraries that were
    /// installed with PyTorch.
    fn cuda_include(&self) -> Vec<PathBuf> {
        let Some(nvcc) = self.cuda else { return Vec::new() };
        let mut found = nvcc.include_dirs.clone();
        let root = nvcc.root();
        found.extend(["include", "targets/x86_64-linux/include"].map(|name| root.join(name)));
        let packages = toolkit_roots(&self.torch.site_packages).into_iter();
        found.extend(packages.map(|package| package.join("include")));
        let mut seen = std::collections::BTreeSet::new();
        // The compiler searches the system's directories last, at their default position.
        found.retain(|dir| {
            dir.is_dir() && dir != Path::new("/usr/include") && seen.insert(dir.clone())
        });
        found
    }

    fn host_step(&self, plan: &mut Plan) -> Result<BuildStep, CompileError> {
        plan.files.push(("main.cpp".to_owned(), self.order.cpp.clone()));
        let standard = format!("-std={}", self.python.standard);
        let given = flags::host(&self.order.cflags)?;
        plan.for_this_processor |= given.iter().any(|word| word.ends_with("=native"));
        let way = |name: &str, lean: Option<&str>| {
            let mut arguments = self.common(lean);
            arguments.extend(["-fPIC".to_owned(), standard.clone()]);
            arguments.extend(given.iter().cloned());
            arguments.extend(["-c", "main.cpp", "-o", "main.o"].map(str::to_owned));
            BuildWay { name: format!("main.cpp: {name}"), arguments }
        };
        let lean = lean::headers(&self.order.cpp, &self.torch_include(), lean::For::Host);
        let mut ways = Vec::new();
        if let Some(headers) = lean {
            plan.add_headers("lean-host", headers);
            ways.push(way(LEAN, Some("lean-host")));
        }
        ways.push(way(WHOLE, None));
        Ok(BuildStep { name: "main.cpp".to_owned(), program: self.cxx.clone(), ways })
    }

    fn cuda_step(&self, source: &str, plan: &mut Plan) -> Result<BuildStep, CompileError> {
        let Some(nvcc) = self.cuda else { return Err(CompileError::internal("there is no nvcc")) };
        let Some(arch) = self.python.arch else {
            let message = "CUDA sources of an extension are compiled for the device that runs them, and \
                           there is no GPU here";
            return Err(CompileError::rejected(FailureCode::NotSupported, message.to_owned()));
        };
        plan.files.push(("cuda.cu".to_owned(), source.to_owned()));
        let checked = flags::device(&self.order.cuda_cflags, arch)?;
        plan.for_this_processor |= checked.words.iter().any(|word| word.ends_with("=native"));
        let named = format!("{arch}{}", checked.arch_suffix.map(String::from).unwrap_or_default());
        let standard = format!("-std={}", self.python.standard);
        let has_standard =
            checked.words.iter().any(|word| word.trim_start_matches('-').starts_with("std"));
        let way = |name: &str, lean: Option<&str>| {
            let mut arguments = self.common(lean);
            arguments.extend(CUDA_FLAGS.map(str::to_owned));
            arguments.push(format!("-gencode=arch=compute_{named},code=sm_{named}"));
            arguments.extend(["-Xcompiler", "-fPIC"].map(str::to_owned));
            arguments.extend(checked.words.iter().cloned());
            arguments.extend(checked.lineinfo.then(|| "-lineinfo".to_owned()));
            arguments.extend((!has_standard).then(|| standard.clone()));
            arguments.extend(["-c", "cuda.cu", "-o", "cuda.o"].map(str::to_owned));
            BuildWay { name: format!("cuda.cu: {name}"), arguments }
        };
        let lean = lean::headers(source, &self.torch_include(), lean::For::Cuda);
        let mut ways = Vec::new();
        if let Some(headers) = lean {
            plan.add_headers("lean-cuda", headers);
            ways.push(way(LEAN, Some("lean-cuda")));
        }
        ways.push(way(WHOLE, None));
        Ok(BuildStep { name: "cuda.cu".to_owned(), program: nvcc.path.clone(), ways })
    }

    fn link_step(&self) -> Result<BuildStep, CompileError> {
        let mut arguments = vec!["-shared".to_owned(), "main.o".to_owned()];
        arguments.extend(self.order.cuda.as_ref().map(|_| "cuda.o".to_owned()));
        let libraries = self.torch.site_packages.join("torch/lib");
        arguments.extend(["-L".to_owned(), text(&libraries)]);
        let mut own = vec!["c10", "torch_cpu", "torch", "torch_python"];
        if self.cuda.is_some() {
            own.extend(["c10_cuda", "torch_cuda"]);
        }
        arguments.extend(own.into_iter().map(|name| format!("-l{name}")));
        if self.cuda.is_some() {
            arguments.push(self.library("cudart")?);
        }
        for linked in flags::link(&self.order.ldflags)? {
            arguments.push(match linked {
                Linked::OfCuda(name) => self.library(&name)?,
                Linked::Option(option) => option,
            });
        }
        arguments.extend(["-o".to_owned(), format!("{}.so", self.order.name)]);
        let ways = vec![BuildWay { name: String::new(), arguments }];
        Ok(BuildStep { name: "link".to_owned(), program: self.cxx.clone(), ways })
    }

    /// Finds a CUDA library: the one that PyTorch loads, otherwise the toolkit's.
    fn library(&self, name: &str) -> Result<String, CompileError> {
        let mut directories = library_dirs(&self.torch.site_packages);
        if let Some(root) = self.cuda.map(NvccInstall::root) {
            directories.extend(library_dirs(root));
            directories.push(root.join("lib64/stubs"));
        }
        directories.extend(SYSTEM_LIBRARIES.map(PathBuf::from));
        directories.iter().find_map(|directory| library_in(directory, name)).ok_or_else(|| {
            let message = format!(
                "extra_ldflags: there is no lib{name}.so installed with this PyTorch, in the CUDA toolkit or the \
                 system's libraries"
            );
            CompileError::rejected(FailureCode::CompilerOptionRefused, message)
        })
    }
}
