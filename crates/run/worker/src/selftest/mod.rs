//! `warpgauge __worker --self-test`: tests the worker on device 0 or the emulator.
//!
//! It needs only this program and a folder of images, so that it runs on a GPU host without a
//! compiler: `support` (from `crates/run/device/src/support.cu`, compiled with `--fmad=false`) and
//! `selftest` (from `kernels.cu` in this folder), each as `.cubin` or `.ptx`. Checks go through a
//! [`Fleet`], as every evaluation does.

mod bench;
mod checks;
mod content;
mod numbers;
mod secrets;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fleet::{DeviceChoice, Fleet, FleetConfig, SupportSource};
use bench::Bench;
use warpgauge_model::{Image, ImageFormat, Target};

/// Source of the kernels that the checks use.
pub const SOURCE: &str = include_str!("kernels.cu");

/// Runs every check and prints a table.
pub(super) fn main(images: &Path, emulator: Option<PathBuf>, run_dir: PathBuf) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(images, emulator, run_dir)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            eprintln!("{failures} checks failed");
            ExitCode::FAILURE
        }
        Err(reason) => {
            eprintln!("the self-test cannot run: {reason}");
            ExitCode::FAILURE
        }
    }
}

async fn run(images: &Path, emulator: Option<PathBuf>, run_dir: PathBuf) -> Result<usize, String> {
    let devices = match emulator {
        Some(_) => DeviceChoice::Emulator,
        None => DeviceChoice::Ordinals(vec![0]),
    };
    let config = FleetConfig {
        program: std::env::current_exe()
            .map_err(|error| format!("cannot find this program: {error}"))?,
        devices,
        emulator,
        cupti: Vec::new(),
        libraries: Vec::new(),
        run_dir,
        hot_spare: true,
        queue_capacity: 4,
        start_timeout: Duration::from_secs(60),
    };
    let folder = images.to_owned();
    let support: SupportSource = Arc::new(move |target| {
        let image = read_image(&folder, "support", target);
        Box::pin(async move { image })
    });
    let fleet = Fleet::start(config, support).await.map_err(|error| error.to_string())?;
    let info = fleet.devices().first().map(|device| device.info.clone());
    let info = info.ok_or("the fleet has no device")?;
    println!(
        "{} ({}), sm_{}{}",
        info.name, info.uuid, info.target.compute_capability.0, info.target.compute_capability.1
    );
    let image = read_image(images, "selftest", info.target)?;
    let own = read_image(images, "support", info.target)?;
    let bench = Bench::new(Arc::clone(&fleet), image, own)?;
    let mut failures = 0;
    for check in checks::ALL {
        let start = Instant::now();
        let result = (check.run)(&bench).await;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let (word, text) = match result {
            Ok(text) => ("ok", text),
            Err(text) => {
                failures += 1;
                ("FAILED", text)
            }
        };
        println!("{word:6} {:24} {ms:8.1} ms  {text}", check.name);
        let _ = std::io::stdout().flush();
    }
    fleet.shutdown(Duration::from_secs(5)).await;
    Ok(failures)
}

/// Reads the image called `name` that the device can load. Prefers machine code.
fn read_image(folder: &Path, name: &str, target: Target) -> Result<Image, String> {
    let forms = [("cubin", ImageFormat::Cubin), ("ptx", ImageFormat::Ptx)];
    let usable =
        forms.into_iter().filter(|(_, format)| !target.emulated || *format == ImageFormat::Ptx);
    for (extension, format) in usable {
        let path = folder.join(format!("{name}.{extension}"));
        if path.is_file() {
            let bytes = std::fs::read(&path);
            let bytes =
                bytes.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            return Ok(Image { bytes: bytes.into(), format });
        }
    }
    Err(format!("no {name} image for this device in {}", folder.display()))
}
