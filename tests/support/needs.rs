//! Records tests that do not test: [`needs!`] is the main macro.
//!
//! A machine may lack what some tests need: a GPU, PostgreSQL, nvcc. Such a test ends with
//! [`needs!`], or half-way with [`the_rest_needs!`], and never with a bare `return`: that would
//! count as passed. `cargo xtask test` and the bundle's `run.sh` name a file in [`RECORD`], and
//! print at its end what was skipped and why. The reasons are also on standard error.
//!
//! Each test program that uses this file has it at its root, before everything else:
//!
//! ```text
//! #[macro_use]
//! #[path = "../support/needs.rs"]
//! mod needs;
//! ```

// Some test programs use only a part of this file.
#![allow(dead_code, unused_macros)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Variable with the path of the record. Each line has `skipped` or `in part`, the test and the
/// need, separated by tabs.
pub const RECORD: &str = "WARPGAUGE_TESTS_SKIPPED";

/// Ends the test as skipped if a need is not met: `needs!("PostgreSQL", installed())`.
macro_rules! needs {
    ($what:expr, $there:expr $(,)?) => {
        if !$there {
            $crate::needs::tell("skipped", &$crate::needs::this_test!(), $what);
            return;
        }
    };
}

/// Ends a test that has checked something as skipped in part.
macro_rules! the_rest_needs {
    ($what:expr, $there:expr $(,)?) => {
        if !$there {
            $crate::needs::tell("in part", &$crate::needs::this_test!(), $what);
            return;
        }
    };
}

/// Returns the value of an option, or ends the test as skipped in part.
macro_rules! the_rest_needs_some {
    ($what:expr, $found:expr $(,)?) => {{
        let found = $found;
        the_rest_needs!($what, found.is_some());
        found.unwrap()
    }};
}

/// Records that a part is not checked here, and continues.
macro_rules! in_part {
    ($what:expr) => {
        $crate::needs::tell("in part", &$crate::needs::this_test!(), $what)
    };
}

/// Returns the name of the present test, with its program: `it::disk::a_full_disk_…`.
macro_rules! this_test {
    () => {{
        fn here() {}
        $crate::needs::name_of(std::any::type_name_of_val(&here))
    }};
}

pub(crate) use this_test;

/// Returns the name of the present test. Test runners name the thread of each test after the test.
/// On the main thread, where a program may run tests in sequence, `here` has the path of an item
/// within the test.
pub fn name_of(here: &str) -> String {
    match std::thread::current().name() {
        Some(name) if name != "main" => format!("{}::{name}", env!("CARGO_CRATE_NAME")),
        _ => here.trim_end_matches("::here").trim_end_matches("::{{closure}}").to_owned(),
    }
}

/// Records that a test, or a part of it, does not run because a need is not met.
///
/// # Panics
///
/// If the record cannot be written: the test fails rather than pass unnoticed.
pub fn tell(how: &str, test: &str, what: &str) {
    // Runners capture the output of `eprintln!` in tests that pass.
    let told = std::io::stderr().write_all(format!("{how}: {test} needs {what}\n").as_bytes());
    let record = std::env::var_os(RECORD).map(PathBuf::from);
    let told = told.and_then(|()| record.map_or(Ok(()), |file| append(&file, how, test, what)));
    told.unwrap_or_else(|error| panic!("cannot tell in {RECORD} what {test} needs: {error}"));
}

/// Appends a line in one write, because tests run side by side, in one process or in several.
fn append(file: &Path, how: &str, test: &str, what: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{how}\t{test}\t{what}\n").as_bytes())
}
