//! Text as profilers write it: records, numbers, units; and what to say of it.

mod notes;
mod number;
mod record;
mod unit;

pub(super) use notes::Notes;
pub(super) use number::{Cell, Conflict, Convention, OUT_OF_BOUNDS, Value, value};
pub(super) use record::{Record, Records, TooLong};
pub(super) use unit::{Dimension, unit};
