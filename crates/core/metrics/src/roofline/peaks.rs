//! Computes ceilings from the profiler's peaks and clocks, or else from properties of the device.

use super::{Ceiling, CeilingSource, ComputeRoof, Level, MemoryRoof, Precision, RatesOver, Values};
use warpgauge_model::DeviceInfo;

/// Bytes that L1 moves per cycle and multiprocessor: the width of its data path to registers, as in
/// Nsight Compute's roofline sections.
const L1_BYTES_PER_CYCLE: f64 = 128.0;

/// Fills in the ceilings of all precisions and memory levels, if they are known.
pub(super) fn put(
    values: Values<'_>,
    device: &DeviceInfo,
    time: Option<&RatesOver>,
    compute: &mut [ComputeRoof],
    memory: &mut [MemoryRoof],
) {
    let clock = Clock::of(device, time);
    for roof in compute {
        roof.ceiling = told_compute(values, roof.precision, clock.as_ref())
            .or_else(|| compute_facts(device, roof.precision, clock.as_ref()));
    }
    for roof in memory {
        roof.ceiling = told_memory(values, roof.level)
            .or_else(|| memory_facts(device, roof.level, clock.as_ref()));
    }
}

/// Clock from which the ceilings of the multiprocessors are computed.
struct Clock {
    hz: f64,
    what: &'static str,
}

impl Clock {
    fn of(device: &DeviceInfo, time: Option<&RatesOver>) -> Option<Self> {
        let measured = time.and_then(|time| time.clock_hz);
        match measured {
            Some(hz) => Some(Self { hz, what: "measured clock" }),
            None if device.clock_khz > 0 => Some(Self {
                hz: f64::from(device.clock_khz) * 1e3,
                what: "the device's peak clock",
            }),
            None => None,
        }
    }
}

/// Returns the ceiling from the catalogue's peak operations per cycle.
fn told_compute(values: Values<'_>, of: Precision, clock: Option<&Clock>) -> Option<Ceiling> {
    let id = match of {
        Precision::Fp64 => "peak_double",
        Precision::Fp32 => "peak_single",
        Precision::Fp16 => "peak_half",
        Precision::TensorFp64 => "peak_tensor_double",
        Precision::TensorTf32 => "peak_tensor_tf32",
        Precision::TensorHalf => "peak_tensor_half",
        Precision::TensorFp8 => "peak_tensor_fp8",
        Precision::Tensor => return None,
    };
    told(id, values.get(id)?, clock?.hz, clock?.what, "operations")
}

/// Returns the ceiling from the catalogue's peak bytes per cycle, at the clock of the unit.
fn told_memory(values: Values<'_>, of: Level) -> Option<Ceiling> {
    let (peak, clock) = match of {
        Level::L1 => ("peak_l1", "l1_clock"),
        Level::L2 => ("peak_l2", "l2_clock"),
        Level::Dram => ("peak_dram", "dram_clock"),
    };
    told(peak, values.get(peak)?, values.get(clock)?, clock, "bytes")
}

fn told(id: &str, peak: f64, hz: f64, clock: &str, what: &str) -> Option<Ceiling> {
    (peak > 0.0 && hz > 0.0).then(|| Ceiling {
        per_second: peak * hz,
        source: CeilingSource::Profiler,
        derivation: format!("{id} {peak:.0} {what}/cycle × {:.0} MHz ({clock})", hz / 1e6),
    })
}

fn compute_facts(device: &DeviceInfo, of: Precision, clock: Option<&Clock>) -> Option<Ceiling> {
    let clock = clock?;
    let per_cycle = flops_per_cycle(device.target.compute_capability, of)?;
    (device.multiprocessors > 0).then(|| Ceiling {
        per_second: f64::from(device.multiprocessors) * f64::from(per_cycle) * clock.hz,
        source: CeilingSource::DeviceFacts,
        derivation: format!(
            "{} SMs × {per_cycle} operations/cycle × {:.0} MHz ({})",
            device.multiprocessors,
            clock.hz / 1e6,
            clock.what
        ),
    })
}

/// Returns the operations per cycle and multiprocessor by compute capability; a multiply-add counts
/// as two. `None` if unknown.
///
/// Rates outside tensor cores are from the table "Throughput of Native Arithmetic Instructions" of
/// the CUDA C++ Programming Guide. Those of tensor cores are from NVIDIA's architecture white
/// papers, dense peak / (SMs · boost clock): V100 125 T, A100 312 T, H100 989 T, B200 2,250 T. They
/// are `None` for chips whose rate depends on the accumulator's type.
fn flops_per_cycle(capability: (u32, u32), of: Precision) -> Option<u32> {
    let (fp64, fp32, fp16, tensor16) = match capability {
        (7, 0) => (64, 128, 256, Some(1024)),
        (7, 5) => (4, 128, 256, None),
        (8, 0) => (64, 128, 512, Some(2048)),
        (8, 6 | 9) => (4, 256, 256, None),
        (9, 0) => (128, 256, 512, Some(4096)),
        (10, 0) => (128, 256, 512, Some(8192)),
        (12, 0) => (4, 256, 256, None),
        _ => return None,
    };
    match of {
        Precision::Fp64 => Some(fp64),
        Precision::Fp32 => Some(fp32),
        Precision::Fp16 => Some(fp16),
        Precision::TensorHalf => tensor16,
        // Volta does not support this type.
        Precision::TensorTf32 => tensor16.filter(|_| capability.0 >= 8).map(|rate| rate / 2),
        Precision::TensorFp8 => tensor16.filter(|_| capability.0 >= 9).map(|rate| rate * 2),
        Precision::TensorFp64 | Precision::Tensor => None,
    }
}

fn memory_facts(device: &DeviceInfo, of: Level, clock: Option<&Clock>) -> Option<Ceiling> {
    let ceiling = |per_second, derivation| Ceiling {
        per_second,
        source: CeilingSource::DeviceFacts,
        derivation,
    };
    match of {
        Level::L1 if device.multiprocessors > 0 => {
            let clock = clock?;
            Some(ceiling(
                f64::from(device.multiprocessors) * L1_BYTES_PER_CYCLE * clock.hz,
                format!(
                    "{} SMs × {L1_BYTES_PER_CYCLE} bytes/cycle × {:.0} MHz ({})",
                    device.multiprocessors,
                    clock.hz / 1e6,
                    clock.what
                ),
            ))
        }
        Level::Dram if device.memory_clock_khz > 0 && device.memory_bus_bits > 0 => {
            let hz = f64::from(device.memory_clock_khz) * 1e3;
            Some(ceiling(
                2.0 * hz * f64::from(device.memory_bus_bits) / 8.0,
                format!(
                    "2 × {:.0} MHz × {} bit / 8 (the device's peak clock)",
                    hz / 1e6,
                    device.memory_bus_bits
                ),
            ))
        }
        // The driver does not report the width of L2.
        Level::L1 | Level::L2 | Level::Dram => None,
    }
}
