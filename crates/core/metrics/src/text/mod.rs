//! Parses the text that profilers write: records, numbers and units. Collects notes about the text.

mod notes;
mod number;
mod record;
mod table;
mod unit;

pub(super) use notes::Notes;
pub(super) use number::{Cell, Conflict, Convention, OUT_OF_BOUNDS, Shown, Value, value};
pub(super) use record::{Record, Records, Step, TooLong};
pub(super) use table::TableColumns;
pub(super) use unit::{Dimension, Unit, unit};
