//! Reads the record of skipped tests, which `tests/support/needs.rs` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Environment variable that contains the path of the file in which tests record that they were
/// skipped. `tests/support/needs.rs` reads it.
pub const VARIABLE: &str = "WARPGAUGE_TESTS_SKIPPED";

/// The record of the tests that were skipped in one run.
pub struct Record(PathBuf);

impl Record {
    /// Creates an empty record in cargo's target directory.
    pub fn new(target: &Path) -> Result<Self> {
        let directory = target.join("xtask");
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let record = Self(directory.join("skipped.txt"));
        fs::write(&record.0, "").with_context(|| format!("cannot write {}", record.0.display()))?;
        Ok(record)
    }

    /// Returns the path of the file in which tests record that they were skipped.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Prints a summary of the record.
    pub fn tell(&self) -> Result<()> {
        let text = fs::read_to_string(&self.0)
            .with_context(|| format!("cannot read {}", self.0.display()))?;
        println!("\n{}", summary(&text)?);
        if !text.is_empty() {
            println!("their names are in {}", self.0.display());
        }
        Ok(())
    }
}

/// Returns how many tests were skipped, completely or in part. The tests are grouped by what they
/// need.
///
/// # Errors
///
/// A line is not a valid record. The error contains the line.
pub fn summary(record: &str) -> Result<String> {
    let (mut whole, mut part) = (Needs::new(), Needs::new());
    for (index, line) in record.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let needs = match fields.first() {
            Some(&"skipped") => &mut whole,
            Some(&"in part") => &mut part,
            _ => anyhow::bail!("line {} of the record of skipped tests: {line:?}", index + 1),
        };
        let [_, test, what] = fields[..] else {
            anyhow::bail!("line {} of the record of skipped tests: {line:?}", index + 1);
        };
        // A test that is recorded several times counts once.
        needs.entry(what).or_default().insert(test);
    }
    let mut text = format!("skipped: {}", list(&whole));
    if !part.is_empty() {
        let _ = write!(text, "\nskipped in part: {}", list(&part));
    }
    Ok(text)
}

/// Names of tests, grouped by what the tests need.
type Needs<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns a text such as `23 tests: 19 need a GPU, 4 need PostgreSQL`. The largest group comes
/// first.
fn list(needs: &Needs) -> String {
    // A test that needs several things is in several groups.
    let all: BTreeSet<&str> = needs.values().flatten().copied().collect();
    let mut groups: Vec<_> = needs.iter().map(|(what, tests)| (tests.len(), *what)).collect();
    groups.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let groups = groups.iter().map(|(count, what)| {
        let need = if *count == 1 { "needs" } else { "need" };
        format!("{count} {need} {what}")
    });
    match all.len() {
        0 => "no tests".to_owned(),
        1 => format!("1 test: {}", groups.collect::<Vec<_>>().join(", ")),
        count => format!("{count} tests: {}", groups.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn tests_are_counted_by_what_they_need() {
        let record = "skipped\tit::a\tPostgreSQL\nskipped\tit::b\ta GPU\nin part\tit::c\ta GPU\n\
                      skipped\tit::d\ta GPU\nskipped\tit::b\ta GPU\n";
        assert_eq!(
            summary(record).unwrap(),
            "skipped: 3 tests: 2 need a GPU, 1 needs PostgreSQL\nskipped in part: 1 test: 1 needs a GPU"
        );
        assert_eq!(summary("").unwrap(), "skipped: no tests");
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        for broken in ["skipped\tit::a\n", "ignored\tit::a\ta GPU\n", "\n", "skipped\ta\tb\tc\n"] {
            let error = summary(&format!("skipped\tit::a\ta GPU\n{broken}")).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }
}
