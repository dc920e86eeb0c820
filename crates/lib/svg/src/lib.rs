//! Drawings as SVG, and text in XML and HTML.
//!
//! A [`Drawing`] is a self-contained document without scripts and external resources. Equal calls
//! give equal bytes. Its texts come from kernels and their users. Therefore [`SvgElement`]s escape
//! every text, bound its length, and replace characters that would make it look like another text.

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
