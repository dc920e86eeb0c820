//! Backend for whole programs: builds a program, runs it unchanged, and runs it once more under Nsight
//! Systems. The main type is [`ProgramBackend`].
//!
//! [`run`] holds the order of the stages and [`verdict`] judges a program. [`launched`] lists its
//! kernels, and [`tools`] runs NVIDIA's tools. A program decides itself what it does with its time, so
//! its report has no runtime.

mod launched;
mod run;
mod tools;
mod verdict;

pub(crate) use run::ProgramBackend;
