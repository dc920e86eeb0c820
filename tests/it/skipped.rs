//! Tests that do not test record that: the effects of `needs!` and its like, seen from outside.
//!
//! Each test here starts itself again. The new process plays a test that lacks something on this
//! machine. The record of this run has nothing of it.

use std::path::Path;
use std::process::{Command, Output};

use crate::needs::RECORD;

/// Says to a test that it was started again, and whether what it needs is there.
const ROLE: &str = "WARPGAUGE_TEST_NEEDS";

fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

fn start(test: &str, role: &str, record: &Path, more: &[&str]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("skipped::{test}")])
        .args(more)
        .env(ROLE, role)
        .env(RECORD, record)
        .output()
        .unwrap()
}

/// Runs a test again: whether it passed, with what it printed and what it recorded.
fn again(test: &str, role: &str, more: &[&str]) -> (bool, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("skipped.txt");
    let output = start(test, role, &record, more);
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(printed.contains("running 1 test"), "{printed}");
    (output.status.success(), printed, std::fs::read_to_string(record).unwrap_or_default())
}

/// What a test does that needs something: ends and tells, or goes on.
fn check(test: &str, how: &str) {
    // Alone, a test runs on the main thread, which has no name of its own.
    for more in [&[][..], &["--test-threads=1"]] {
        let (passed, printed, record) = again(test, "missing", more);
        assert!(passed, "{printed}");
        assert_eq!(record, format!("{how}\tit::skipped::{test}\tsomething\n"));
        // On standard error, past the runner's capture.
        let told = format!("{how}: it::skipped::{test} needs something\n");
        assert!(printed.contains(&told), "{printed}");
    }
    let (passed, printed, record) = again(test, "there", &[]);
    assert!(!passed && printed.contains("it goes on"), "{printed}");
    assert_eq!(record, "");
}

#[test]
fn a_test_ends_where_something_is_missing() {
    if let Some(role) = role() {
        needs!("something", role == "there");
        panic!("it goes on");
    }
    check("a_test_ends_where_something_is_missing", "skipped");
}

#[tokio::test]
async fn a_test_ends_half_way_where_something_is_missing() {
    if let Some(role) = role() {
        the_rest_needs!("something", role == "there");
        panic!("it goes on");
    }
    check("a_test_ends_half_way_where_something_is_missing", "in part");
}

#[test]
fn a_part_that_is_not_checked_is_told_and_the_test_goes_on() {
    const NAME: &str = "a_part_that_is_not_checked_is_told_and_the_test_goes_on";
    if role().is_some() {
        in_part!("something");
        panic!("it goes on");
    }
    let (passed, printed, record) = again(NAME, "missing", &[]);
    assert!(!passed && printed.contains("it goes on"), "{printed}");
    assert_eq!(record, format!("in part\tit::skipped::{NAME}\tsomething\n"));
}

#[test]
fn what_cannot_be_recorded_fails() {
    if role().is_some() {
        needs!("something", false);
    }
    let output = start("what_cannot_be_recorded_fails", "", Path::new("/dev/null/x"), &[]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{printed}");
    assert!(printed.contains(&format!("cannot tell in {RECORD}")), "{printed}");
}
