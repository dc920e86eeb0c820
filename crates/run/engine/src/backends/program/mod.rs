//! Backend for whole programs. It builds a program, runs it unchanged, and runs it once more under
//! Nsight Systems. The main type is [`ProgramBackend`].
//!
//! [`run`] contains the sequence of stages, and [`verdict`] judges a program. [`launched`] lists
//! its kernels, and [`tools`] runs NVIDIA's tools. Only the program knows which part of its time
//! matters, so its report has no runtime.

mod launched;
mod run;
mod tools;
mod verdict;

pub(crate) use run::ProgramBackend;
