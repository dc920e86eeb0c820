//! The drawings in reports. The style sheet determines colours and fonts; a drawing contains only
//! classes.

mod blocks;
mod heat;
mod histogram;
mod map;
mod series;
mod trend;

pub(crate) use blocks::ratios;
pub(crate) use heat::{HeatCell, heat};
pub(crate) use histogram::histogram;
pub(crate) use map::{density, first_places};
pub(crate) use series::{SampleSeries, series};
pub(crate) use trend::trend;

use warpgauge_svg::Plot;

/// The width of a drawing, in pixels. The page scales it.
const WIDTH: f64 = 640.0;

/// Returns the area for values in a drawing of this height.
fn plot(height: f64) -> Plot {
    Plot { left: 72.0, top: 16.0, right: WIDTH - 36.0, bottom: height - 28.0 }
}
