//! How a case fared over time, and where that changed.
//!
//! A [`HistoryPoint`] is what one evaluation or one run of the gate showed of a case. Points of one
//! case, device, driver and method make a [`Series`]: what was measured under other conditions is
//! another series, and counts of the emulated device never stand beside times of a GPU. Series inform;
//! no verdict rests on them ([`crate`] runs the baseline's code again instead).
//!
//! Everything here is pure; points are kept by the store.

mod change_points;
mod points;
mod series;
mod svg;

pub use change_points::{MIN_SEGMENT, PERMUTATIONS, SIGNIFICANCE, SeriesSplit, WINDOW, splits};
pub use points::{HistoryPoint, PointSource, case_of, of_evaluation, of_gate};
pub use series::{ChangePoint, HistoryAnswer, Series, SeriesKey, TrendPoint, group};
pub use svg::svg;
