//! Fuzz target that parses and lowers PTX whose tokens were changed.
#![no_main]

use fuzzing::{harness, mutation};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| {
    harness::load_only(&harness::text(data));
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutation::in_place(data, size, max_size, seed)
});
