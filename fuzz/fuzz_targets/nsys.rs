//! Any bytes as tables of Nsight Systems.
#![no_main]

use fuzzing::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::nsys(data));
