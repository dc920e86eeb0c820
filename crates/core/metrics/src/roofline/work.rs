//! Computes the operations and bytes of a launch, and their rates.

use super::{ComputeRoof, Level, MemoryRoof, Precision, RooflinePoint, Values};

/// Bytes of a sector, the unit of requests from L1 to L2.
const SECTOR_BYTES: f64 = 32.0;

/// Metric of the catalogue that counts the operations of each precision.
const OPERATIONS: [(Precision, &str); 7] = [
    (Precision::Fp64, "flop_count_double"),
    (Precision::Fp32, "flop_count_single"),
    (Precision::Fp16, "flop_count_half"),
    (Precision::TensorFp64, "flop_count_tensor_double"),
    (Precision::TensorTf32, "flop_count_tensor_tf32"),
    (Precision::TensorHalf, "flop_count_tensor_half"),
    (Precision::TensorFp8, "flop_count_tensor_narrow"),
];

/// Returns the operations by precision, without rates and ceilings.
pub(super) fn compute(values: Values<'_>) -> Vec<ComputeRoof> {
    let roof = |precision, operations| ComputeRoof {
        precision,
        operations,
        rate: None,
        ceiling: None,
        fraction: None,
    };
    let mut roofs: Vec<ComputeRoof> =
        OPERATIONS.iter().map(|(precision, id)| roof(*precision, values.get(id))).collect();
    let tensor = |roof: &&ComputeRoof| roof.precision >= Precision::TensorFp64;
    let apart: f64 = roofs.iter().filter(tensor).filter_map(|roof| roof.operations).sum();
    // Operations whose precision the source does not distinguish have a separate entry; no
    // operation is counted twice.
    let rest = values.get("flop_count_tensor").map(|all| all - apart);
    if let Some(rest) = rest.filter(|rest| *rest > 0.0) {
        roofs.push(roof(Precision::Tensor, Some(rest)));
    }
    roofs
}

/// Returns the bytes by memory level, without rates and ceilings.
pub(super) fn memory(values: Values<'_>) -> Vec<MemoryRoof> {
    let roof = |level, bytes, note: Option<&str>| MemoryRoof {
        level,
        bytes,
        bytes_note: note.map(str::to_owned),
        rate: None,
        ceiling: None,
        fraction: None,
    };
    let l1 = match (values.get("l1_bytes"), values.get("l2_sectors_global")) {
        (Some(bytes), _) => roof(Level::L1, Some(bytes), None),
        (None, Some(sectors)) => roof(
            Level::L1,
            Some(sectors * SECTOR_BYTES),
            Some("sectors of 32 bytes that requests to global memory touch, without shared memory"),
        ),
        (None, None) => roof(Level::L1, None, None),
    };
    let ideal = values.get("ideal_read_bytes").zip(values.get("ideal_write_bytes"));
    let dram = match (values.get("dram_bytes"), ideal) {
        (Some(bytes), _) => roof(Level::Dram, Some(bytes), None),
        (None, Some((read, written))) => roof(
            Level::Dram,
            Some(read + written),
            Some("bytes that a perfect cache would move: the actual intensity is at most this one"),
        ),
        (None, None) => roof(Level::Dram, None, None),
    };
    vec![l1, roof(Level::L2, values.get("l2_bytes"), None), dram]
}

/// Fills in the rates, and their fractions of the ceilings.
pub(super) fn rates(seconds: f64, compute: &mut [ComputeRoof], memory: &mut [MemoryRoof]) {
    for roof in compute {
        roof.rate = roof.operations.map(|operations| operations / seconds);
        roof.fraction = roof.rate.zip(roof.ceiling.as_ref()).map(|(r, c)| r / c.per_second);
    }
    for roof in memory {
        roof.rate = roof.bytes.map(|bytes| bytes / seconds);
        roof.fraction = roof.rate.zip(roof.ceiling.as_ref()).map(|(r, c)| r / c.per_second);
    }
}

/// Returns a point for every pair of a precision and a memory level that the kernel uses.
pub(super) fn points(compute: &[ComputeRoof], memory: &[MemoryRoof]) -> Vec<RooflinePoint> {
    let mut points = Vec::new();
    for roof in compute {
        let Some(operations) = roof.operations.filter(|operations| *operations > 0.0) else {
            continue;
        };
        for level in memory {
            let Some(bytes) = level.bytes.filter(|bytes| *bytes > 0.0) else { continue };
            let intensity = operations / bytes;
            let by_memory = level.ceiling.as_ref().map(|c| c.per_second * intensity);
            let by_compute = roof.ceiling.as_ref().map(|c| c.per_second);
            // Both are needed: an unknown ceiling may be the lower one.
            let attainable = by_memory.zip(by_compute).map(|(a, b)| a.min(b));
            points.push(RooflinePoint {
                precision: roof.precision,
                level: level.level,
                intensity,
                rate: roof.rate,
                attainable,
                fraction: roof.rate.zip(attainable).map(|(rate, most)| rate / most),
            });
        }
    }
    points
}
