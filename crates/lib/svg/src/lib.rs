//! Drawings as SVG, and text in XML and HTML.
//!
//! A [`Drawing`] is one self-contained document: no script, nothing fetched, the same bytes for the
//! same calls. What it shows comes from kernels and their users, so [`SvgElement`]s escape every text,
//! bound its length, and replace the characters that make it read as something else.

#![forbid(unsafe_code)]

mod axis;
mod drawing;
mod element;
mod number;
mod scale;
pub mod xml;

pub use axis::{Axis, Plot, Side, Tick};
pub use drawing::Drawing;
pub use element::{Anchor, Point, SvgElement, shortened};
pub use number::{power_of_ten, rounded, si};
pub use scale::{Linear, Logarithmic};
