//! Timed launches.
//!
//! - `audit_schedule`: which launches are verified, and how long that may take
//! - `batch`: launches in batches
//! - `inputs`: what each launch finds in the random inputs
//! - `judge`: who verifies launches, and what they are told
//! - `lasting`: launches that keep what the kernel's modules keep, until what goes wrong late has shown
//! - `load`: the load before a timed launch
//! - `sealed_turns`: launches among the timed ones that another process judges
//! - `stage`: one launch between two events
//! - `trials`: warm-up, batches, when to stop

pub(crate) mod audit_schedule;
pub(crate) mod batch;
pub(crate) mod inputs;
pub(crate) mod judge;
pub(crate) mod lasting;
pub(crate) mod load;
pub(crate) mod sealed_turns;
pub(crate) mod stage;
pub(crate) mod trials;
