//! Drawings as SVG, and text for XML and HTML.
//!
//! A [`Drawing`] is a self-contained document without scripts or external resources. Equal calls
//! produce equal bytes. Its texts come from kernels and their users. Therefore [`SvgElement`]s
//! escape every text, limit its length, and replace characters that could make it look like another
//! text.

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
