//! Runs other programs.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Returns the root of the repository from which this program was built.
pub fn root() -> &'static Path {
    // The manifest of xtask is one level below the root.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns the `cargo` program that started this program, or `cargo` from `PATH`.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // `cargo run` sets variables that describe this package. If they were inherited, build scripts
    // that depend on them, such as ring's, would run again whenever cargo is started in another
    // way.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_a_package) {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns whether cargo sets this variable in order to describe a package.
fn describes_a_package(name: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Returns a command as one line for messages: the name of the program, and its arguments without quotes.
pub fn describe(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name();
    let mut text = name.unwrap_or(command.get_program()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        let _ = write!(text, " {}", argument.to_string_lossy());
    }
    text
}

/// Prints a command and runs it. Fails if the command fails.
pub fn run(command: &mut Command) -> Result<()> {
    let text = describe(command);
    eprintln!("$ {text}");
    let status = command.status().with_context(|| format!("cannot start `{text}`"))?;
    if !status.success() {
        bail!("`{text}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output. The standard error of the command is not
/// captured.
pub fn capture(command: &mut Command) -> Result<String> {
    let text = describe(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{text}`"))?;
    if !output.status.success() {
        bail!("`{text}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of `{text}` is not UTF-8"))
}

/// Finds a program in `PATH`.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let program = program.as_ref();
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Returns whether PostgreSQL's `initdb` is in `PATH` or in Debian's installation folder.
pub fn has_postgres() -> bool {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    debian.map(|version| version.path().join("bin/initdb")).any(|program| program.is_file())
        || find("initdb").is_some()
}

/// Finds a program in `PATH`. If it is missing, the error contains advice.
pub fn require(program: &str, advice: &str) -> Result<PathBuf> {
    find(program).with_context(|| format!("`{program}` is not installed; {advice}"))
}

/// Returns whether this process runs as root in CI and `apt-get` exists, so that it may install
/// system packages.
pub fn may_install_packages() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true") && is_root() && find("apt-get").is_some()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// The named steps of a task. Dropping this prints the time that each step took.
#[derive(Default)]
pub struct Steps {
    done: Vec<(String, Duration)>,
}

impl Steps {
    /// Prints the name of a step and runs it.
    pub fn step<T>(&mut self, name: &str, action: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let result = action().with_context(|| name.to_owned());
        self.done.push((name.to_owned(), start.elapsed()));
        result
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        eprintln!();
        for (name, time) in &self.done {
            eprintln!("{:>7.1} s  {name}", time.as_secs_f64());
        }
    }
}
