//! Fuzz target that loads arbitrary bytes as an image for `cuModuleLoadData`.
#![no_main]

use fuzzing::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    harness::load_only(&harness::text(data));
});
