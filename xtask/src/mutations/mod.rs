//! `cargo xtask mutations`: checks that every defence against hostile kernels is necessary. It
//! removes each defence in turn. Then an exploit must end differently or, if no exploit can detect
//! the removal, an integration test must fail.
//!
//! All removals are compiled into one copy of the program. Each is active only if its name is the
//! extension of the running program's file name. So one build serves all runs. Workers start under
//! the same file name. An environment variable would not work, because workers inherit only a few.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::product::{self, Profile};
use crate::shell;

mod table;

use table::{GPU_ONLY, MUTATIONS, Mutation, Noticed};

/// Code that is added to each crate that contains a defence. The copy of the program that is named
/// `warpgauge.DEFENCE` runs without this defence.
const SWITCH_CODE: &str = "
/// Removes defences, to find out which exploits and tests notice.
pub(crate) mod mutation {
    /// Returns whether the program runs without this defence.
    pub(crate) fn removes(name: &str) -> bool {
        let program = std::env::args_os().next().unwrap_or_default();
        std::path::Path::new(&program).extension().is_some_and(|removed| removed == name)
    }
}
";

/// Options of `mutations`.
#[derive(clap::Args)]
pub struct Options {
    /// Remove only the defences whose names contain this text.
    #[arg(long)]
    only: Option<String>,
    /// For each removed defence, run all exploits, not only those in the table. This shows which
    /// other exploits end differently. It takes ten times as long.
    #[arg(long)]
    all: bool,
}

/// Name of the test that runs all exploits.
const EXPLOITS: &str = "exploits::every_exploit_ends_as_its_row_says";

/// Builds the program with all removals. Then runs the exploits and tests once without each
/// defence.
pub fn run(options: &Options) -> Result<()> {
    let place = product::target_dir()?.join("mutations");
    let program = build_mutants(&place)?;
    let tests = build_tests()?;

    for test in std::iter::once(EXPLOITS).chain(named_tests()) {
        let noticed = who_notices(&program, &tests, None, (test, None))?;
        if !noticed.is_empty() {
            bail!("these fail even with all defences in place: {noticed:?}");
        }
    }
    let chosen = |mutation: &&Mutation| {
        options.only.as_ref().is_none_or(|only| mutation.name.contains(only.as_str()))
    };
    let mut survivors = Vec::new();
    println!("| defence removed | noticed by |\n| --- | --- |");
    for mutation in MUTATIONS.iter().filter(chosen) {
        let mut noticed = BTreeSet::new();
        for asked in mutation.asked(options.all) {
            noticed.append(&mut who_notices(&program, &tests, Some(mutation.name), asked)?);
        }
        if noticed.is_empty() {
            survivors.push(mutation.name);
        }
        let names: Vec<_> = noticed.iter().map(|name| format!("`{name}`")).collect();
        let names = if names.is_empty() { "NOTHING".to_owned() } else { names.join(", ") };
        println!("| {} | {names} |", mutation.what);
    }
    for (what, why) in GPU_ONLY {
        println!("| {what} | not tried: {why} |");
    }
    if survivors.is_empty() {
        return Ok(());
    }
    bail!("no exploit or test notices the removal of: {}", survivors.join(", "))
}

/// A test to run, and the exploits that it runs; `None` means all exploits.
type Asked = (&'static str, Option<&'static [&'static str]>);

impl Mutation {
    /// Returns the tests and exploits that must detect the removal of the defence.
    fn asked(&self, all: bool) -> Vec<Asked> {
        match self.noticed {
            Noticed::By(exploits) => vec![(EXPLOITS, (!all).then_some(exploits))],
            Noticed::ByTest(tests) => tests.iter().map(|&test| (test, None)).collect(),
        }
    }
}

/// Returns all tests that the table lists, except the test that runs the exploits.
fn named_tests() -> impl Iterator<Item = &'static str> {
    MUTATIONS
        .iter()
        .flat_map(|mutation| match mutation.noticed {
            Noticed::By(_) => &[][..],
            Noticed::ByTest(tests) => tests,
        })
        .copied()
}

/// Builds a copy of the sources with all removals. Returns the path of the program.
fn build_mutants(place: &Path) -> Result<PathBuf> {
    let tree = place.join("tree");
    copy_sources(&tree)?;
    for mutation in MUTATIONS {
        apply(&tree, mutation)?;
    }
    for library in libraries() {
        let path = tree.join(&library);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {library}"))?;
        write(&path, &(text + SWITCH_CODE))?;
    }

    // The target directory is separate. Otherwise Cargo would confuse the crates of the copy with
    // the crates of the same names in the working tree.
    let target = place.join("target");
    let mut cargo = shell::cargo();
    cargo.current_dir(&tree).args(["build", "-p", "warpgauge", "--bin", "warpgauge"]);
    // The build needs no debug information.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").arg("--target-dir");
    shell::run(cargo.arg(&target))?;
    let programs = place.join("bin");
    fs::create_dir_all(&programs)?;
    let program = programs.join("warpgauge");
    copy(&target.join("debug/warpgauge"), &program)?;
    product::build(Profile::Test)?;
    let built = product::profile_dir(Profile::Dev)?;
    let emulator = "libwarpgauge_emulator.so";
    copy(&built.join(emulator), &programs.join(emulator))?;
    product::ensure_toolchain(&program)?;
    Ok(program)
}

/// Returns the root source files of the crates that contain a defence.
fn libraries() -> BTreeSet<String> {
    let root_of = |mutation: &Mutation| {
        let (before, _) = mutation.file.split_once("src/").unwrap_or_default();
        format!("{before}src/lib.rs")
    };
    MUTATIONS.iter().map(root_of).collect()
}

/// Copies the files that git tracks, and new files that git does not ignore. Unchanged files keep
/// their timestamps, so that the next build is short.
fn copy_sources(tree: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(shell::root());
    let list = shell::capture(git.args(["ls-files", "-z", "-co", "--exclude-standard"]))?;
    let libraries = libraries();
    for file in list.split('\0').filter(|file| !file.is_empty()) {
        let source = shell::root().join(file);
        // The git index may list a file that does not exist in the working tree.
        if !source.is_file() {
            continue;
        }
        let target = tree.join(file);
        let touched = MUTATIONS.iter().any(|m| m.file == file) || libraries.contains(file);
        if touched || fs::read(&target).ok() != fs::read(&source).ok() {
            copy(&source, &target)?;
        }
    }
    Ok(())
}

/// Puts the defence and its removal into the two branches of a condition.
fn apply(tree: &Path, mutation: &Mutation) -> Result<()> {
    let Mutation { name, file, text, replacement, .. } = mutation;
    let path = tree.join(file);
    let source = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
    if source.matches(text).count() != 1 {
        bail!(
            "{name}: `{text}` must occur exactly once in {file}; correct xtask/src/mutations/table.rs"
        );
    }
    let switched =
        format!("if crate::mutation::removes(\"{name}\") {{ {replacement} }} else {{ {text} }}");
    write(&path, &source.replace(text, &switched))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // A running program can be removed but not overwritten.
    let _ = fs::remove_file(to);
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Builds the integration tests from the unchanged sources. Returns the path of their program.
fn build_tests() -> Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--workspace", "--test", "it", "--no-run"]);
    let messages = shell::capture(cargo.args(["--message-format", "json"]))?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "it")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo reported no test program `it`")
}

/// Runs a test without a defence. Returns the exploits that did not end as expected. If the test
/// runs no exploits and fails, returns the name of the test.
fn who_notices(
    program: &Path,
    tests: &Path,
    removed: Option<&str>,
    (test, exploits): Asked,
) -> Result<BTreeSet<String>> {
    let named = match removed {
        Some(name) => program.with_extension(name),
        None => program.to_owned(),
    };
    if removed.is_some() {
        copy(program, &named)?;
    }
    let mut command = Command::new(tests);
    command
        .args(["--exact", test])
        .env("WARPGAUGE_BIN", &named)
        .env("WARPGAUGE_TEST_ROOT", shell::root())
        .env("WARPGAUGE_TEST_DEVICE", "emulator")
        .stderr(Stdio::null());
    if let Some(exploits) = exploits {
        command.env("WARPGAUGE_TEST_EXPLOITS", exploits.join(","));
    }
    let output = command.output().context("cannot start the integration tests")?;
    if removed.is_some() {
        fs::remove_file(&named).context("cannot remove a copy of the program")?;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("running 1 test") {
        bail!("the integration tests do not contain {test}:\n{text}");
    }
    let noticed: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("not as expected: "))
        .filter_map(|line| line.split_once(':').map(|(name, _)| name.to_owned()))
        .collect();
    match (output.status.success(), test == EXPLOITS) {
        (false, false) => Ok(BTreeSet::from([test.to_owned()])),
        (false, true) if noticed.is_empty() => bail!("the exploits did not run:\n{text}"),
        _ => Ok(noticed),
    }
}
