//! Running the built program.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command with an environment of its own: no setting leaks in from outside.
pub fn warpgauge(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(crate::server::program_path());
    command.args(args).env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

pub fn run(args: &[&str]) -> (i32, String, String) {
    let home = tempfile::tempdir().unwrap();
    outcome(warpgauge(home.path(), args).output().unwrap())
}

pub fn outcome(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}
