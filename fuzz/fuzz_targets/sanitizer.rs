//! Any bytes as a log of compute-sanitizer.
#![no_main]

use fuzzing::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::sanitizer(data));
