//! Functions of NVIDIA's libraries, which replace kernels. This module reports which are callable,
//! and creates the substitute for their compilation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{self, ExecError, Problem};
use warpgauge_compile::{CompileTimings, CompiledModule, KernelInfo};
use warpgauge_contract::{IoContract, KernelCode, resolve_call};
use warpgauge_device::libraries::{TypedLibraryFunction, is_file_of, remedy, sonames};
use warpgauge_model::{DeviceInfo, DeviceKind, FailureCode, Image, Library};
use warpgauge_report::ToolReport;
use warpgauge_worker::protocol::{Argument, KernelLaunch};

/// Returns a report for each library on whether it is callable here, with its name in the API.
pub(crate) fn reports(files: &[PathBuf], devices: &[DeviceInfo]) -> [ToolReport; 2] {
    let gpu = devices.iter().any(|device| device.kind == DeviceKind::Cuda);
    Library::ALL.map(|library| {
        // This is the file that a worker tries first.
        let file = files.iter().find(|file| is_file_of(library, file));
        let lack = match (gpu, file) {
            (true, Some(_)) => None,
            (true, None) => {
                let names = sonames(library).join(" or ");
                Some((format!("{names} was not found"), remedy(library).to_owned()))
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

/// Returns the library's version from the name of its real file. The names of files in Python
/// wheels contain no version.
fn version(file: &Path) -> Option<String> {
    let real = file.canonicalize().ok()?;
    let (_, version) = real.file_name()?.to_str()?.split_once(".so.")?;
    version.contains('.').then(|| version.to_owned())
}

/// Returns the substitute for the compilation of a library kernel, which has no code to compile.
///
/// # Errors
/// Fails if the kernel does not fit its arguments.
pub(crate) fn artifact(kernel: &KernelCode, path: &str) -> Result<CompiledModule, ExecError> {
    let args = kernel.io.as_ref().map_or(&[][..], |io| &io.args);
    let call = resolve_call(kernel, args, path).map_err(error::invalid)?;
    let library = call.library;
    let Some(function) = TypedLibraryFunction::of(library, call.dtype) else {
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
    Ok(CompiledModule {
        variables: Vec::new(),
        key: blake3_of(&bytes),
        image: bytes,
        format,
        kernels: vec![entry],
        entry: 0,
        compiler: library.title().to_owned(),
        options: Vec::new(),
        log: String::new(),
        diagnostics: Vec::new(),
        cache_hit: false,
        timings: CompileTimings::default(),
        launch: None,
        stages: Vec::new(),
    })
}

/// Returns a library call as a launch. Its arguments are the extents as 64-bit integers, followed
/// by the buffers.
pub(crate) fn launch(
    kernel: &KernelCode,
    artifact: &CompiledModule,
    io: &IoContract,
    path: &str,
) -> Result<KernelLaunch, ExecError> {
    let call = resolve_call(kernel, &io.args, path).map_err(error::invalid)?;
    let buffer_of: BTreeMap<usize, usize> =
        crate::prepare::tensor_arguments(io).into_iter().map(|(index, _)| index).zip(0..).collect();
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
            TypedLibraryFunction::of_image(&launch.image).unwrap().arity(),
            (3, launch.arguments.len() - 3)
        );
    }

    #[test]
    fn what_cannot_be_called_says_why_and_what_would_help() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("libcusparse.so.12.6.3"), b"").unwrap();
        std::os::unix::fs::symlink("libcusparse.so.12.6.3", root.path().join("libcusparse.so.12"))
            .unwrap();
        let files = [root.path().join("libcusparse.so.12")];
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
    }
}
