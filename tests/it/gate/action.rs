//! The action for GitHub, as its runner carries it out.

use std::path::PathBuf;

use warpgauge_contract::{BodyFormat, parse};

use super::ci::Ci;
use super::github::GitHub;
use super::*;
use crate::server::root;

/// What a run of the action is given, beside the defaults of its inputs.
#[derive(Default)]
struct Given<'a> {
    /// The base branch of a pull request; empty for a push.
    base: &'a str,
    inputs: &'a [(&'a str, &'a str)],
    github: Option<&'a GitHub>,
    /// Directories for programs, in place of that of the program under test.
    path: Option<PathBuf>,
}

/// What came of it.
struct Done {
    code: i32,
    /// The last step that ran.
    step: String,
    printed: String,
    output: String,
    summary: String,
}

/// All steps of action.yml until one fails, with what GitHub would set.
fn action(ci: &Ci, directory: &Path, given: &Given<'_>) -> Done {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let action: Value = parse(BodyFormat::Yaml, text.as_bytes()).unwrap();
    assert_eq!(action["runs"]["using"], "composite");
    let temporary = tempfile::tempdir().unwrap();
    let file = |name: &str| temporary.path().join(name);
    let (output, summary, added) = (file("output"), file("summary"), file("path"));
    let variables: Vec<(String, String)> = [
        ("GITHUB_OUTPUT", output.display().to_string()),
        ("GITHUB_STEP_SUMMARY", summary.display().to_string()),
        ("GITHUB_PATH", added.display().to_string()),
        ("GITHUB_REPOSITORY", "o/r".to_owned()),
        ("GITHUB_API_URL", given.github.map_or(String::new(), |github| github.url.clone())),
        ("RUNNER_TEMP", temporary.path().display().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    let mut known = known(&action, given);
    let (mut code, mut printed, mut last) = (0, String::new(), String::new());
    for step in action["runs"]["steps"].as_array().unwrap() {
        assert_eq!(step["shell"], "bash");
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "inputs reach a script by its environment only");
        let mut own = variables.clone();
        for (name, value) in step["env"].as_object().unwrap() {
            let expression = value.as_str().unwrap();
            let found = known.iter().find(|(text, _)| text == expression);
            let (_, value) = found.unwrap_or_else(|| panic!("{expression} is not known"));
            own.push((name.clone(), value.clone()));
        }
        let first = given.path.clone().unwrap_or_else(|| ci.programs().to_owned());
        let path = format!("{}:{}", first.display(), std::env::var("PATH").unwrap());
        let lines = std::fs::read_to_string(&added).unwrap_or_default();
        own.push((
            "PATH".to_owned(),
            lines.lines().fold(path, |path, line| format!("{line}:{path}")),
        ));
        let (status, text) = ci.run(directory, script, &own);
        (code, last) = (status, step["id"].as_str().unwrap().to_owned());
        printed.push_str(&text);
        if code != 0 {
            break;
        }
        for line in std::fs::read_to_string(&output).unwrap_or_default().lines() {
            let (name, value) = line.split_once('=').expect("name=value");
            known.push((format!("${{{{ steps.{last}.outputs.{name} }}}}"), value.to_owned()));
        }
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    Done { code, step: last, printed, output: read(&output), summary: read(&summary) }
}

/// Values of the expressions that steps may use.
fn known(action: &Value, given: &Given<'_>) -> Vec<(String, String)> {
    let number = if given.base.is_empty() { "" } else { "7" };
    let mut known = vec![
        ("${{ github.base_ref }}".to_owned(), given.base.to_owned()),
        ("${{ github.action_path }}".to_owned(), root().display().to_string()),
        ("${{ github.event.pull_request.number }}".to_owned(), number.to_owned()),
    ];
    let set = [("suite", "perf/suite.yaml"), ("device", "emulator"), ("token", "secret-token")];
    for (name, input) in action["inputs"].as_object().unwrap() {
        let of = |list: &[(&str, &str)]| {
            list.iter().find(|(known, _)| known == name).map(|(_, value)| (*value).to_owned())
        };
        let default = || input["default"].as_str().unwrap_or_default().to_owned();
        let value = of(given.inputs).or_else(|| of(&set)).unwrap_or_else(default);
        known.push((format!("${{{{ inputs.{name} }}}}"), value));
    }
    known
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
        let inputs = [("comment", "false")];
        let done = action(&ci, &clone, &Given { base, inputs: &inputs, ..Given::default() });
        assert_eq!((done.code, done.step.as_str()), (expected, "verdict"), "{branch} {base}");
        let output = &done.output;
        assert!(output.contains(&format!("exit-code={expected}")), "{output}");
        let verdict = if expected == 0 { "PASS" } else { "REGRESSION" };
        let summary = &done.summary;
        assert!(summary.contains(&format!("Performance gate: {verdict}")), "{summary}");
        // What the gate prints is fenced off; what annotates files comes after the fence.
        let printed = &done.printed;
        let (_, fenced) = printed.split_once("::stop-commands::").expect("a fence");
        let (fence, fenced) = fenced.split_once('\n').unwrap();
        assert_eq!(fence.len(), 32, "{printed}");
        let (inside, after) = fenced.split_once(&format!("\n::{fence}::\n")).expect("its end");
        assert!(inside.contains(verdict), "{printed}");
        let annotation =
            "::error file=perf/k/loop.ptx,line=4,title=repeat%3A REGRESSION::a count grew";
        assert_eq!(after.contains(annotation), expected == 2, "{printed}");
        assert_eq!(after.lines().count(), usize::from(expected == 2), "{printed}");
    }
}

#[test]
fn a_comment_is_written_once_and_then_replaced() {
    needs!("the emulated device", emulated());
    needs!("python3", Command::new("python3").arg("--version").output().is_ok());
    let ci = Ci::new();
    ci.branches();
    let github = GitHub::start(true);
    let mark = "<!-- warpgauge gate: perf/suite.yaml -->";
    // A look-alike of a user, and more comments than a page has.
    github.add("mallory", "User", &format!("{mark}\nPASS"));
    for number in 0..120 {
        github.add("github-actions[bot]", "Bot", &format!("comment {number}"));
    }
    for (branch, expected) in [("worse", 2), ("good", 0)] {
        let clone = ci.check_out(branch, branch);
        let given = Given { base: "main", github: Some(&github), ..Given::default() };
        assert_eq!(action(&ci, &clone, &given).code, expected);
        let comments = github.comments();
        assert_eq!(comments.len(), 122);
        assert_eq!(comments[0].1, format!("{mark}\nPASS"));
        let verdict = if expected == 0 { "PASS" } else { "REGRESSION" };
        let (author, text) = &comments[121];
        assert_eq!(author, "github-actions[bot]");
        assert!(text.starts_with(mark) && text.contains(verdict), "{text}");
    }
    let requests = github.requests();
    let count = |method: &str| requests.iter().filter(|one| one.starts_with(method)).count();
    assert_eq!((count("POST"), count("PATCH")), (1, 1), "{requests:?}");
}

#[test]
fn a_token_that_may_not_comment_is_a_warning_and_changes_no_verdict() {
    needs!("the emulated device", emulated());
    needs!("python3", Command::new("python3").arg("--version").output().is_ok());
    let ci = Ci::new();
    ci.branches();
    let github = GitHub::start(false);
    let clone = ci.check_out("good", "good");
    let given = Given { base: "main", github: Some(&github), ..Given::default() };
    let done = action(&ci, &clone, &given);
    assert_eq!(done.code, 0);
    assert!(
        done.printed.contains("::warning title=warpgauge gate::no comment"),
        "{}",
        done.printed
    );
    assert!(done.printed.contains("pull-requests: write"), "{}", done.printed);
    assert!(github.comments().is_empty());
}

/// A tarball as `cargo xtask tarball` lays it out.
fn tarball(directory: &Path) -> PathBuf {
    let inside = directory.join("warpgauge-0.1.0");
    std::fs::create_dir(&inside).unwrap();
    let program = crate::server::program_path();
    let program = std::path::absolute(program).unwrap();
    for name in ["warpgauge", "libwarpgauge_emulator.so"] {
        std::os::unix::fs::symlink(program.with_file_name(name), inside.join(name)).unwrap();
    }
    let archive = directory.join("warpgauge.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(directory).arg("-czf").arg(&archive).arg("warpgauge-0.1.0");
    assert!(tar.status().unwrap().success());
    archive
}

#[test]
fn the_action_builds_its_sources_where_nothing_is_installed() {
    needs!("the emulated device", emulated());
    let ci = Ci::new();
    ci.branches();
    let (programs, clone) = (tempfile::tempdir().unwrap(), ci.check_out("good", "good"));
    let asked = programs.path().join("asked");
    let program = std::path::absolute(crate::server::program_path()).unwrap();
    // In place of a release build it leaves the program under test where cargo would.
    let cargo = format!(
        "#!/bin/sh\nprintf '%s ' \"$@\" > '{}'\nwhile [ \"$1\" != --target-dir ]; do shift; done\n\
         mkdir -p \"$2/release\" && ln -s '{}' \"$2/release/warpgauge\"\n",
        asked.display(),
        program.display()
    );
    let path = programs.path().join("cargo");
    std::fs::write(&path, cargo).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, executable).unwrap();
    let given = Given {
        base: "main",
        inputs: &[("comment", "false")],
        path: Some(programs.path().to_owned()),
        ..Given::default()
    };
    let done = action(&ci, &clone, &given);
    assert_eq!((done.code, done.step.as_str()), (0, "verdict"), "{}", done.printed);
    let asked = std::fs::read_to_string(asked).unwrap();
    let manifest = format!("--manifest-path {}", root().join("Cargo.toml").display());
    for part in ["build --release --locked ", &manifest, "-p warpgauge -p warpgauge-emulator"] {
        assert!(asked.contains(part), "{asked}");
    }
}

#[test]
fn the_action_installs_what_it_is_given() {
    needs!("the emulated device", emulated());
    let ci = Ci::new();
    ci.branches();
    let files = tempfile::tempdir().unwrap();
    let archive = tarball(files.path());
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap()[..64].to_owned();
    let archive = archive.display().to_string();
    let empty = tempfile::tempdir().unwrap();
    let clone = ci.check_out("worse", "worse");
    let run = |inputs: &[(&str, &str)]| {
        let all = [inputs, &[("comment", "false")]].concat();
        let path = Some(empty.path().to_owned());
        action(&ci, &clone, &Given { base: "main", inputs: &all, path, ..Given::default() })
    };
    let done = run(&[("install", &archive), ("sha256", &sum)]);
    assert_eq!((done.code, done.step.as_str()), (2, "verdict"), "{}", done.printed);
    let wrong = "0".repeat(64);
    let directory = files.path().display().to_string();
    for (inputs, said) in [
        (vec![("install", archive.as_str()), ("sha256", wrong.as_str())], "has not the SHA-256"),
        (vec![("install", "https://example.invalid/w.whl")], "needs its SHA-256"),
        (vec![("install", "http://example.invalid/w.whl")], "only https://"),
        (vec![("install", "nowhere.whl")], "there is no file nowhere.whl"),
        (vec![("install", "perf/suite.yaml")], "neither a wheel (.whl) nor a tarball"),
        (vec![("install", directory.as_str())], "there is no file"),
    ] {
        let done = run(&inputs);
        assert_eq!((done.code, done.step.as_str()), (1, "install"), "{inputs:?}");
        assert!(done.printed.starts_with("::error title=warpgauge::"), "{}", done.printed);
        assert!(done.printed.contains(said), "{inputs:?}: {}", done.printed);
    }
}
