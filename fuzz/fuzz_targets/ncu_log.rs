//! Any bytes as a log of Nsight Compute.
#![no_main]

use fuzzing::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::ncu_log(data));
