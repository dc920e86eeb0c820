//! Timed launches.
//!
//! - `audit_schedule`: selects the launches to verify, and limits the time for verification
//! - `batch`: launches in batches
//! - `inputs`: random inputs of each launch
//! - `judge`: the interface for verifying launches
//! - `lasting`: a series of launches that keep the modules' variables, which detects errors that occur late
//! - `lent_sets`: memory with prepared inputs of sealed launches
//! - `load`: the load before a timed launch
//! - `sealed_turns`: timed launches that another process judges
//! - `stage`: one launch between two events
//! - `trials`: warm-up, batches, and the decision to stop

pub(crate) mod audit_schedule;
pub(crate) mod batch;
pub(crate) mod inputs;
pub(crate) mod judge;
pub(crate) mod lasting;
pub(crate) mod lent_sets;
pub(crate) mod load;
pub(crate) mod sealed_turns;
pub(crate) mod stage;
pub(crate) mod trials;
