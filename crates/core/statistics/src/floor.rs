//! Speed of light of a device: the shortest time of any correct kernel. The main function is
//! [`speed_of_light`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_model::{CacheState, Work};

/// Factor by which clocks may exceed the peak that the driver reports, because some boards have
/// higher clocks.
const CLOCK_HEADROOM: f64 = 1.05;

/// Device properties that determine the floor, as the driver reports them. 0 means unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloorDevice {
    /// Peak memory clock, in kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory bus, in bits.
    pub memory_bus_bits: u32,
    /// Size of the L2 cache, in bytes.
    pub l2_bytes: u64,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Peak SM clock, in kHz.
    pub sm_clock_khz: u32,
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
}

/// Resource that limits the speed of light.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FloorLimit {
    /// Device memory: moving the bytes takes the longer time.
    Memory,
    /// Arithmetic: the floating-point operations take the longer time.
    Compute,
}

/// Speed of light: the least time that a device needs for the declared work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedOfLight {
    /// Minimum time of one launch, milliseconds. Absent if it is 0 or unknown; `derivation` gives the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor_ms: Option<f64>,
    /// Resource that limits the speed of light.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<FloorLimit>,
    /// Derivation of each part, or the reason why the part is unknown.
    pub derivation: Vec<String>,
}

impl SpeedOfLight {
    /// Returns whether a time is impossible because it is shorter than the floor.
    pub fn excludes(&self, time_ms: f64) -> bool {
        self.floor_ms.is_some_and(|floor| time_ms < floor)
    }
}

/// Returns the floor of the declared work on a device: the longer of the times for moving its bytes
/// and for its operations. The floor errs on the low side, because the time of a faster kernel
/// counts as invalid. See [`memory_floor_ms`] and [`peak_flops_per_clock`].
pub fn speed_of_light(work: &Work, device: &FloorDevice, cache: CacheState) -> SpeedOfLight {
    let bytes = work.bytes.map(|bytes| memory_floor_ms(bytes, device, cache));
    let flops = work.flops.map(|flops| compute_floor_ms(flops, device));
    let parts = [(FloorLimit::Memory, bytes), (FloorLimit::Compute, flops)];
    let (mut best, mut derivation): (Option<(f64, FloorLimit)>, _) = (None, Vec::new());
    for (limit, part) in parts {
        match part {
            Some(Ok((ms, text))) => {
                derivation.push(text);
                if ms > best.map_or(0.0, |(most, _)| most) {
                    best = Some((ms, limit));
                }
            }
            Some(Err(text)) => derivation.push(text),
            None => {}
        }
    }
    if derivation.is_empty() {
        derivation.push("the contract declares no work: give work.bytes or work.flops".to_owned());
    }
    SpeedOfLight {
        floor_ms: best.map(|(ms, _)| ms),
        limit: best.map(|(_, limit)| limit),
        derivation,
    }
}

/// Returns the peak bandwidth of device memory in bytes per second, or `None` if the driver does
/// not report the memory clock or bus width.
pub(super) fn peak_bytes_per_second(device: &FloorDevice) -> Option<f64> {
    let clock_hz = f64::from(device.memory_clock_khz) * 1e3;
    let peak = 2.0 * clock_hz * f64::from(device.memory_bus_bits) / 8.0;
    (peak > 0.0).then_some(peak)
}

/// Returns the least time to move `bytes` with its derivation, or the reason why it is unknown.
///
/// Peak bandwidth = 2 · memory clock · bus width / 8, with data at both edges of the clock (CUDA
/// C++ Best Practices Guide, "Theoretical Bandwidth Calculation"). Data in L2 does not have to move
/// within the launch. With a cold cache, L2 may still contain its capacity of written lines at the
/// end of the launch. With a hot cache, it may also contain its capacity of inputs at the
/// beginning.
pub fn memory_floor_ms(
    bytes: f64,
    device: &FloorDevice,
    cache: CacheState,
) -> Result<(f64, String), String> {
    if !(bytes.is_finite() && bytes >= 0.0) {
        return Err(format!("work.bytes is {bytes}, which gives no floor"));
    }
    let FloorDevice { memory_clock_khz, memory_bus_bits, l2_bytes, .. } = *device;
    let Some(peak) = peak_bytes_per_second(device) else {
        return Err(
            "the driver reports no memory clock or bus width, so bytes give no floor".into()
        );
    };
    let bandwidth = peak * CLOCK_HEADROOM;
    let (times, held) = match cache {
        CacheState::Cold => ("", l2_bytes as f64),
        CacheState::Hot => ("2 × ", 2.0 * l2_bytes as f64),
    };
    let moved = (bytes - held).max(0.0);
    let ms = moved / bandwidth * 1e3;
    let text = format!(
        "bytes: ({bytes:.0} − {times}{l2_bytes} of L2, at least 0) / (2 × {} MHz × {memory_bus_bits} \
         bit / 8 × {CLOCK_HEADROOM} = {:.0} GB/s) = {ms:.6} ms",
        f64::from(memory_clock_khz) / 1e3,
        bandwidth / 1e9,
    );
    Ok((ms, text))
}

/// Returns the least time for `flops` operations with its derivation, or the reason why it is
/// unknown.
pub fn compute_floor_ms(flops: f64, device: &FloorDevice) -> Result<(f64, String), String> {
    if !(flops.is_finite() && flops >= 0.0) {
        return Err(format!("work.flops is {flops}, which gives no floor"));
    }
    let FloorDevice { multiprocessors, sm_clock_khz, compute_capability: (major, minor), .. } =
        *device;
    let Some(per_clock) = peak_flops_per_clock(major, minor) else {
        return Err(format!(
            "no peak is known for compute capability {major}.{minor}, so flops give no floor"
        ));
    };
    if multiprocessors == 0 || sm_clock_khz == 0 {
        return Err("the driver reports no SM count or clock, so flops give no floor".into());
    }
    let hz = f64::from(sm_clock_khz) * 1e3 * CLOCK_HEADROOM;
    let rate = f64::from(multiprocessors) * hz * f64::from(per_clock);
    let ms = flops / rate * 1e3;
    let text = format!(
        "flops: {flops:.0} / ({multiprocessors} SMs × {} MHz × {CLOCK_HEADROOM} × {per_clock} per \
         clock = {:.0} TFLOP/s, tensor cores at their lowest precision, sparse) = {ms:.6} ms",
        f64::from(sm_clock_khz) / 1e3,
        rate / 1e12,
    );
    Ok((ms, text))
}

/// Returns the maximum number of operations per clock of one SM, by compute capability, or `None`
/// if it is unknown. A multiply-add is two operations. The value covers any precision, tensor
/// cores, and operations that structured sparsity skips. A contract determines neither the
/// precision that a kernel may choose nor how operations are counted, so a lower value could reject
/// an honest kernel.
///
/// From NVIDIA's architecture white papers and data sheets, peak rate / (SMs · boost clock): P100
/// (fp16 21.2 T), P40 (int8 47 T), V100 (fp16 125 T), Xavier (int8 22.6 T), T4 (int4 260 T), A100
/// (binary 4,992 T), GA102 (sparse int4 1,136 T at 3090), Orin (sparse int8 170 T), AD102 (sparse
/// int4 2,643 T at 4090), H100 (sparse fp8 3,958 T), B200 (sparse fp4 18 P), B300 (dense fp4 15 P),
/// Thor (sparse fp4 2,070 T), GB202 (sparse fp4 3,352 T at 5090), GB10 (sparse fp4 1 P). If the
/// instruction set has single-bit products with an unpublished rate, the rate is assumed to be that
/// of A100, 4 × dense int4, if that is more.
pub fn peak_flops_per_clock(major: u32, minor: u32) -> Option<u32> {
    Some(match (major, minor) {
        (6, 0) => 256,
        (6, 1) => 1024,
        (6, 2) => 512,
        (7, 0) => 1024,
        (7, 2) => 2048,
        // Dense int4 is 4,096; the value is for single-bit products.
        (7, 5) => 16_384,
        (8, 0 | 7) => 32_768,
        // Sparse int4 is 8,192; the value is for single-bit products.
        (8, 6 | 9) => 16_384,
        // Sparse fp8 is 16,384; the value is for single-bit products, which exist as on A100.
        (9, 0) => 32_768,
        (10, 0) | (11, 0) => 65_536,
        // Dense fp4 is 1.5 times that of 10.0; sparse counts as twice the dense rate.
        (10, 3) => 98_304,
        (12, 0 | 1) => 16_384,
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// H200: 132 SMs, 60 MiB of L2, 6144-bit bus at 3201 MHz.
    pub(crate) const H200: FloorDevice = FloorDevice {
        memory_clock_khz: 3_201_000,
        memory_bus_bits: 6144,
        l2_bytes: 60 << 20,
        multiprocessors: 132,
        sm_clock_khz: 1_980_000,
        compute_capability: (9, 0),
    };

    fn floor(bytes: Option<f64>, flops: Option<f64>, cache: CacheState) -> SpeedOfLight {
        speed_of_light(&Work { bytes, flops }, &H200, cache)
    }

    #[test]
    fn measured_times_of_honest_kernels_are_possible() {
        // 16 M-element f32 add: 201 MB in 51.9 µs. (201.3 − 62.9) MB at 5.16 TB/s is 26.8 µs.
        let add = floor(Some(3.0 * 4.0 * f64::from(16 << 20)), None, CacheState::Cold);
        assert_eq!(add.limit, Some(FloorLimit::Memory));
        let ms = add.floor_ms.expect("a floor");
        assert!((ms - 0.0268).abs() < 1e-4, "{ms}");
        assert!(!add.excludes(0.0519) && add.excludes(0.02));
        // A 1 M-element add fits into L2 and has no floor from bytes.
        let small = floor(Some(3.0 * 4.0 * f64::from(1 << 20)), None, CacheState::Cold);
        assert_eq!((small.floor_ms, small.excludes(0.0)), (None, false));
        // bf16 8192³ at 800 TFLOP/s takes 1.37 ms.
        let matmul = floor(None, Some(2.0 * 8192.0_f64.powi(3)), CacheState::Cold);
        assert!(!matmul.excludes(1.37) && matmul.excludes(0.1), "{matmul:?}");
        assert_eq!(matmul.limit, Some(FloorLimit::Compute));
    }

    #[test]
    fn the_longer_part_is_the_floor_and_both_are_derived() {
        let both = floor(Some(1e9), Some(1e9), CacheState::Cold);
        assert_eq!((both.limit, both.derivation.len()), (Some(FloorLimit::Memory), 2));
        assert!(both.derivation[0].contains("3201 MHz × 6144 bit"), "{:?}", both.derivation);
        let hot = floor(Some(1e9), None, CacheState::Hot);
        assert!(hot.floor_ms < both.floor_ms && hot.floor_ms > Some(0.0));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let none = floor(None, None, CacheState::Cold);
        assert_eq!(none.floor_ms, None);
        assert!(none.derivation[0].contains("work.bytes"));
        let work = Work { bytes: Some(1e12), flops: Some(1e15) };
        let emulated = FloorDevice { memory_clock_khz: 0, compute_capability: (99, 0), ..H200 };
        let unknown = speed_of_light(&work, &emulated, CacheState::Cold);
        assert_eq!((unknown.floor_ms, unknown.derivation.len()), (None, 2));
        assert!(unknown.derivation[1].contains("99.0"), "{:?}", unknown.derivation);
        let no_clock = FloorDevice { sm_clock_khz: 0, ..H200 };
        assert!(compute_floor_ms(1.0, &no_clock).is_err());
        assert!(compute_floor_ms(f64::NAN, &H200).is_err());
        assert!(memory_floor_ms(f64::INFINITY, &H200, CacheState::Cold).is_err());
    }

    #[test]
    fn published_peaks_are_within_the_table() {
        // SMs, boost GHz, published peak in 10¹² operations per second.
        for (capability, sms, ghz, peak) in [
            ((8, 0), 108.0, 1.41, 4992.0),
            ((7, 0), 80.0, 1.53, 125.0),
            ((7, 5), 40.0, 1.59, 260.0),
            ((8, 9), 128.0, 2.52, 2643.0),
            ((9, 0), 132.0, 1.83, 3958.0),
            ((10, 0), 148.0, 1.85, 18_000.0),
            ((12, 0), 170.0, 2.407, 3352.0),
        ] {
            let per_clock = peak_flops_per_clock(capability.0, capability.1).expect("known");
            let rate = sms * ghz * f64::from(per_clock) / 1e3 * CLOCK_HEADROOM;
            assert!(rate >= peak, "{capability:?}: {rate} < {peak}");
        }
    }
}
