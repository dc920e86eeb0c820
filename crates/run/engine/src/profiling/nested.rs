//! Kernels that launch kernels.
//!
//! A tool profiles the launch that the host made. Its counters run until that launch ends, which is
//! after the end of all kernels that the launch started. So counts, bytes and times are totals over
//! all kernels, including the launch overhead of the device runtime. On an H200, CUPTI and Nsight
//! Compute counted every one of the 16,384 additions of 64 launched blocks. They counted 2,131 and
//! 2,133 stored sectors, although the kernels store 2,048. Properties of the launch are those of
//! the first kernel.

use warpgauge_metrics::CollectedMetrics;
use warpgauge_model::Image;
use warpgauge_worker::protocol::KernelProgram;

/// Launch functions of the device runtime: the name since CUDA 12, and the name before it.
const LAUNCHES: [&[u8]; 2] = [b"cudaCDP2LaunchDevice", b"cudaLaunchDevice"];

const NOTE: &str = "including the kernels that this one launches, and the work of the device runtime \
                    to launch them";

/// Adds a note to a tool's metrics if they cover several kernels.
pub(crate) fn noted(mut collected: CollectedMetrics, program: &KernelProgram) -> CollectedMetrics {
    if program.launches.iter().any(|launch| launches_kernels(&launch.image)) {
        collected.note = Some(match collected.note.take() {
            Some(note) => format!("{NOTE}; {note}"),
            None => NOTE.to_owned(),
        });
    }
    collected
}

/// Returns whether the image's code can launch kernels. Returns false for a compressed image, whose
/// code cannot be searched.
fn launches_kernels(image: &Image) -> bool {
    LAUNCHES.iter().any(|name| image.bytes.windows(name.len()).any(|part| part == *name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_model::ImageFormat;

    #[test]
    fn the_runtime_of_the_device_is_known_by_its_names() {
        let of = |text: &str| {
            launches_kernels(&Image { bytes: text.as_bytes().into(), format: ImageFormat::Cubin })
        };
        assert!(of("\0.text.__cudaCDP2LaunchDeviceV2\0"));
        assert!(of(".extern .func (.param .b32 r) cudaLaunchDeviceV2"));
        assert!(!of(".visible .entry launch_device()") && !of(""));
    }
}
