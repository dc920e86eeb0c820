//! The emulator's own interface: modules that are loaded and launched without a driver.
//!
//! One program, a file per subject: linking it once is what costs. `driver` and `runtime` beside it
//! are programs of their own, because each chooses the devices of its whole process.

mod common;
mod counts;
mod differential;
mod fixtures;
mod hostile;
mod instructions;
mod kernels;
mod lacking;
mod library;
mod races;
mod robust;
mod sanitizer;
mod scheduling;
mod surfaces;
mod tensor;
mod textures;
mod triton;
mod warp_races;
mod zoo;
