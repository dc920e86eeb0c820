//! Whole programs: built, run as they are, and then once more under Nsight Systems.
//!
//! [`run`] has the order of the stages, [`verdict`] what is said for and against a program, [`launched`] what
//! is known of its kernels, [`tools`] what tools tell of them. What a program does with its time is its own
//! affair: no runtime follows from it.

mod launched;
mod run;
mod tools;
mod verdict;

pub(crate) use run::ProgramBackend;
