//! The action and the GitLab job, run as their runners would run them.

use std::path::PathBuf;

use warpgauge_contract::{BodyFormat, parse};

use super::*;
use crate::server::root;

/// A shell to run what CI would, in a clone of `origin`.
struct Ci {
    origin: Repository,
    clone: tempfile::TempDir,
    programs: tempfile::TempDir,
}

impl Ci {
    fn new() -> Self {
        let (clone, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = programs.path().join("warpgauge");
        std::os::unix::fs::symlink(crate::server::program_path(), link).unwrap();
        Self { origin: Repository::new(), clone, programs }
    }

    /// A clone of the newest commit of `branch` alone, as CI makes it.
    fn check_out(&self, branch: &str, into: &str) -> PathBuf {
        let url = format!("file://{}", self.origin.path().display());
        let path = self.clone.path().join(into);
        let clone = Command::new("git")
            .args(["clone", "--quiet", "--depth", "1", "--branch", branch, &url])
            .arg(&path)
            .status();
        assert!(clone.unwrap().success());
        path
    }

    /// Runs a script as a runner does, stopping at the first error.
    fn shell(&self, directory: &Path, script: &str, variables: &[(&str, &str)]) -> i32 {
        let path = std::env::var("PATH").expect("PATH");
        let path = format!("{}:{path}", self.programs.path().display());
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(directory)
            .env_clear()
            .envs(self.origin.surroundings())
            .env("PATH", path)
            .envs(variables.iter().copied())
            .output()
            .expect("bash");
        let code = output.status.code().expect("an exit code");
        if code != 0 {
            eprintln!("{code}: {}", String::from_utf8_lossy(&output.stderr));
        }
        code
    }

    /// A good and a worse branch off `main`.
    fn branches(&self) {
        self.origin.git(&["checkout", "--quiet", "-b", "good"]);
        self.origin.write("README", "better words");
        self.origin.commit("good");
        self.origin.git(&["checkout", "--quiet", "-b", "worse"]);
        self.origin.change(MORE);
        self.origin.commit("worse");
    }
}

/// Both steps of action.yml, with what GitHub would set.
fn action(ci: &Ci, directory: &Path, base_branch: &str) -> (i32, String, String) {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let action: Value = parse(BodyFormat::Yaml, text.as_bytes()).unwrap();
    assert_eq!(action["runs"]["using"], "composite");
    let output = directory.join("github-output");
    let summary = directory.join("github-summary");
    let mut variables = vec![
        ("GITHUB_OUTPUT".to_owned(), output.display().to_string()),
        ("GITHUB_STEP_SUMMARY".to_owned(), summary.display().to_string()),
    ];
    let mut known = vec![
        ("${{ inputs.suite }}".to_owned(), "perf/suite.yaml".to_owned()),
        ("${{ inputs.device }}".to_owned(), "emulator".to_owned()),
        ("${{ github.base_ref }}".to_owned(), base_branch.to_owned()),
    ];
    for (name, input) in action["inputs"].as_object().unwrap() {
        let default = input["default"].as_str().unwrap_or_default().to_owned();
        known.push((format!("${{{{ inputs.{name} }}}}"), default));
    }
    let mut code = 0;
    for step in action["runs"]["steps"].as_array().unwrap() {
        assert_eq!(step["shell"], "bash");
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "inputs reach a script by its environment only");
        for (name, value) in step["env"].as_object().unwrap() {
            let expression = value.as_str().unwrap();
            let found = known.iter().find(|(text, _)| text == expression);
            let (_, value) = found.unwrap_or_else(|| panic!("{expression} is not known"));
            variables.push((name.clone(), value.clone()));
        }
        let borrowed: Vec<_> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        code = ci.shell(directory, script, &borrowed);
        if code != 0 {
            break;
        }
        for line in std::fs::read_to_string(&output).unwrap_or_default().lines() {
            let (name, value) = line.split_once('=').expect("name=value");
            let id = step["id"].as_str().unwrap();
            known.push((format!("${{{{ steps.{id}.outputs.{name} }}}}"), value.to_owned()));
        }
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    (code, read(&output), read(&summary))
}

#[test]
fn the_action_passes_good_commits_and_stops_worse_ones() {
    needs!("the emulated device", emulated());
    let ci = Ci::new();
    ci.branches();
    // A pull request into main, and pushes judged against the commit before.
    for (branch, base, expected) in
        [("good", "main", 0), ("worse", "main", 2), ("good", "", 0), ("worse", "", 2)]
    {
        let clone = ci.check_out(branch, &format!("{branch}-{base}"));
        let (code, output, summary) = action(&ci, &clone, base);
        assert_eq!(code, expected, "{branch} {base}");
        assert!(output.contains(&format!("exit-code={expected}")), "{output}");
        let verdict = if expected == 0 { "PASS" } else { "REGRESSION" };
        assert!(summary.contains(&format!("Performance gate: {verdict}")), "{summary}");
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
