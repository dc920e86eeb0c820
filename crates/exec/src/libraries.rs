//! Functions of NVIDIA's libraries in place of kernels: where the libraries are, what of them can be called
//! here, and what stands for a compilation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::{self, ExecError, Problem};
use warpgauge_compile::toolchain::Toolchain;
use warpgauge_compile::{Artifact, CompileTimings, KernelInfo};
use warpgauge_contract::{IoContract, KernelCode, Library, resolve_call};
use warpgauge_device::libraries::{LibraryFunction, VendorLibrary, library_files};
use warpgauge_model::{DeviceInfo, DeviceKind, FailureCode, Image};
use warpgauge_report::ToolReport;
use warpgauge_worker::protocol::{Argument, KernelLaunch};

/// Folders in which the dynamic loader looks whatever its configuration says.
const LOADER: [&str; 6] = [
    "/usr/local/cuda/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
];

/// Configuration of the dynamic loader: a folder a line.
const LOADER_CONFIGURATION: &str = "/etc/ld.so.conf.d";

/// Most files, entries and lines that are looked at of it.
const MAX_ENTRIES: usize = 1024;

/// The libraries there are, and those that they need, best first: beside the compilers that were found,
/// below the Python packages beside PyTorch, and where the dynamic loader looks.
pub(super) fn found(toolchain: &Toolchain) -> Vec<PathBuf> {
    library_files(&folders(toolchain))
}

fn folders(toolchain: &Toolchain) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let nvrtc = toolchain.nvrtc.iter().map(|found| found.path.as_path());
    for library in nvrtc.chain(toolchain.cupti.iter().map(PathBuf::as_path)) {
        folders.extend(library.parent().map(Path::to_owned));
    }
    if let Some(nvcc) = &toolchain.nvcc {
        let root = nvcc.root();
        folders.extend(["lib64", "lib", "targets/x86_64-linux/lib"].map(|name| root.join(name)));
    }
    // Of a wheel's library and of PyTorch: each package of NVIDIA's has a folder of its own.
    let mut wheels: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| folder.ancestors().find(|path| path.ends_with("nvidia")))
        .map(Path::to_owned)
        .collect();
    wheels.extend(toolchain.torch.iter().map(|torch| torch.site_packages.join("nvidia")));
    for wheel in wheels {
        let mut packages = entries(&wheel);
        // `cu13` after `cu12`: the last has the newest.
        packages.reverse();
        folders.extend(packages.into_iter().map(|package| package.join("lib")));
    }
    let search = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&search).filter(|path| path.is_absolute()));
    folders.extend(configured(Path::new(LOADER_CONFIGURATION)));
    folders.extend(LOADER.map(PathBuf::from));
    folders
}

/// Folders that the dynamic loader is configured to look in.
fn configured(configuration: &Path) -> Vec<PathBuf> {
    let files = entries(configuration).into_iter();
    let files = files.filter(|file| file.extension().is_some_and(|ending| ending == "conf"));
    let lines = files.flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().take(MAX_ENTRIES).map(|line| PathBuf::from(line.trim())).collect::<Vec<_>>()
    });
    lines.filter(|path| path.is_absolute()).take(MAX_ENTRIES).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = folder.read_dir() else { return Vec::new() };
    let mut all: Vec<PathBuf> =
        listing.flatten().take(MAX_ENTRIES).map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// What can be called here: a report for each library, named as on the wire.
pub(super) fn reports(files: &[PathBuf], devices: &[DeviceInfo]) -> [ToolReport; 2] {
    let gpu = devices.iter().any(|device| device.kind == DeviceKind::Cuda);
    VendorLibrary::ALL.map(|library| {
        let file = file_of(library, files);
        let lack = match (gpu, file) {
            (true, Some(_)) => None,
            (true, None) => {
                let names = library.sonames().join(" or ");
                Some((format!("{names} was not found"), library.remedy().to_owned()))
            }
            (false, _) => {
                let reason = format!("the emulated device has no {}", library.title());
                Some((reason, "run the request on a machine with a GPU".to_owned()))
            }
        };
        let there = file.filter(|_| lack.is_none());
        ToolReport {
            name: library.name().to_owned(),
            available: there.is_some(),
            path: there.map(|file| file.display().to_string()),
            version: there.and_then(|file| version(file)),
            reason: lack.as_ref().map(|(reason, _)| reason.clone()),
            remedy: lack.map(|(_, remedy)| remedy),
        }
    })
}

/// The file that a worker tries first.
fn file_of(library: VendorLibrary, files: &[PathBuf]) -> Option<&PathBuf> {
    let names = library.sonames();
    let is_it = |file: &&PathBuf| {
        file.file_name().is_some_and(|name| names.iter().any(|wanted| name == *wanted))
    };
    files.iter().find(is_it)
}

/// Version of the library in the name of its real file; wheels have none there.
fn version(file: &Path) -> Option<String> {
    let real = file.canonicalize().ok()?;
    let (_, version) = real.file_name()?.to_str()?.split_once(".so.")?;
    version.contains('.').then(|| version.to_owned())
}

fn vendor(library: Library) -> VendorLibrary {
    match library {
        Library::Cusparse => VendorLibrary::CuSparse,
        Library::Cublas => VendorLibrary::CuBlas,
    }
}

/// What stands for the compilation of a kernel of a library. There is nothing to compile.
///
/// # Errors
/// The kernel does not fit its arguments.
pub(super) fn artifact(kernel: &KernelCode, path: &str) -> Result<Artifact, ExecError> {
    let args = kernel.io.as_ref().map_or(&[][..], |io| &io.args);
    let call = resolve_call(kernel, args, path).map_err(error::invalid)?;
    let library = vendor(call.library);
    let Some(function) = LibraryFunction::of(library, call.dtype) else {
        let message = format!("{} does not compute with {}", library.title(), call.dtype);
        return Err(wrong(path, message));
    };
    let Image { bytes, format } = function.image();
    let entry = KernelInfo {
        symbol: function.symbol().to_owned(),
        name: function.symbol().to_owned(),
        params: None,
        resources: None,
    };
    Ok(Artifact {
        key: blake3_of(&bytes),
        image: bytes,
        format,
        kernels: vec![entry],
        entry: 0,
        compiler: library.title().to_owned(),
        log: String::new(),
        diagnostics: Vec::new(),
        cache_hit: false,
        timings: CompileTimings::default(),
        launch: None,
        stages: Vec::new(),
    })
}

/// The launch that a call is: extents as 64-bit integers, then its buffers.
pub(super) fn launch(
    kernel: &KernelCode,
    artifact: &Artifact,
    io: &IoContract,
    path: &str,
) -> Result<KernelLaunch, ExecError> {
    let call = resolve_call(kernel, &io.args, path).map_err(error::invalid)?;
    let buffer_of: BTreeMap<usize, usize> =
        super::prepare::tensor_arguments(io).into_iter().map(|(index, _)| index).zip(0..).collect();
    let extents = call.extents.iter().map(|extent| Argument::Scalar(extent.to_le_bytes().into()));
    let buffers = call.arguments.iter().filter_map(|index| buffer_of.get(index));
    Ok(KernelLaunch {
        image: Image { bytes: artifact.image.clone(), format: artifact.format },
        symbol: artifact.entry_kernel().symbol.clone(),
        arguments: extents.chain(buffers.map(|&buffer| Argument::Buffer(buffer))).collect(),
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        cluster: None,
        cooperative: false,
    })
}

fn blake3_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn wrong(path: &str, message: String) -> ExecError {
    let path = format!("{path}.io.args");
    ExecError::Invalid(vec![Problem { path, code: FailureCode::DtypeMismatch, message }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_a_launch_with_extents_and_buffers_in_the_functions_order() {
        let tensor = |name: &str, length: u64, dtype: &str| {
            json!({"name": name, "type": "tensor",
                "tensor_spec": {"shape": [length], "dtype": dtype, "init": {"kind": "zeros"}}})
        };
        let mut y = tensor("y", 4, "float32");
        y["role"] = "output".into();
        let kernel: KernelCode = serde_json::from_value(json!({
            "kernel_type": "library", "metadata": {"library": "cusparse", "function": "spmv"},
            "io": {"args": [
                {"name": "num_rows", "type": "int", "value": 4},
                tensor("row_ptr", 5, "int32"), tensor("col_indices", 9, "int32"),
                tensor("values", 9, "float32"), tensor("x", 7, "float32"), y,
            ]},
        }))
        .unwrap();
        let made = artifact(&kernel, "kernel").unwrap();
        assert_eq!(&made.image[..], b"cusparse cusparseSpMV float32");
        let launch = launch(&kernel, &made, kernel.io.as_ref().unwrap(), "kernel").unwrap();
        assert_eq!(launch.symbol, "cusparseSpMV");
        let scalar = |number: u64| format!("{:?}", Argument::Scalar(number.to_le_bytes().into()));
        let buffer = |index: usize| format!("{:?}", Argument::Buffer(index));
        let told: Vec<String> = launch.arguments.iter().map(|one| format!("{one:?}")).collect();
        let buffers = [2, 1, 0, 3, 4].map(buffer);
        let wanted: Vec<String> = [4, 7, 9].map(scalar).into_iter().chain(buffers).collect();
        assert_eq!(told, wanted);
        assert_eq!(
            LibraryFunction::of_image(&launch.image).unwrap().arity(),
            (3, launch.arguments.len() - 3)
        );
    }

    #[test]
    fn what_cannot_be_called_says_why_and_what_would_help() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("libcusparse.so.12.6.3"), b"").unwrap();
        std::os::unix::fs::symlink("libcusparse.so.12.6.3", root.path().join("libcusparse.so.12"))
            .unwrap();
        let files = library_files(&[root.path().to_owned()]);
        let device = |kind| DeviceInfo { kind, ..crate::testing::h200() };
        let [cusparse, cublas] = reports(&files, &[device(DeviceKind::Cuda)]);
        assert!(
            cusparse.available && cusparse.version.as_deref() == Some("12.6.3"),
            "{cusparse:?}"
        );
        assert!(!cublas.available && cublas.reason.unwrap().contains("libcublas.so.13"));
        let [cusparse, _] = reports(&files, &[device(DeviceKind::Emulator)]);
        assert_eq!((cusparse.available, cusparse.path), (false, None));
        assert!(cusparse.reason.unwrap().contains("emulated device has no cuSPARSE"));
        std::fs::write(root.path().join("cuda.conf"), "# a comment\n/opt/cuda/lib\n").unwrap();
        assert_eq!(configured(root.path()), [PathBuf::from("/opt/cuda/lib")]);
    }
}
