//! Text as profilers write it: records, numbers, units.

mod number;
mod record;
mod unit;

pub(super) use number::{Conflict, Convention, OUT_OF_BOUNDS, Value, value};
pub(super) use record::{Record, Records, TooLong};
pub(super) use unit::{Dimension, unit};
