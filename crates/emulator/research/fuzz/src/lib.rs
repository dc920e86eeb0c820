//! Code that the fuzz targets share with the tests that replay their seeds.

pub mod harness;
pub mod mutation;
