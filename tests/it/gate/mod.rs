//! The gate on the emulated device: real repositories, real commits, exact counts.
//!
//! These tests do not run on a GPU: they concern counts, git, files and servers.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::server::emulated;
use crate::support::{outcome, warpgauge};

mod action;
mod ci;
mod commits;
mod counts;
mod github;
mod kept;
mod new_cases;
mod servers;
mod stored;
mod torch;

/// Adds an element to itself 16 times, in a loop of four instructions.
pub(super) const LOOP: &str = include_str!("../../fixtures/gate/loop.ptx");
/// One instruction more in the loop, and the same result.
pub(super) const MORE: (&str, &str) =
    ("    add.s32 %r6, %r6, 1;", "    add.s32 %r6, %r6, 1;\n    mov.u32 %r7, %r6;");
/// Another result.
pub(super) const WRONG: (&str, &str) = ("add.f32 %f2, %f2, %f1;", "add.f32 %f2, %f2, 0f40000000;");

pub(super) const CONTRACT: &str = r#"
num_trials: 1
kernel:
  kernel_type: ptx
  source_file: loop.ptx
  metadata: {kernel_name: repeat}
  io:
    args:
      - {name: x, type: tensor, role: input, tensor_spec: {shape: [1024], dtype: float32, init: {kind: uniform, seed: 1}}}
      - {name: y, type: tensor, role: output, tensor_spec: {shape: [1024], dtype: float32}}
      - {name: "n", type: int, value: 1024}
    launch: {grid: {x: 4}, block: {x: 256}}
tolerance: {atol: 0.0, rtol: 0.0}
"#;

pub(super) const SUITE: &str =
    "version: 1\ncases:\n  - {name: repeat, contract: k/contract.yaml}\n";

/// A repository with the suite in a folder of it, and one commit.
pub(super) struct Repository {
    files: tempfile::TempDir,
    /// What the program keeps: jobs and history of its own.
    data: tempfile::TempDir,
}

impl Repository {
    pub(super) fn new() -> Self {
        let repository =
            Self { files: tempfile::tempdir().unwrap(), data: crate::server::data_directory() };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.write("perf/suite.yaml", SUITE);
        repository.write("perf/k/contract.yaml", CONTRACT);
        repository.write("perf/k/loop.ptx", LOOP);
        repository.commit("first");
        repository
    }

    pub(super) fn path(&self) -> &Path {
        self.files.path()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Changes the kernel.
    pub(super) fn change(&self, (from, to): (&str, &str)) {
        assert!(LOOP.contains(from));
        self.write("perf/k/loop.ptx", &LOOP.replacen(from, to, 1));
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.path())
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(arguments)
            .output()
            .expect("git");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}", output = output.stderr);
        text
    }

    pub(super) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// What of the environment says where compilers and programs are, and where data go.
    pub(super) fn surroundings(&self) -> Vec<(&'static str, String)> {
        let names = ["HOME", "PATH", "LD_LIBRARY_PATH", "WARPGAUGE_TOOLCHAIN", "XDG_DATA_HOME"];
        let given = names.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
        let data = self.data.path().display().to_string();
        given.chain([("WARPGAUGE_DATA_DIR", data)]).collect()
    }

    /// `gate run perf/suite.yaml` in the repository.
    pub(super) fn command(&self, more: &[&str]) -> Command {
        let all = ["--device", "emulator", "gate", "run", "perf/suite.yaml"];
        let mut command = warpgauge(self.path(), &[&all, more].concat());
        command.current_dir(self.path()).envs(self.surroundings());
        command
    }

    /// Exit code, standard output and standard error of it.
    pub(super) fn gate(&self, more: &[&str]) -> (i32, String, String) {
        outcome(self.command(more).output().unwrap())
    }

    /// Exit code, standard output and standard error of another command.
    pub(super) fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = warpgauge(self.path(), &[&["--device", "emulator"], words].concat());
        command.current_dir(self.path()).envs(self.surroundings());
        outcome(command.output().unwrap())
    }

    /// Its report against `HEAD`.
    #[track_caller]
    pub(super) fn report(&self, code: i32) -> Value {
        let (exit, stdout, stderr) = self.gate(&["--baseline", "HEAD", "--json", "--quiet"]);
        assert_eq!(exit, code, "{stdout}\n{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }
}

/// The counts of the first case, as they are reported.
pub(super) fn counts(report: &Value) -> Value {
    report["cases"][0]["counts"].clone()
}
