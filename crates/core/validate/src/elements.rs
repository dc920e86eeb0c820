//! Numbers of the elements of an output: their changes from run to run, their magnitudes, and quantiles of these.

use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::{Element, for_dtype};

/// The largest change of each element in any run.
pub(super) fn changes(dtype: Dtype, base: &[u8], runs: &[&[u8]]) -> Vec<f64> {
    for_dtype!(dtype, changes_as(base, runs))
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

/// Magnitudes of the elements; 0 for those that are not finite.
pub(super) fn magnitudes(dtype: Dtype, base: &[u8]) -> Vec<f64> {
    fn of<T: Element>(base: &[u8]) -> Vec<f64> {
        let values = base.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64().abs());
        values.map(|value| if value.is_finite() { value } else { 0.0 }).collect()
    }
    for_dtype!(dtype, of(base))
}

/// The value that `part` of the values do not exceed; 0 where there are none.
pub(super) fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let rank = (part * values.len() as f64).ceil() as usize;
    let (_, quantile, _) = values.select_nth_unstable_by(rank.max(1) - 1, f64::total_cmp);
    *quantile
}

/// Of the finite elements.
pub(super) fn root_mean_square(dtype: Dtype, elements: &[u8]) -> f64 {
    fn of<T: Element>(elements: &[u8]) -> f64 {
        let values = elements.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64());
        let finite = || values.clone().filter(|value| value.is_finite());
        // Values whose squares binary64 does not hold are scaled first.
        let largest = finite().fold(0.0f64, |largest, value| largest.max(value.abs()));
        if largest == 0.0 {
            return 0.0;
        }
        let (count, sum) = finite()
            .fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + (value / largest).powi(2)));
        largest * f64::sqrt(sum / count)
    }
    for_dtype!(dtype, of(elements))
}
