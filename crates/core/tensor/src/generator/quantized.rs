//! Quantised values and their scales: two tensors whose elements are computed without each other's content.
//!
//! A scale is drawn from a range that follows from the standard deviation of the values and the largest number
//! of their type, and not from the values of its block. So each value needs its own random word and that of
//! its scale, and no others. The main types are [`QuantizedValues`] and [`ScaleRange`].

use super::InitError;
use crate::element::{Element, for_dtype};
use crate::ordered::node_word;
use crate::{
    Dtype, ElementGenerator, PairInit, Philox, ScaleBlocks, ScaleLayout, ScaleShape, TensorInit,
};

/// Standard deviations that the largest quantised number stands for, at the lower end of the range of scales.
/// Normal numbers are beyond it once in 370 times, and saturate.
const DEVIATIONS: f64 = 3.0;

/// Range of scales: [`low`, 2 · `low`), rounded to their element type. For powers of two `low` is one: a range between
/// two points midway would hold one scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleRange {
    pub low: f64,
    /// Element type of the scales.
    pub dtype: Dtype,
}

/// Normal numbers, each divided by the scale of its block.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedValues {
    pub mean: f64,
    /// Standard deviation of the numbers before they are divided.
    pub std: f64,
    /// Which scale each number has.
    pub blocks: ScaleBlocks,
    pub scales: ScaleRange,
    /// Both halves of the key of the scales' stream.
    pub key: [u64; 2],
    /// Whether quotients are rounded to whole numbers, ties to even. Floats round by their type.
    pub whole: bool,
}

impl ScaleRange {
    /// Returns a scale as a number: that with this index, of the stream with this key.
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
    /// Returns the quotient of a normal number and the scale of its block.
    pub fn at(&self, index: u64, normal: f64) -> f64 {
        let scaled = self.std * normal;
        let quotient = (self.mean + scaled) / self.scales.at(self.key, self.blocks.scale_of(index));
        if self.whole { quotient.round_ties_even() } else { quotient }
    }
}

/// Returns the formula of quantised values.
pub(super) fn values(
    init: &TensorInit,
    dtype: Dtype,
    shape: &[u64],
) -> Result<ElementGenerator, InitError> {
    let pair = pair(init, "scales")?;
    let largest = largest(dtype, "kind")?;
    let std = deviation(init.std)?;
    Ok(ElementGenerator::Quantized(QuantizedValues {
        mean: init.mean.unwrap_or(0.0),
        std,
        blocks: blocks((dtype, shape), (pair.dtype, &pair.shape), (&pair.block, pair.layout))?,
        scales: range(std, largest, pair.dtype)?,
        key: Philox::for_argument(pair.seed.unwrap_or(0), &pair.name).key(),
        whole: !dtype.is_float(),
    }))
}

/// Returns the formula of scales.
pub(super) fn scales(
    init: &TensorInit,
    dtype: Dtype,
    shape: &[u64],
) -> Result<ElementGenerator, InitError> {
    let pair = pair(init, "quantized")?;
    blocks((pair.dtype, &pair.shape), (dtype, shape), (&init.block, init.layout))?;
    let range = range(deviation(pair.std)?, largest(pair.dtype, "of")?, dtype)?;
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

/// Returns the largest number of a type that values are quantised to.
fn largest(dtype: Dtype, field: &'static str) -> Result<f64, InitError> {
    dtype.largest_quantized().ok_or_else(|| {
        let message = format!(
            "values are quantised to float8_e4m3, float8_e5m2, float4_e2m1fn_x2, int8 or int4x2, not {dtype}"
        );
        InitError::new(field, message)
    })
}

/// Returns the range of scales, if their type holds it with all its digits.
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
            "with `std` {std} the scales lie from {low:e} to {:e}, and {dtype} holds {least:e} to {most:e}: choose `std` \
             from {:e} to {:e}, where a scale of the whole tensor, if there is one, makes up for it",
            2.0 * low,
            stds[0],
            stds[1]
        );
        return Err(InitError::new("std", message));
    }
    let low = if dtype == Dtype::Float8E8m0 { for_dtype!(dtype, rounded(low)) } else { low };
    Ok(ScaleRange { low, dtype })
}

/// Returns which scale each number has.
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
            Some(Box::new(PairInit { name, dtype, shape, seed: Some(3), std, block, layout }))
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
        check((Dtype::Uint8, &[4, 32]), (Dtype::Float32, &[4]), 1.0, ["kind", "of"]);
        check(float4, (Dtype::Int32, &[4]), 1.0, ["kind", "kind"]);
        check(float4, (Dtype::Float8E4m3, &[4]), 1e-3, ["std", "std"]);
        check(float4, (Dtype::Float32, &[4]), 0.0, ["std", "std"]);
        let alone = TensorInit::of_kind(InitKind::Quantized);
        let error = ElementGenerator::new(&alone, Dtype::Int8, &[4]).unwrap_err();
        assert_eq!(error.field, "of");
    }
}
