//! Axes, drawn as ticks with lines and labels around a plot. The main type is [`Axis`].

use crate::drawing::Drawing;
use crate::element::{Anchor, SvgElement};

/// The distances from the plot to the labels on its left, above and below it, in pixels. The last
/// two extend to the baseline of the text.
const BESIDE: f64 = 8.0;
const ABOVE: f64 = 8.0;
const BELOW: f64 = 16.0;
/// The distance from the middle of a line of text down to its baseline.
const HALF_LETTER: f64 = 4.0;

/// The part of a drawing that shows values, described by its edges in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plot {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Plot {
    /// Returns the outline of the plot.
    pub fn frame(&self, class: &str) -> SvgElement {
        let size = [self.right - self.left, self.bottom - self.top];
        SvgElement::rectangle(class, [self.left, self.top], size)
    }

    /// Returns a vertical line across the plot at `x`.
    pub fn vertical(&self, class: &str, x: f64) -> SvgElement {
        SvgElement::line(class, [x, self.top], [x, self.bottom])
    }

    /// Returns a horizontal line across the plot at `y`.
    pub fn horizontal(&self, class: &str, y: f64) -> SvgElement {
        SvgElement::line(class, [self.left, y], [self.right, y])
    }
}

/// The side of the plot on which the labels of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left of the plot, for positions along the vertical axis.
    Left,
    /// Above the plot, for positions along the horizontal axis.
    Top,
    /// Below the plot, for positions along the horizontal axis.
    Bottom,
}

/// A labelled value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick<'a> {
    /// The position along the axis, in pixels of the drawing.
    pub at: f64,
    /// The text of the value's label.
    pub label: String,
    /// The class of the line through the plot, if there is one.
    pub line: Option<&'a str>,
}

/// An axis of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis<'a> {
    pub side: Side,
    /// The CSS class of the labels.
    pub label: &'a str,
}

impl Axis<'_> {
    /// Draws the label of each tick, and its line if it has one.
    pub fn draw<'t>(
        &self,
        drawing: &mut Drawing,
        plot: &Plot,
        ticks: impl IntoIterator<Item = Tick<'t>>,
    ) {
        for tick in ticks {
            let at = tick.at;
            let (place, anchor) = match self.side {
                Side::Left => ([plot.left - BESIDE, at + HALF_LETTER], Anchor::End),
                Side::Top => ([at, plot.top - ABOVE], Anchor::Middle),
                Side::Bottom => ([at, plot.bottom + BELOW], Anchor::Middle),
            };
            if let Some(class) = tick.line {
                drawing.add(match self.side {
                    Side::Left => plot.horizontal(class, at),
                    Side::Top | Side::Bottom => plot.vertical(class, at),
                });
            }
            drawing.add(SvgElement::text(self.label, place, &tick.label).anchored(anchor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Plot = Plot { left: 50.0, top: 20.0, right: 150.0, bottom: 120.0 };

    fn drawn(side: Side, line: Option<&str>) -> String {
        let mut drawing = Drawing::new([200.0, 200.0], "");
        let tick = Tick { at: 70.0, label: "7".to_owned(), line };
        Axis { side, label: "l" }.draw(&mut drawing, &PLOT, [tick]);
        drawing.finish()
    }

    #[test]
    fn lines_cross_the_plot_and_labels_stand_outside() {
        let left = drawn(Side::Left, Some("g"));
        assert!(
            left.contains("<line class=\"g\" x1=\"50.0\" y1=\"70.0\" x2=\"150.0\" y2=\"70.0\"/>")
        );
        assert!(left.contains("x=\"42.0\" y=\"74.0\" text-anchor=\"end\">7<"), "{left}");
        for (side, y) in [(Side::Top, "12.0"), (Side::Bottom, "136.0")] {
            let text = drawn(side, Some("g"));
            assert!(text.contains("x1=\"70.0\" y1=\"20.0\" x2=\"70.0\" y2=\"120.0\""), "{text}");
            let label = format!("x=\"70.0\" y=\"{y}\" text-anchor=\"middle\">7<");
            assert!(text.contains(&label), "{text}");
        }
        assert!(!drawn(Side::Left, None).contains("<line"));
    }
}
