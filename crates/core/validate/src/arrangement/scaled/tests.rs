use super::*;
use crate::{Arrangement, Rearranged};
use warpgauge_tensor::{ScaleLayout, ScaleShape};

/// Returns values and scales of a launch after those that are right have been replaced. `scales` of each block of four.
fn compared(
    (dtype, of): (Dtype, Dtype),
    own: (&[u8], &[f64]),
    expected: (&[u8], &[f64]),
    within: Option<(f64, f64)>,
) -> (Vec<u8>, Vec<u8>) {
    let bytes = |scales: &[f64]| -> Vec<u8> {
        fn write<T: Element>(scales: &[f64]) -> Vec<u8> {
            let mut bytes = vec![0; scales.len() * T::SIZE];
            for (slot, &scale) in bytes.chunks_exact_mut(T::SIZE).zip(scales) {
                T::from_f64(scale).write(slot);
            }
            bytes
        }
        for_dtype!(of, write(scales))
    };
    let (shape, blocks) = ([own.0.len() as u64], [own.1.len() as u64]);
    let scales = ScaleShape { dtype: of, shape: &blocks, block: &[4], layout: ScaleLayout::Rows };
    let scaled =
        Scaled { scales: 1, blocks: ScaleBlocks::new((dtype, &shape), scales).unwrap(), within };
    let arrangement = Arrangement { along: vec![1], scaled: Some(scaled), ..Arrangement::NONE };
    let (mut values, mut scales) = (own.0.to_vec(), bytes(own.1));
    let wanted = bytes(expected.1);
    let mut group = [
        Rearranged { dtype, shape: &shape, bytes: &mut values },
        Rearranged { dtype: of, shape: &blocks, bytes: &mut scales },
    ];
    let contents =
        |buffer| (buffer == 1).then_some(Content { dtype: of, shape: &blocks, bytes: &wanted });
    arrangement.arrange(&contents, &mut group, &[expected.0, &wanted]);
    let scales_right = scales == wanted;
    (values, vec![u8::from(scales_right)])
}

fn bytes(numbers: &[i8]) -> Vec<u8> {
    numbers.iter().map(|&number| number as u8).collect()
}

const INT8: (Dtype, Dtype) = (Dtype::Int8, Dtype::Float32);

#[test]
fn a_number_next_to_a_rounding_tie_is_right_and_one_that_is_two_off_is_not() {
    let wanted = bytes(&[127, -5, 3, 0, 10, 20, 30, 40]);
    let scales = [0.5, 0.25];
    let near = bytes(&[127, -4, 3, 0, 10, 20, 30, 40]);
    let nearly = [0.5 * (1.0 + 1e-6), 0.25];
    assert_eq!(
        compared(INT8, (&near, &nearly), (&wanted, &scales), None),
        (wanted.clone(), vec![1])
    );
    let off = bytes(&[127, -3, 3, 0, 10, 20, 30, 40]);
    let (values, right) = compared(INT8, (&off, &nearly), (&wanted, &scales), None);
    assert_eq!((values, right), (off, vec![0]));
}

#[test]
fn numbers_that_are_truncated_are_wrong() {
    let wanted: Vec<u8> = (0..64).collect();
    let truncated: Vec<u8> = (0..64).map(|k| k - u8::from(k % 2 == 1)).collect();
    let scales = [1.0; 16];
    let (values, _) = compared(INT8, (&truncated, &scales), (&wanted, &scales), None);
    assert_eq!(values, truncated);
    // A fifth of them may be.
    let noisy: Vec<u8> = (0..64).map(|k| k - u8::from(k % 5 == 1)).collect();
    assert_eq!(compared(INT8, (&noisy, &scales), (&wanted, &scales), None).0, wanted);
}

#[test]
fn equal_codes_with_another_scale_are_wrong_in_the_scale() {
    let wanted = bytes(&[100; 8]);
    let own = compared(INT8, (&wanted, &[0.5, 0.25]), (&wanted, &[0.5, 0.3]), None);
    assert_eq!(own, (wanted.clone(), vec![0]));
    // Numbers that a scale ten times as large makes coarse are no excuse for it.
    let coarse = bytes(&[10; 8]);
    let own = compared(INT8, (&coarse, &[5.04, 5.1]), (&wanted, &[0.5, 0.5]), None);
    assert_eq!(own, (coarse, vec![0]));
    // Zeros do not depend on it.
    let zeros = bytes(&[0; 8]);
    let own = compared(INT8, (&zeros, &[1.0, 0.0]), (&zeros, &[0.0, 7.0]), None);
    assert_eq!(own, (zeros, vec![1]));
}

#[test]
fn the_next_scale_of_mx_is_right_with_numbers_that_fit_it() {
    let types = (Dtype::Float4E2m1x2, Dtype::Float8E8m0);
    // 1, 2, 3, 4 with scale 1 are 0.5, 1, 1.5, 2 with scale 2.
    let (wanted, own) = ([0x42, 0x65], [0x21, 0x43]);
    let right = compared(types, (&own, &[2.0]), (&wanted, &[1.0]), None);
    assert_eq!(right, (wanted.to_vec(), vec![1]));
    // 6 with scale 1 is 3 with scale 2, or 2 next to a tie of both, and not 1.5.
    let (wanted, own) = ([0x47, 0x65], [0x23, 0x43]);
    let (values, right) = compared(types, (&own, &[2.0]), (&wanted, &[1.0]), None);
    assert_eq!((values, right), (vec![0x43, 0x65], vec![0]));
}

#[test]
fn a_tolerance_is_for_numbers_times_scales() {
    let (wanted, own) = (bytes(&[100, 100, 100, 100]), bytes(&[98, 102, 100, 90]));
    let scales = [0.5];
    let (values, right) = compared(INT8, (&own, &scales), (&wanted, &scales), Some((1.0, 0.0)));
    assert_eq!((values, right), (bytes(&[100, 100, 100, 90]), vec![1]));
    let (_, right) = compared(INT8, (&own, &[0.51]), (&wanted, &scales), Some((1.0, 0.0)));
    assert_eq!(right, vec![0]);
}
