//! The corpora of `tests/exploits` and `tests/legitimate`, and the table of what must come of each
//! exploit. Read by the unit tests that check the corpora, and by the integration tests that run
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use warpgauge_contract::{BodyFormat, parse};

/// How an exploit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Rejected,
    Weak,
    Listed,
    NotCompiled,
    Harmless,
}

/// Where that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    Any,
    Gpu,
    Emulator,
}

/// A row of `expected.yaml`, which says what its fields mean. The codes are known to the unit tests
/// as what they are, and to the integration tests as the words on the wire.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(deserialize = "Code: Deserialize<'de>, Weakness: Deserialize<'de>")
)]
pub struct Row<Code, Weakness> {
    pub outcome: Outcome,
    pub codes: Vec<Code>,
    pub device: Where,
    #[serde(default)]
    pub weak: Vec<Weakness>,
}

/// The rows by exploit; `root` is the repository, or the bundle that stands for it.
pub fn table<Code, Weakness>(root: &Path) -> BTreeMap<String, Row<Code, Weakness>>
where
    Code: DeserializeOwned,
    Weakness: DeserializeOwned,
{
    let text = fs::read_to_string(root.join("tests/exploits/expected.yaml")).unwrap();
    parse(BodyFormat::Yaml, text.as_bytes()).unwrap()
}

/// The texts of a corpus's contracts by name.
pub fn contracts(root: &Path, corpus: &str) -> BTreeMap<String, String> {
    let directory = root.join("tests").join(corpus);
    let files = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let named = files.map(|file| {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).unwrap())
    });
    named.filter(|(name, _)| name != "expected").collect()
}
