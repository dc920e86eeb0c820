//! Perturbation of elements by units in the last place, which shows how sensitive a result is to
//! rounding. The main function is [`nudge`].

use crate::Dtype;

/// Returns whether [`nudge`] moves elements of this type: floating-point types of 16 bits and more, and the
/// parts of complex ones.
pub fn can_nudge(dtype: Dtype) -> bool {
    matches!(dtype.part(), Dtype::Float64 | Dtype::Float32 | Dtype::Float16 | Dtype::Bfloat16)
}

/// Moves each element by `steps` units in the last place. `seed` and the element's index determine
/// whether it moves towards zero or away from it. Zeros, infinities and NaN stay unchanged, and no
/// element changes its sign or becomes infinite. Elements of types for which [`can_nudge`] returns
/// false stay unchanged. `wg_nudge` in support.cu does the same on a device.
pub fn nudge(dtype: Dtype, bytes: &mut [u8], steps: u32, seed: u64) {
    let dtype = dtype.part();
    let infinity = match dtype {
        Dtype::Float64 => 0x7FF0_0000_0000_0000,
        Dtype::Float32 => 0x7F80_0000,
        Dtype::Float16 => 0x7C00,
        Dtype::Bfloat16 => 0x7F80,
        _ => return,
    };
    let size = dtype.size();
    for (index, element) in bytes.chunks_exact_mut(size).enumerate() {
        let mut word = [0; 8];
        word[..size].copy_from_slice(element);
        let bits = u64::from_le_bytes(word);
        let sign = bits & 1 << (8 * size - 1);
        let moved = sign | moved(bits ^ sign, infinity, u64::from(steps), seed, index as u64);
        element.copy_from_slice(&moved.to_le_bytes()[..size]);
    }
}

/// Moves the bits of a magnitude up or down by `steps` units of its power of two. Above the next
/// power of two, units are twice as large, so half as many are counted. Otherwise the sum of many
/// moved numbers would be biased upwards.
fn moved(magnitude: u64, infinity: u64, steps: u64, seed: u64, index: u64) -> u64 {
    if magnitude == 0 || magnitude >= infinity {
        return magnitude;
    }
    // Distance between the bits of neighbouring powers of two.
    let binade = infinity & infinity.wrapping_neg();
    let first = magnitude & !(binade - 1);
    let up = mixed(seed ^ index) & 1 == 0;
    if (up || magnitude <= steps) && magnitude + steps < infinity {
        let (above, next) = (magnitude + steps, first + binade);
        if above > next && first > 0 { next + (above - next) / 2 } else { above }
    } else {
        let below = magnitude - first;
        let down = if below < steps && first > binade { 2 * steps - below } else { steps };
        magnitude.saturating_sub(down).max(1)
    }
}

/// Finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// 2014).
fn mixed(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Element, for_dtype};

    #[test]
    fn elements_move_by_as_many_steps_both_ways() {
        let values: Vec<f32> = (1..1000).map(|n| (n as f32 - 500.5) * 0.37).collect();
        let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        nudge(Dtype::Float32, &mut bytes, 4, 7);
        let mut up = 0;
        for (value, moved) in values.iter().zip(bytes.chunks_exact(4)) {
            let moved = f32::read(moved);
            assert_eq!(value.signum(), moved.signum());
            let unit = f32::from_bits(value.abs().to_bits() + 1) - value.abs();
            assert!((3.0..=4.0).contains(&((moved - value).abs() / unit)), "{value} {moved}");
            up += u32::from(moved.abs() > value.abs());
        }
        assert!((400..600).contains(&up), "{up}");
    }

    #[test]
    fn large_steps_move_no_sum() {
        let values: Vec<f32> = (0..300_000).map(|n| (n as f32 + 0.5) / 300_000.0).collect();
        let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        nudge(Dtype::Float32, &mut bytes, 1 << 18, 3);
        let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
        let moved: f64 = bytes.chunks_exact(4).map(|bytes| f64::from(f32::read(bytes))).sum();
        // Each number moves by at most about 3 %, up or down at random, so that the changes nearly
        // cancel.
        assert!((moved - sum).abs() < 20.0, "{sum} {moved}");
    }

    #[test]
    fn what_is_no_finite_number_but_zero_stays() {
        fn moved<T: Element>(value: f64, dtype: Dtype) -> (f64, f64) {
            let mut bytes = [0; 8];
            T::from_f64(value).write(&mut bytes);
            let before = T::read(&bytes).to_f64();
            nudge(dtype, &mut bytes[..T::SIZE], 4, 1);
            (before, T::read(&bytes).to_f64())
        }
        for dtype in Dtype::ALL.into_iter().filter(|dtype| can_nudge(*dtype)) {
            for value in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY] {
                let (before, after) = for_dtype!(dtype, moved(value, dtype));
                assert_eq!(before.to_bits(), after.to_bits(), "{dtype} {value}");
            }
            assert!(for_dtype!(dtype, moved(f64::NAN, dtype)).1.is_nan());
            for value in [1.0, -3.5, 65504.0, 1e-7] {
                let (before, after) = for_dtype!(dtype, moved(value, dtype));
                assert!(after.is_finite() && before != after, "{dtype} {value} {after}");
            }
        }
        let mut integers = [1, 2, 3, 4];
        nudge(Dtype::Int32, &mut integers, 1, 1);
        assert_eq!(integers, [1, 2, 3, 4]);
    }
}
