//! Quantised values and their scales: two tensors, each generated without the content of the other.
//!
//! A scale is drawn from a range that depends on the standard deviation of the values and the
//! largest number of their type, not on the values of its block. Each value therefore needs only
//! its random word and that of its scale. The main types are [`QuantizedValues`] and
//! [`ScaleRange`].

use super::InitError;
use crate::element::{Element, for_dtype};
use crate::ordered::node_word;
use crate::{
    Dtype, ElementGenerator, PairInit, Philox, ScaleBlocks, ScaleLayout, ScaleShape, TensorInit,
    shape_of_parts,
};

/// Number of standard deviations that map to the largest quantised number, at the lower end of the
/// range of scales. A normal number exceeds it once in 370 draws, and then saturates.
const DEVIATIONS: f64 = 3.0;

/// Range of scales: [`low`, 2 · `low`), rounded to their element type. For E8M0, `low` is rounded
/// to a power of two first: otherwise the whole range could round to a single scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleRange {
    pub low: f64,
    /// Element type of the scales.
    pub dtype: Dtype,
}

/// Lower end of the range of block scales of tensors with a global scale. The upper end is twice as
/// large. Every type of scales represents this range.
const BESIDE_GLOBAL: f64 = 64.0;

/// Zero points: integers in `low … low + span - 1`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZeroPoints {
    pub low: u64,
    pub span: u64,
    /// Both halves of the key of the zero points' random stream.
    pub key: [u64; 2],
}

/// Scale that applies to all numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlobalScale {
    pub range: ScaleRange,
    /// Both halves of the key of the global scale's random stream.
    pub key: [u64; 2],
}

/// Normal numbers, each divided by the scale of its block.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedValues {
    pub mean: f64,
    /// Standard deviation of the numbers before they are divided.
    pub std: f64,
    /// Mapping from numbers to their scales.
    pub blocks: ScaleBlocks,
    pub scales: ScaleRange,
    /// Both halves of the key of the scales' random stream.
    pub key: [u64; 2],
    /// Whether quotients are rounded to whole numbers, ties to even. Floats round by their type.
    pub whole: bool,
    /// Zero points that are added to the quotients, if the type has them.
    pub zeros: Option<ZeroPoints>,
    pub global: Option<GlobalScale>,
}

impl ZeroPoints {
    /// Returns the zero point with this index.
    pub fn at(self, index: u64) -> u64 {
        // The upper half of the word suffices, since the span is far below 2^32.
        self.low + (((node_word(self.key, index) >> 32) * self.span) >> 32)
    }
}

impl ScaleRange {
    /// Returns the scale at `index`, from the stream with this key.
    pub fn at(self, key: [u64; 2], index: u64) -> f64 {
        let u = (node_word(key, index) >> 11) as f64 * 2f64.powi(-53);
        let scaled = u * self.low;
        for_dtype!(self.dtype, rounded(self.low + scaled))
    }
}

/// Returns the nearest number of a type.
fn rounded<T: Element>(value: f64) -> f64 {
    T::from_f64(value).to_f64()
}

impl QuantizedValues {
    /// Returns the value at `index`: (mean + std · `normal`) divided by the scale of its block and by the global
    /// scale, plus the zero point. Integer types round the quotient first.
    pub fn at(&self, index: u64, normal: f64) -> f64 {
        let scaled = self.std * normal;
        let block = self.blocks.scale_of(index);
        let mut scale = self.scales.at(self.key, block);
        if let Some(global) = self.global {
            scale *= global.range.at(global.key, 0);
        }
        let quotient = (self.mean + scaled) / scale;
        let rounded = if self.whole { quotient.round_ties_even() } else { quotient };
        self.zeros.map_or(rounded, |zeros| rounded + zeros.at(block) as f64)
    }
}

/// Returns the generator of quantised values.
pub(super) fn values(
    init: &TensorInit,
    dtype: Dtype,
    shape: &[u64],
) -> Result<ElementGenerator, InitError> {
    let pair = pair(init, "scales")?;
    let largest = largest(dtype, "kind")?;
    let std = deviation(init.std)?;
    let global = match &init.global_pair {
        Some(global) => {
            let range = range(std / BESIDE_GLOBAL, largest, global.dtype)?;
            Some(GlobalScale { range, key: key(global) })
        }
        None => None,
    };
    let scales = match global {
        Some(_) => beside_global(pair.dtype)?,
        None => range(std, largest, pair.dtype)?,
    };
    Ok(ElementGenerator::Quantized(QuantizedValues {
        mean: init.mean.unwrap_or(0.0),
        std,
        blocks: blocks((dtype, shape), (pair.dtype, &pair.shape), (&pair.block, pair.layout))?,
        scales,
        key: key(pair),
        whole: !dtype.is_float(),
        zeros: zeros(init, dtype, pair)?,
        global,
    }))
}

fn key(pair: &PairInit) -> [u64; 2] {
    Philox::for_argument(pair.seed.unwrap_or(0), &pair.name).key()
}

/// Returns the range of block scales for a tensor with a global scale.
fn beside_global(dtype: Dtype) -> Result<ScaleRange, InitError> {
    // With these arguments the lower end is `BESIDE_GLOBAL`. `range` also checks the type.
    range(BESIDE_GLOBAL, DEVIATIONS, dtype)
}

/// Returns the zero points that are added to values of a type.
fn zeros(
    init: &TensorInit,
    dtype: Dtype,
    scales: &PairInit,
) -> Result<Option<ZeroPoints>, InitError> {
    let Some((middle, [low, span])) = dtype.zero_points() else {
        return match init.zeros {
            Some(_) => {
                let message = format!("uint4x2 and uint8 have zero points, not {dtype}");
                Err(InitError::new("zeros", message))
            }
            None => Ok(None),
        };
    };
    let Some(zeros) = &init.zeros_pair else {
        return Ok(Some(ZeroPoints { low: middle, span: 1, key: [0; 2] }));
    };
    let shape = shape_of_parts(zeros.dtype, &zeros.shape);
    if shape != scales.shape {
        let message = format!(
            "zero points of shape {shape:?} (in numbers) do not fit scales of shape {:?}: each scale has one",
            scales.shape
        );
        return Err(InitError::new("zeros", message));
    }
    Ok(Some(ZeroPoints { low, span, key: key(zeros) }))
}

/// Returns the generator of zero points.
pub(super) fn zero_points(init: &TensorInit, dtype: Dtype) -> Result<ElementGenerator, InitError> {
    let pair = pair(init, "quantized")?;
    let Some((_, [low, span])) = pair.dtype.zero_points() else {
        let message = format!("uint4x2 and uint8 have zero points, not {}", pair.dtype);
        return Err(InitError::new("of", message));
    };
    let fits = match dtype.integer_range() {
        Some((_, most)) => i128::from(low + span) <= most + 1,
        None => !dtype.is_complex() && dtype.size() >= 2,
    };
    if !fits {
        let message = format!("{dtype} does not hold zero points from {low} to {}", low + span - 1);
        return Err(InitError::new("kind", message));
    }
    Ok(ElementGenerator::ZeroPoints { low, span })
}

/// Returns the generator of a global scale.
pub(super) fn global_scale(
    init: &TensorInit,
    dtype: Dtype,
    shape: &[u64],
) -> Result<ElementGenerator, InitError> {
    let pair = pair(init, "quantized")?;
    if shape.iter().any(|extent| *extent != 1) {
        let message = format!("a global scale is one number: `shape: [1]`, not {shape:?}");
        return Err(InitError::new("kind", message));
    }
    let std = deviation(pair.std)? / BESIDE_GLOBAL;
    range(std, largest(pair.dtype, "of")?, dtype).map(ElementGenerator::Scales)
}

/// Returns the generator of scales.
pub(super) fn scales(
    init: &TensorInit,
    dtype: Dtype,
    shape: &[u64],
) -> Result<ElementGenerator, InitError> {
    let pair = pair(init, "quantized")?;
    blocks((pair.dtype, &pair.shape), (dtype, shape), (&init.block, init.layout))?;
    let largest = largest(pair.dtype, "of")?;
    let range = match pair.has_global {
        true => beside_global(dtype)?,
        false => range(deviation(pair.std)?, largest, dtype)?,
    };
    Ok(ElementGenerator::Scales(range))
}

fn pair<'a>(init: &'a TensorInit, kind: &str) -> Result<&'a PairInit, InitError> {
    init.pair.as_deref().ok_or_else(|| {
        InitError::new("of", format!("needs `of`, the name of a tensor of the kind `{kind}`"))
    })
}

fn deviation(std: Option<f64>) -> Result<f64, InitError> {
    let std = std.unwrap_or(1.0);
    let fits = std.is_finite() && std > 0.0;
    fits.then_some(std).ok_or_else(|| {
        InitError::new("std", format!("`std` of quantised values must be above 0, not {std}"))
    })
}

/// Returns the largest magnitude of a type that values can be quantised to.
fn largest(dtype: Dtype, field: &'static str) -> Result<f64, InitError> {
    dtype.largest_quantized().ok_or_else(|| {
        let message = format!(
            "values are quantised to float8_e4m3, float8_e5m2, float4_e2m1fn_x2, int8, int4x2, uint8 or uint4x2, not \
             {dtype}"
        );
        InitError::new(field, message)
    })
}

/// Returns the range of scales, if their type represents it with full precision.
fn range(std: f64, largest: f64, dtype: Dtype) -> Result<ScaleRange, InitError> {
    let Some((least, most)) = dtype.scale_range() else {
        let message = format!(
            "scales are float32, float16, bfloat16, float8_e4m3 or float8_e8m0fnu, not {dtype}"
        );
        return Err(InitError::new("kind", message));
    };
    let low = DEVIATIONS * std / largest;
    if low < least || 2.0 * low > most {
        let stds = [least, most / 2.0].map(|scale| scale * largest / DEVIATIONS);
        let message = format!(
            "with `std` {std} the scales lie from {low:e} to {:e}, but {dtype} represents {least:e} to {most:e}: choose `std` \
             from {:e} to {:e}, or give the values a global scale, `global`",
            2.0 * low,
            stds[0],
            stds[1]
        );
        return Err(InitError::new("std", message));
    }
    let low = if dtype == Dtype::Float8E8m0 { for_dtype!(dtype, rounded(low)) } else { low };
    Ok(ScaleRange { low, dtype })
}

/// Returns the mapping from numbers to scales.
fn blocks(
    values: (Dtype, &[u64]),
    (dtype, shape): (Dtype, &[u64]),
    (block, layout): (&[u64], ScaleLayout),
) -> Result<ScaleBlocks, InitError> {
    ScaleBlocks::new(values, ScaleShape { dtype, shape, block, layout })
        .map_err(|message| InitError::new("of", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InitKind, fill, unpacked};

    fn both(values: (Dtype, &[u64]), scales: (Dtype, &[u64]), std: f64) -> [TensorInit; 2] {
        let pair = |name: &str, (dtype, shape): (Dtype, &[u64]), std| {
            let (name, shape) = (name.to_owned(), shape.to_vec());
            let (block, layout) = (Vec::new(), ScaleLayout::Rows);
            let has_global = false;
            Some(Box::new(PairInit {
                name,
                dtype,
                shape,
                seed: Some(3),
                std,
                block,
                layout,
                has_global,
            }))
        };
        let of = |kind, pair| TensorInit {
            seed: Some(3),
            std: Some(std),
            pair,
            ..TensorInit::of_kind(kind)
        };
        [
            of(InitKind::Quantized, pair("s", scales, None)),
            of(InitKind::Scales, pair("q", values, Some(std))),
        ]
    }

    fn numbers((dtype, shape): (Dtype, &[u64]), init: &TensorInit, name: &str) -> Vec<f64> {
        fn of<T: Element>(bytes: &[u8]) -> Vec<f64> {
            bytes.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64()).collect()
        }
        let count = shape.iter().product::<u64>() as usize;
        let mut bytes = vec![0; count * dtype.size()];
        fill(init, (dtype, shape), name, 0, &mut bytes).unwrap();
        for_dtype!(dtype, of(&unpacked(dtype, &bytes)))
    }

    #[test]
    fn quantised_values_times_their_scales_are_the_normal_numbers_of_the_same_seed() {
        let mx: (Dtype, &[u64]) = (Dtype::Float8E8m0, &[16, 8]);
        let rows: (Dtype, &[u64]) = (Dtype::Float32, &[16]);
        let all: (Dtype, &[u64]) = (Dtype::Float32, &[1]);
        let nv: (Dtype, &[u64]) = (Dtype::Float8E4m3, &[16, 16]);
        for (dtype, shape, scales, step) in [
            (Dtype::Float4E2m1x2, [16, 128], mx, 2.0),
            (Dtype::Float4E2m1x2, [16, 128], nv, 2.0),
            (Dtype::Float8E4m3, [16, 256], rows, 32.0),
            (Dtype::Int8, [16, 256], rows, 1.0),
            (Dtype::Int4x2, [16, 128], all, 1.0),
        ] {
            let (values, std) = ((dtype, &shape[..]), 0.75);
            let [quantized, of_scales] = both(values, scales, std);
            let quantised = numbers(values, &quantized, "q");
            let scale = numbers(scales, &of_scales, "s");
            let normal = TensorInit { kind: InitKind::Randn, pair: None, ..quantized };
            let real = numbers((Dtype::Float64, &[16, 256]), &normal, "q");
            let block = real.len() / scale.len();
            let mut saturated = 0;
            for (at, (real, quantised)) in real.iter().zip(&quantised).enumerate() {
                let scale = scale[at / block];
                // Half of the largest step of the type, or beyond its largest number.
                if (quantised * scale - real).abs() > 0.51 * step * scale {
                    saturated += 1;
                    assert!(
                        real.abs() > (DEVIATIONS - 1.0) * std,
                        "{dtype} {at}: {real} {quantised}"
                    );
                }
            }
            assert!(saturated < real.len() / 50, "{dtype}: {saturated}");
            if scale.len() > 1 {
                assert!(scale.iter().any(|one| *one != scale[0]), "{dtype}: all scales are equal");
            }
        }
    }

    #[test]
    fn zero_points_are_added_and_a_global_scale_is_divided_by() {
        let std = 0.02;
        for (dtype, shape, scales, zeros, global) in [
            (Dtype::Uint4x2, [64, 64], (Dtype::Float16, [64, 4]), None, None),
            (Dtype::Uint4x2, [64, 64], (Dtype::Float16, [64, 4]), Some(Dtype::Uint4x2), None),
            (Dtype::Uint8, [64, 128], (Dtype::Float32, [64, 4]), Some(Dtype::Int32), None),
            (Dtype::Uint8, [64, 128], (Dtype::Float32, [64, 4]), Some(Dtype::Float16), None),
            (
                Dtype::Float4E2m1x2,
                [64, 64],
                (Dtype::Float8E4m3, [64, 8]),
                None,
                Some(Dtype::Float32),
            ),
            (Dtype::Int8, [64, 128], (Dtype::Float32, [64, 1]), None, Some(Dtype::Bfloat16)),
        ] {
            let values: (Dtype, &[u64]) = (dtype, &shape);
            let [mut quantized, mut of_scales] = both(values, (scales.0, &scales.1), std);
            let other = |kind, name: &str, dtype, shape: &[u64]| {
                let own = PairInit {
                    name: name.to_owned(),
                    dtype,
                    shape: shape.to_vec(),
                    ..*of_scales.pair.clone().unwrap()
                };
                let init = TensorInit { kind, ..of_scales.clone() };
                (Some(Box::new(own)), numbers((dtype, shape), &init, name))
            };
            let count = (scales.1[0] * scales.1[1]) as usize;
            let mut zero =
                vec![f64::from(dtype.zero_points().map_or(0, |(middle, _)| middle as u32)); count];
            if let Some(of) = zeros {
                let shape = [scales.1[0], scales.1[1] / of.parts()];
                (quantized.zeros_pair, zero) = other(InitKind::ZeroPoints, "z", of, &shape);
                assert!(zero.iter().any(|one| *one != zero[0]), "all zero points are equal");
            }
            let mut whole = 1.0;
            if let Some(of) = global {
                let (pair, numbers) = other(InitKind::GlobalScale, "g", of, &[1]);
                (quantized.global_pair, whole) = (pair, numbers[0]);
                of_scales.pair.as_mut().unwrap().has_global = true;
            }
            let scale = numbers((scales.0, &scales.1), &of_scales, "s");
            let got = numbers(values, &quantized, "q");
            let normal = TensorInit {
                kind: InitKind::Randn,
                pair: None,
                zeros_pair: None,
                global_pair: None,
                ..quantized
            };
            let real = numbers((Dtype::Float64, &[64, 128]), &normal, "q");
            let (block, mut beyond) = (real.len() / count, 0);
            let step = if dtype == Dtype::Float4E2m1x2 { 2.0 } else { 1.0 };
            for (at, (real, got)) in real.iter().zip(&got).enumerate() {
                let scale = scale[at / block] * whole;
                let back = (got - zero[at / block]) * scale;
                beyond += usize::from((back - real).abs() > 0.51 * step * scale);
            }
            assert!(beyond < real.len() / 30, "{dtype}: {beyond} of {} are not near", real.len());
        }
    }

    #[test]
    fn zero_points_and_global_scales_that_do_not_fit_are_named() {
        let [values, scales] = both((Dtype::Uint4x2, &[8, 8]), (Dtype::Float16, &[8, 2]), 1.0);
        let pair = |dtype, shape: &[u64]| {
            Some(Box::new(PairInit {
                dtype,
                shape: shape.to_vec(),
                ..*scales.pair.clone().unwrap()
            }))
        };
        let fails = |init: &TensorInit, dtype, shape: &[u64], field: &str, why: &str| {
            let error = ElementGenerator::new(init, dtype, shape).unwrap_err();
            assert!(error.field == field && error.message.contains(why), "{error}");
        };
        let short = TensorInit { zeros_pair: pair(Dtype::Uint4x2, &[8, 2]), ..values.clone() };
        fails(
            &short,
            Dtype::Uint4x2,
            &[8, 8],
            "zeros",
            "[8, 4] (in numbers) do not fit scales of shape [8, 2]",
        );
        let signed = TensorInit { zeros: Some("z".to_owned()), ..values };
        fails(&signed, Dtype::Int4x2, &[8, 8], "zeros", "uint4x2 and uint8");
        let zeros = TensorInit {
            kind: InitKind::ZeroPoints,
            pair: pair(Dtype::Int4x2, &[8, 8]),
            ..scales.clone()
        };
        fails(&zeros, Dtype::Uint8, &[8, 2], "of", "not int4x2");
        let zeros = TensorInit { pair: pair(Dtype::Uint8, &[8, 16]), ..zeros };
        fails(&zeros, Dtype::Uint4x2, &[8, 1], "kind", "from 112 to 143");
        let global = TensorInit { kind: InitKind::GlobalScale, ..scales };
        fails(&global, Dtype::Float32, &[2], "kind", "`shape: [1]`");
    }

    #[test]
    fn pairs_that_do_not_fit_are_named() {
        let float4: (Dtype, &[u64]) = (Dtype::Float4E2m1x2, &[4, 24]);
        let check = |values: (Dtype, &[u64]), scales: (Dtype, &[u64]), std, fields: [&str; 2]| {
            let inits = both(values, scales, std);
            for ((init, (dtype, shape)), field) in inits.iter().zip([values, scales]).zip(fields) {
                let error = ElementGenerator::new(init, dtype, shape).unwrap_err();
                assert_eq!(error.field, field, "{error}");
            }
        };
        // Blocks of 32 numbers in rows of 48.
        check(float4, (Dtype::Float8E8m0, &[3, 2]), 1.0, ["of", "of"]);
        check((Dtype::Uint16, &[4, 32]), (Dtype::Float32, &[4]), 1.0, ["kind", "of"]);
        check(float4, (Dtype::Int32, &[4]), 1.0, ["kind", "kind"]);
        check(float4, (Dtype::Float8E4m3, &[4]), 1e-3, ["std", "std"]);
        check(float4, (Dtype::Float32, &[4]), 0.0, ["std", "std"]);
        let alone = TensorInit::of_kind(InitKind::Quantized);
        let error = ElementGenerator::new(&alone, Dtype::Int8, &[4]).unwrap_err();
        assert_eq!(error.field, "of");
    }
}
