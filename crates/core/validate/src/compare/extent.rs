//! Positions of mismatches, and their description.

use warpgauge_tensor::shape::unravel;

/// Maximum number of dimensions of a tensor for which boxes of mismatches are described.
const MAX_DIMENSIONS: usize = 4;

/// Summary of the positions of all mismatches of a tensor. Its size does not depend on their number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MismatchExtent {
    count: u64,
    first: u64,
    last: u64,
    /// Greatest common divisor of the distances from `first`; 0 if there is one mismatch.
    step: u64,
    /// Smallest and largest index in each dimension; empty if the shape has one dimension or is unknown.
    bounds: Vec<(u64, u64)>,
    /// Offset of the first element after the row of the latest mismatch.
    row_end: u64,
}

impl MismatchExtent {
    /// Adds an element. Elements must be added in ascending order.
    pub(crate) fn add(&mut self, offset: u64, shape: &[u64]) {
        if self.count == 0 {
            self.first = offset;
        }
        self.count += 1;
        self.last = offset;
        self.step = common_divisor(offset - self.first, self.step);
        if !(2..=MAX_DIMENSIONS).contains(&shape.len()) || shape.contains(&0) {
            return;
        }
        let width = shape[shape.len() - 1];
        if !self.bounds.is_empty() && offset < self.row_end {
            let column = width - (self.row_end - offset);
            widen(self.bounds.last_mut(), column);
            return;
        }
        self.row_end = offset - offset % width + width;
        let index = unravel(offset, shape);
        if self.bounds.is_empty() {
            self.bounds = index.iter().map(|at| (*at, *at)).collect();
        }
        for (bounds, at) in self.bounds.iter_mut().zip(index) {
            widen(Some(bounds), at);
        }
    }

    /// Adds the mismatches of a part that begins `offset` elements after the beginning of this one.
    pub(crate) fn join(&mut self, part: &MismatchExtent, offset: u64) {
        if part.count == 0 {
            return;
        }
        let (first, last) = (part.first + offset, part.last + offset);
        if self.count == 0 {
            *self = MismatchExtent { first, last, ..part.clone() };
            return;
        }
        self.count += part.count;
        self.step = [self.first.abs_diff(first), part.step]
            .into_iter()
            .fold(self.step, |step, more| common_divisor(more, step));
        (self.first, self.last) = (self.first.min(first), self.last.max(last));
        if self.bounds.len() != part.bounds.len() {
            self.bounds.clear();
        }
        for (own, theirs) in self.bounds.iter_mut().zip(&part.bounds) {
            *own = (own.0.min(theirs.0), own.1.max(theirs.1));
        }
    }

    /// Removes the indices by dimension, because those of a part are not those of the whole tensor.
    pub(crate) fn flat(self) -> Self {
        Self { bounds: Vec::new(), ..self }
    }

    /// Describes the mismatches of a tensor of this shape, such as `rows 32 to 63`. Returns `None` for all elements,
    /// one element, or elements without a pattern.
    pub(crate) fn pattern(&self, shape: &[u64], elements: u64) -> Option<String> {
        if self.count < 2 || self.count == elements {
            return None;
        }
        let is_box = |bounds: &[(u64, u64)]| {
            let mut sides = bounds.iter().map(|(low, high)| (high + 1).checked_sub(*low));
            sides.try_fold(1u64, |volume, side| volume.checked_mul(side?)) == Some(self.count)
        };
        if !self.bounds.is_empty() && is_box(&self.bounds) {
            return Some(named(&self.bounds, shape));
        }
        if self.last - self.first + 1 == self.count {
            let ends = unravel(self.first, shape).into_iter().zip(unravel(self.last, shape));
            let bounds = ends.collect::<Vec<_>>();
            return Some(match is_box(&bounds) {
                true => named(&bounds, shape),
                false => format!("elements {} to {}, counted row by row", self.first, self.last),
            });
        }
        let regular = (self.last - self.first).checked_div(self.step).map(|gaps| gaps + 1);
        (self.step > 1 && regular == Some(self.count)).then(|| {
            let (first, last) = (self.first, self.last);
            format!("every {} element from {first} to {last}", ordinal(self.step))
        })
    }
}

fn widen(bounds: Option<&mut (u64, u64)>, at: u64) {
    if let Some(bounds) = bounds {
        *bounds = (bounds.0.min(at), bounds.1.max(at));
    }
}

/// Returns the greatest common divisor; that of a number and 0 is the number.
fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Describes a box of elements.
fn named(bounds: &[(u64, u64)], shape: &[u64]) -> String {
    let span = |one: &str, several: &str, (low, high): (u64, u64)| match low == high {
        true => format!("{one} {low}"),
        false => format!("{several} {low} to {high}"),
    };
    let is_whole = |at: usize| bounds[at] == (0, shape[at] - 1);
    match bounds {
        [all] => span("element", "elements", *all),
        [rows, columns] => {
            let (rows, columns) = (span("row", "rows", *rows), span("column", "columns", *columns));
            match (is_whole(0), is_whole(1)) {
                (_, true) => rows,
                (true, false) => columns,
                (false, false) => format!("{rows}, {columns}"),
            }
        }
        _ => {
            let parts = (0..bounds.len()).map(|at| match bounds[at] {
                _ if is_whole(at) => "all".to_owned(),
                (low, high) if low == high => low.to_string(),
                (low, high) => format!("{low} to {high}"),
            });
            format!("the elements [{}]", parts.collect::<Vec<_>>().join(", "))
        }
    }
}

fn ordinal(n: u64) -> String {
    let ending = match (n % 10, n % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    match n {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}{ending}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pattern of the offsets that `wrong` chooses, added in parts of `part` elements.
    fn pattern(shape: &[u64], part: u64, wrong: impl Fn(u64) -> bool) -> Option<String> {
        let elements = shape.iter().product::<u64>();
        let mut whole = MismatchExtent::default();
        for start in (0..elements).step_by(part as usize) {
            let mut extent = MismatchExtent::default();
            (start..elements.min(start + part))
                .filter(|at| wrong(*at))
                .for_each(|at| extent.add(at, shape));
            whole.join(&extent, 0);
        }
        whole.pattern(shape, elements)
    }

    #[test]
    fn boxes_and_steps_are_named_whatever_the_parts() {
        let is = |text: &str| Some(text.to_owned());
        for part in [7, 64, 10_000] {
            let rows = |at: u64| at / 32;
            let columns = |at: u64| at % 32;
            let shape = [64, 32];
            assert_eq!(pattern(&shape, part, |at| rows(at) >= 32), is("rows 32 to 63"));
            assert_eq!(pattern(&shape, part, |at| rows(at) == 5), is("row 5"));
            assert_eq!(pattern(&shape, part, |at| columns(at) > 29), is("columns 30 to 31"));
            let tile = |at| rows(at) >= 60 && columns(at) < 4;
            assert_eq!(pattern(&shape, part, tile), is("rows 60 to 63, columns 0 to 3"));
            assert_eq!(
                pattern(&shape, part, |at| at % 2 == 1),
                is("every second element from 1 to 2047")
            );
            assert_eq!(pattern(&[100], part, |at| at >= 96), is("elements 96 to 99"));
            assert_eq!(
                pattern(&[100], part, |at| at % 11 == 3),
                is("every 11th element from 3 to 91")
            );
            let deep = pattern(&[4, 8, 16], part, |at| at / 128 == 2 && at % 16 >= 8);
            assert_eq!(deep, is("the elements [2, all, 8 to 15]"));
            let tail = |at| at >= 1000;
            assert_eq!(
                pattern(&shape, part, tail),
                is("elements 1000 to 2047, counted row by row")
            );
            for scattered in
                [pattern(&shape, part, |at| at * at % 7 == 2), pattern(&shape, part, |_| true)]
            {
                assert_eq!(scattered, None);
            }
            assert_eq!(pattern(&[100], part, |at| at == 4), None, "one element is listed");
        }
    }

    #[test]
    fn parts_that_know_no_shape_name_runs() {
        let mut whole = MismatchExtent::default();
        for start in (0..2048).step_by(512) {
            let mut part = MismatchExtent::default();
            (0..512).filter(|at| start + at >= 1024).for_each(|at| part.add(at, &[512]));
            whole.join(&part.flat(), start);
        }
        assert_eq!(whole.pattern(&[64, 32], 2048).as_deref(), Some("rows 32 to 63"));
        assert_eq!(whole.pattern(&[2048], 2048).as_deref(), Some("elements 1024 to 2047"));
    }
}
