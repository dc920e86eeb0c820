//! Measures how long a developer has to wait: from a fresh clone to the demo's verdict, from a
//! fresh clone to the end of the tests, and after a change in one file. Also measures the size of
//! the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::product;
use crate::shell;

/// Files that are changed for the measurement. For each file, the package whose tests are affected
/// first.
const LEAVES: [(&str, &str); 3] = [
    ("crates/core/gate/src/decide.rs", "warpgauge-gate"),
    ("crates/server/api/src/routes/kernels/operations.rs", "warpgauge-api"),
    ("crates/run/compile/src/describe.rs", "warpgauge-compile"),
];

/// Options of `bench build`.
#[derive(clap::Args)]
pub struct Options {
    /// Part of the measurements to run.
    #[arg(value_enum, default_value = "all")]
    part: Part,
}

/// A part of the measurements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// All parts below, one after another.
    All,
    /// `cargo xtask demo` from a fresh clone.
    Demo,
    /// `cargo xtask test` from a fresh clone.
    Test,
    /// The time to check and to test after a change in one file.
    Leaf,
    /// The size of the program and of its largest sections.
    Size,
}

/// A line of the printed table.
struct Row {
    what: String,
    figure: String,
}

/// Measures the parts and prints a table.
pub fn run(options: &Options) -> Result<()> {
    let wanted = |part| options.part == Part::All || options.part == part;
    let mut rows = Vec::new();
    // The crates are downloaded first, so that no measured time includes downloads.
    shell::run(shell::cargo().args(["fetch", "--locked"]))?;
    if wanted(Part::Demo) {
        let clone = Clone::new()?;
        let demo = clone.seconds(&["xtask", "demo"])?;
        rows.push(row("fresh clone → the demo's verdict", demo));
    }
    if wanted(Part::Test) {
        let clone = Clone::new()?;
        let test = clone.seconds(&["xtask", "test"])?;
        rows.push(row("fresh clone → `cargo xtask test` complete", test));
    }
    if wanted(Part::Leaf) {
        leaves(&mut rows)?;
    }
    if wanted(Part::Size) {
        sizes(&mut rows)?;
    }
    println!("\n{}\n", machine());
    println!("| what | figure |\n| --- | ---: |");
    for Row { what, figure } in rows {
        println!("| {what} | {figure} |");
    }
    Ok(())
}

fn row(what: &str, seconds: f64) -> Row {
    Row { what: what.to_owned(), figure: format!("{seconds:.1} s") }
}

/// A clone of the repository with a separate target directory. Dropping it removes the clone.
struct Clone {
    path: PathBuf,
}

impl Clone {
    fn new() -> Result<Self> {
        let path = product::target_dir()?.join("bench-build");
        if path.exists() {
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
        let mut git = Command::new("git");
        git.args(["clone", "--quiet", "--no-hardlinks"]).arg(shell::root()).arg(&path);
        shell::run(&mut git)?;
        Ok(Self { path })
    }

    /// Runs cargo in the clone. Returns the time that it took, seconds.
    fn seconds(&self, arguments: &[&str]) -> Result<f64> {
        let mut cargo = shell::cargo();
        cargo.current_dir(&self.path).env_remove("CARGO_TARGET_DIR").args(arguments);
        let began = Instant::now();
        shell::run(&mut cargo)?;
        Ok(began.elapsed().as_secs_f64())
    }
}

impl Drop for Clone {
    fn drop(&mut self) {
        // If this fails, the next measurement removes the directory.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Measures how long check and test take after a change in one file of this checkout. Everything
/// else has already been built.
fn leaves(rows: &mut Vec<Row>) -> Result<()> {
    let check = ["check", "-p", "warpgauge"];
    cargo(&check)?;
    for (file, package) in LEAVES {
        let test = ["test", "--quiet", "-p", package];
        cargo(&test)?;
        let changed = Changed::new(file)?;
        let checked = cargo(&check)?;
        let tested = cargo(&test)?;
        drop(changed);
        rows.push(row(&format!("change in `{file}` → `cargo {}`", check.join(" ")), checked));
        rows.push(row(
            &format!("change in `{file}` → build and run the tests of `{package}`"),
            tested,
        ));
    }
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<f64> {
    let began = Instant::now();
    shell::run(shell::cargo().args(arguments))?;
    Ok(began.elapsed().as_secs_f64())
}

/// A file to which a function was added. Dropping this restores the file.
struct Changed {
    path: PathBuf,
    before: String,
}

impl Changed {
    fn new(file: &str) -> Result<Self> {
        let path = shell::root().join(file);
        let before = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        let changed = format!(
            "/// Measured.\n#[allow(dead_code)]\nfn measured() -> u64 {{\n    {}\n}}\n",
            before.len()
        );
        // The function is inserted before the tests, which are at the end of the file.
        let at = before.find("#[cfg(test)]").unwrap_or(before.len());
        let text = format!("{}{changed}\n{}", &before[..at], &before[at..]);
        fs::write(&path, text).with_context(|| format!("cannot write {file}"))?;
        Ok(Self { path, before })
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.before) {
            eprintln!(
                "{} could not be restored: {error}; restore it with git",
                self.path.display()
            );
        }
    }
}

/// Measures the sizes of the released program and of its largest sections.
fn sizes(rows: &mut Vec<Row>) -> Result<()> {
    let program = product::build(product::Profile::Release)?;
    let bytes = fs::metadata(&program)?.len();
    rows.push(Row { what: "program, release".to_owned(), figure: megabytes(bytes) });
    for (section, bytes) in sections(&program)?.into_iter().take(6) {
        rows.push(Row { what: format!("section `{section}`"), figure: megabytes(bytes) });
    }
    Ok(())
}

/// Returns the sections that have content in the file, largest first.
fn sections(program: &Path) -> Result<Vec<(String, u64)>> {
    shell::require("size", "install binutils")?;
    let text = shell::capture(Command::new("size").args(["-A", "-d"]).arg(program))?;
    let mut sections: Vec<(String, u64)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, bytes) = (words.next()?, words.next()?.parse().ok()?);
            // `.bss` takes no space in the file.
            (name.starts_with('.') && name != ".bss").then(|| (name.to_owned(), bytes))
        })
        .collect();
    if sections.is_empty() {
        bail!("`size` listed no sections of {}", program.display());
    }
    sections.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(sections)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    format!("{cores} cores, {}", model.unwrap_or("unknown processor"))
}
