//! History of a case: its results over time, and changes of their level.
//!
//! A [`HistoryPoint`] is the result of one evaluation or one run of the gate for a case. Points of
//! one case, device, driver and method form a [`Series`]. Points under different conditions belong
//! to different series, so counts of the emulated device never share a series with times of a GPU.
//! Series are only for information. No verdict uses them ([`crate`] runs the baseline's code again
//! instead).
//!
//! The module does no I/O; the store keeps the points.

mod change_points;
mod dates;
mod points;
mod series;
mod svg;

pub use change_points::{MIN_SEGMENT, PERMUTATIONS, SIGNIFICANCE, SeriesSplit, WINDOW, splits};
pub use dates::{date_and_time, short_commit};
pub use points::{HistoryPoint, PointSource, case_of, of_evaluation, of_gate};
pub use series::{ChangePoint, HistoryAnswer, Series, SeriesKey, TrendPoint, group};
pub use svg::svg;
