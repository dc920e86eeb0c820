//! The worker's self-test, on the emulated device. On a GPU the bundle's `run.sh` runs it.

use warpgauge_device::loader;

use crate::server::{emulated, program, program_path, root};

#[test]
fn a_worker_passes_its_self_test() {
    needs!("the emulated device", emulated());
    let images = tempfile::tempdir().unwrap();
    for (source, kernel, name, options) in [
        (
            "run/device/src/support.cu",
            "wg_write",
            "support",
            &["--compiler-option=--fmad=false"][..],
        ),
        ("run/worker/src/selftest/kernels.cu", "st_nothing", "selftest", &[]),
    ] {
        let source = root().join("crates").join(source);
        let image = images.path().join(format!("{name}.ptx"));
        let compiled = program()
            .args(["--device", "emulator", "compile"])
            .arg(&source)
            .args(["--kernel-name", kernel])
            .args(options)
            .arg("-o")
            .arg(&image)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    }
    let output = program()
        .args(["__worker", "--self-test", "--images"])
        .arg(images.path())
        .arg("--emulator")
        .arg(program_path().with_file_name(loader::EMULATOR_FILE))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("ok     several_launches"), "{told}");
}
