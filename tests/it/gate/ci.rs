//! Steps of CI runners, and the GitLab job as its runner carries it out.

use std::path::PathBuf;

use warpgauge_contract::{BodyFormat, parse};

use super::*;
use crate::server::root;

/// A shell to run what CI would, in a clone of `origin`.
pub(super) struct Ci {
    pub(super) origin: Repository,
    clone: tempfile::TempDir,
    programs: tempfile::TempDir,
}

impl Ci {
    pub(super) fn new() -> Self {
        let (clone, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = programs.path().join("warpgauge");
        std::os::unix::fs::symlink(crate::server::program_path(), link).unwrap();
        Self { origin: Repository::new(), clone, programs }
    }

    /// A clone of the newest commit of `branch` alone, as CI makes it.
    pub(super) fn check_out(&self, branch: &str, into: &str) -> PathBuf {
        let url = format!("file://{}", self.origin.path().display());
        let path = self.clone.path().join(into);
        let clone = Command::new("git")
            .args(["clone", "--quiet", "--depth", "1", "--branch", branch, &url])
            .arg(&path)
            .status();
        assert!(clone.unwrap().success());
        path
    }

    /// The directory that a step finds the program in.
    pub(super) fn programs(&self) -> &Path {
        self.programs.path()
    }

    /// Runs a script as a runner does, stopping at the first error; returns exit code and standard output. The
    /// variables come after those of the surroundings.
    pub(super) fn run(
        &self,
        directory: &Path,
        script: &str,
        variables: &[(String, String)],
    ) -> (i32, String) {
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(directory)
            .env_clear()
            .envs(self.origin.surroundings())
            .envs(variables.iter().cloned())
            .output()
            .expect("bash");
        let code = output.status.code().expect("an exit code");
        if code != 0 {
            eprintln!("{code}: {}", String::from_utf8_lossy(&output.stderr));
        }
        (code, String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// As [`Self::run`] with the program on the path.
    fn shell(&self, directory: &Path, script: &str, variables: &[(&str, &str)]) -> i32 {
        let path = std::env::var("PATH").expect("PATH");
        let path = format!("{}:{path}", self.programs.path().display());
        let mut all = vec![("PATH".to_owned(), path)];
        all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.run(directory, script, &all).0
    }

    /// A good and a worse branch off `main`.
    pub(super) fn branches(&self) {
        self.origin.git(&["checkout", "--quiet", "-b", "good"]);
        self.origin.write("README", "better words");
        self.origin.commit("good");
        self.origin.git(&["checkout", "--quiet", "-b", "worse"]);
        self.origin.change(MORE);
        self.origin.commit("worse");
    }
}

#[test]
fn the_gitlab_job_passes_good_commits_and_stops_worse_ones() {
    needs!("the emulated device", emulated());
    let docs = std::fs::read_to_string(root().join("docs/gate.md")).unwrap();
    let start = docs.find("   # .gitlab-ci.yml").expect("the snippet");
    let snippet = &docs[start..start + docs[start..].find("```").expect("its end")];
    let snippet: String =
        snippet.lines().map(|line| format!("{}\n", line.get(3..).unwrap_or(""))).collect();
    let job: Value = parse(BodyFormat::Yaml, snippet.as_bytes()).unwrap();
    let script = job["gate"]["script"].as_array().unwrap().iter();
    let script = script.map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n");
    assert_eq!(job["gate"]["variables"]["SUITE"], "suite.yaml");
    let ci = Ci::new();
    let base = ci.origin.git(&["rev-parse", "main"]);
    ci.branches();
    for (branch, expected) in [("good", 0), ("worse", 2)] {
        let clone = ci.check_out(branch, branch);
        let variables = [
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.trim()),
            ("SUITE", "perf/suite.yaml"),
            ("DEVICE", "emulator"),
        ];
        assert_eq!(ci.shell(&clone, &script, &variables), expected, "{branch}");
        let junit = job["gate"]["artifacts"]["reports"]["junit"].as_str().unwrap();
        let junit = std::fs::read_to_string(clone.join(junit)).unwrap();
        let junit = roxmltree::Document::parse(&junit).unwrap();
        let failures = junit.root_element().attribute("failures").unwrap();
        assert_eq!(failures, if expected == 0 { "0" } else { "1" });
    }
}
