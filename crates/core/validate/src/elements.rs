//! Statistics of an output's elements: changes between runs, magnitudes, and quantiles.

use warpgauge_tensor::element::{Element, for_dtype};
use warpgauge_tensor::{Dtype, unpacked};

/// Returns the largest change of each element in any run.
pub(super) fn changes(dtype: Dtype, base: &[u8], runs: &[&[u8]]) -> Vec<f64> {
    let numbers: Vec<_> = runs.iter().map(|run| unpacked(dtype, run)).collect();
    let runs: Vec<&[u8]> = numbers.iter().map(|run| &**run).collect();
    for_dtype!(dtype, changes_as(&unpacked(dtype, base), &runs))
}

fn changes_as<T: Element>(base: &[u8], runs: &[&[u8]]) -> Vec<f64> {
    let change = |(index, base): (usize, &[u8])| {
        let base = T::read(base).to_f64();
        let at = index * T::SIZE..(index + 1) * T::SIZE;
        let others = runs.iter().filter_map(|run| run.get(at.clone()));
        let changes = others.map(|other| (T::read(other).to_f64() - base).abs());
        changes.filter(|change| change.is_finite()).fold(0.0, f64::max)
    };
    base.chunks_exact(T::SIZE).enumerate().map(change).collect()
}

/// Returns the mean square of the changes of all elements in all runs.
pub(super) fn mean_squared_change(dtype: Dtype, base: &[u8], runs: &[&[u8]]) -> f64 {
    let squares = runs.iter().flat_map(|run| changes(dtype, base, &[run]));
    let count = runs.len() * (base.len() / dtype.size()) * dtype.parts() as usize;
    squares.map(|change| change * change).sum::<f64>() / count.max(1) as f64
}

/// Returns the magnitudes of the elements, with 0 for those that are not finite.
pub(super) fn magnitudes(dtype: Dtype, base: &[u8]) -> Vec<f64> {
    fn of<T: Element>(base: &[u8]) -> Vec<f64> {
        let values = base.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64().abs());
        values.map(|value| if value.is_finite() { value } else { 0.0 }).collect()
    }
    for_dtype!(dtype, of(&unpacked(dtype, base)))
}

/// Returns the smallest value that is at least as large as the share `part` of the values; 0 if there are no values.
pub(super) fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let rank = (part * values.len() as f64).ceil() as usize;
    let (_, quantile, _) = values.select_nth_unstable_by(rank.max(1) - 1, f64::total_cmp);
    *quantile
}

/// Returns the root mean square of the finite elements.
pub(super) fn root_mean_square(dtype: Dtype, elements: &[u8]) -> f64 {
    fn of<T: Element>(elements: &[u8]) -> f64 {
        let values = elements.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64());
        let finite = || values.clone().filter(|value| value.is_finite());
        // Values are scaled first, because their squares may exceed the range of binary64.
        let largest = finite().fold(0.0f64, |largest, value| largest.max(value.abs()));
        if largest == 0.0 {
            return 0.0;
        }
        let (count, sum) = finite()
            .fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + (value / largest).powi(2)));
        largest * f64::sqrt(sum / count)
    }
    for_dtype!(dtype, of(&unpacked(dtype, elements)))
}

/// Largest error of a buffer, as a share of its expected change. Both are Euclidean norms.
const PART_OF_CHANGE: f64 = 0.1;

/// Returns whether `actual` shows the change from `before` to `wanted`, with a small error. All have the same type
/// and number of elements. Values that are not finite are ignored.
pub fn makes_change(dtype: Dtype, before: &[u8], wanted: &[u8], actual: &[u8]) -> bool {
    fn norms<T: Element>(before: &[u8], wanted: &[u8], actual: &[u8]) -> (f64, f64) {
        let values = |bytes: &'_ [u8]| {
            let values = bytes.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64());
            values.collect::<Vec<f64>>()
        };
        let (before, actual) = (values(before), values(actual));
        let all = values(wanted).into_iter().zip(before).zip(actual);
        let differences = all.map(|((wanted, before), actual)| (wanted - before, actual - wanted));
        let finite = differences.filter(|(change, off)| change.is_finite() && off.is_finite());
        finite.fold((0.0, 0.0), |(change, off), (a, b)| (change + a * a, off + b * b))
    }
    let [before, wanted, actual] = [before, wanted, actual].map(|bytes| unpacked(dtype, bytes));
    let (change, off): (f64, f64) = for_dtype!(dtype, norms(&before, &wanted, &actual));
    actual.len() == wanted.len() && off.sqrt() <= PART_OF_CHANGE * change.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_left_out_or_made_twice_is_none() {
        let bytes =
            |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let made = |actual: &[f32]| {
            let (before, wanted) = (bytes(&[1.0, 2.0, 0.0]), bytes(&[1.5, 2.5, f32::NAN]));
            makes_change(Dtype::Float32, &before, &wanted, &bytes(actual))
        };
        assert!(made(&[1.5, 2.5, f32::NAN]) && made(&[1.501, 2.499, 7.0]));
        assert!(!made(&[1.0, 2.0, f32::NAN]) && !made(&[2.0, 3.0, f32::NAN]) && !made(&[1.5, 2.5]));
        let count = |n: i64| n.to_le_bytes();
        assert!(makes_change(Dtype::Int64, &count(0), &count(1), &count(1)));
        assert!(!makes_change(Dtype::Int64, &count(0), &count(1), &count(0)));
    }
}
