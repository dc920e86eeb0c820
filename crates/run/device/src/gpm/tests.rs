//! Tests with a fake library that answers like NVML.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// Builds the library with these definitions; it is removed with the directory.
fn library(definitions: &[&str]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("libnvidia-ml.so.1");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/fixtures/nvml/fake.c");
    let definitions = definitions.iter().map(|definition| format!("-D{definition}"));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", source, "-o"])
        .arg(&library)
        .args(definitions)
        .status();
    assert!(built.expect("a C compiler, which linking takes too").success());
    (directory, library)
}

fn monitor(definitions: &[&str]) -> (TempDir, GpuMonitor) {
    let (directory, library) = library(definitions);
    let monitor = GpuMonitor::open_in(library.as_os_str(), "GPU-0000").unwrap();
    (directory, monitor)
}

/// Returns the values between two consecutive readings.
fn readings(monitor: &GpuMonitor) -> BTreeMap<&'static str, Result<f64, String>> {
    let first = monitor.gpm_reading().unwrap();
    let second = monitor.gpm_reading().unwrap();
    assert!(monitor.gpm_between(&second, &first).is_err(), "the wrong way round");
    monitor.gpm_between(&first, &second).unwrap().into_iter().collect()
}

#[test]
fn each_reading_has_a_percentage_or_its_reason() {
    let (_directory, monitor) = monitor(&[]);
    monitor.gpm_support().unwrap();
    let values = readings(&monitor);
    assert_eq!(values.len(), METRICS.len());
    assert_eq!(values["gpm__sm_util"], Ok(90.0));
    assert_eq!(values["gpm__graphics_util"], Ok(100.0), "a little beyond its bound");
    assert!(values["gpm__imma_tensor_util"].as_ref().unwrap_err().contains("not available"));
    assert_eq!(values["gpm__fp64_util"], Err("it is not a number".to_owned()));
    assert!(values["gpm__dram_bw_util"].as_ref().unwrap_err().contains("not a percentage"));
}

/// CUDA names a partition like a GPU, and its monitoring is that of its instance.
#[test]
fn a_partition_is_read_by_its_instance_on_the_whole_gpu() {
    let (_directory, monitor) = monitor(&["PARTITION"]);
    monitor.gpm_support().unwrap();
    assert_eq!(readings(&monitor)["gpm__dram_bw_util"], Ok(70.0));
}

#[test]
fn what_cannot_be_had_has_a_code() {
    let code = |error: GpmError| error.unavailable().code;
    let (_directory, none) = monitor(&["SUPPORT=0"]);
    assert_eq!(code(none.gpm_support().unwrap_err()), "no_monitoring");
    let (_directory, old) = monitor(&["OLD"]);
    assert_eq!(code(old.gpm_support().unwrap_err()), "driver_mismatch");
    let (_directory, closed) = monitor(&["READ=4"]);
    assert_eq!(code(closed.gpm_reading().err().unwrap()), "no_permission");
    let (_directory, broken) = monitor(&["READ=999"]);
    let error = broken.gpm_reading().err().unwrap();
    assert!(error.to_string().starts_with("read GPM: "), "{error}");
    assert_eq!(code(error), "tool_failed");
    let (_directory, library) = library(&[]);
    let unknown = GpuMonitor::open_in(library.as_os_str(), "GPU-0001").err().unwrap();
    assert!(unknown.contains("GPU-0001"), "{unknown}");
}
