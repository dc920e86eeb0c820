//! Checks of the corpora in `tests/exploits` and `tests/legitimate`: this version accepts their contracts,
//! and the table of expected results is complete and uses existing codes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{ReasonCode, WeaknessCode};
use warpgauge_contract::{ContractLimits, EvaluateRequest};

use corpora::{Outcome, Row, Where};

#[path = "../../../../tests/corpora.rs"]
mod corpora;

/// Most elements of a contract: the emulator runs all of them in every test run.
const MOST_ELEMENTS: u64 = 1 << 16;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

fn table() -> BTreeMap<String, Row<ReasonCode, WeaknessCode>> {
    corpora::table(root())
}

fn contracts(corpus: &str) -> BTreeMap<String, (String, EvaluateRequest)> {
    let texts = corpora::contracts(root(), corpus).into_iter();
    let parsed = texts.map(|(name, text)| {
        let value: serde_json::Value =
            warpgauge_contract::parse(warpgauge_contract::BodyFormat::Yaml, text.as_bytes())
                .unwrap();
        let request = serde_path_to_error::deserialize(value)
            .unwrap_or_else(|error| panic!("{corpus}/{name}: {error}"));
        (name, (text, request))
    });
    parsed.collect()
}

#[test]
fn every_contract_is_valid_small_and_explained() {
    for corpus in ["exploits", "legitimate"] {
        for (name, (text, request)) in contracts(corpus) {
            assert_eq!(
                warpgauge_contract::validate(&request, &ContractLimits::default()),
                Ok(()),
                "{name}"
            );
            assert!(text.starts_with("# "), "{name} says nothing about itself");
            for arg in &request.kernel.io.as_ref().unwrap().args {
                let elements = arg.tensor_spec.iter().map(|t| t.shape.iter().product::<u64>());
                assert!(elements.max().unwrap_or(0) <= MOST_ELEMENTS, "{name}: {}", arg.name);
            }
        }
    }
    assert!(contracts("legitimate").len() >= 22);
}

#[test]
fn every_exploit_has_a_row_and_every_row_an_exploit() {
    let (table, contracts) = (table(), contracts("exploits"));
    let rows: BTreeSet<_> = table.keys().collect();
    assert_eq!(rows, contracts.keys().collect());
    for (name, row) in &table {
        let complete = match row.outcome {
            Outcome::Rejected => !row.codes.is_empty() && row.weak.is_empty(),
            Outcome::Weak | Outcome::Listed => row.codes.is_empty() && !row.weak.is_empty(),
            Outcome::NotCompiled => row.codes.is_empty() && row.weak.is_empty(),
            Outcome::Harmless => row.weak.is_empty(),
        };
        assert!(complete, "{name}: {row:?}");
        let (text, _) = &contracts[name];
        let header: Vec<_> = text.lines().take_while(|line| line.starts_with('#')).collect();
        let header = header.join(" ").replace('#', "");
        let named = row.codes.iter().all(|code| header.contains(code.name()));
        assert!(named, "{name}: the header names other codes than the table");
    }
}

/// Each reason that a kernel can cause is shown by an exploit. The exceptions: a kernel cannot make samples
/// unusable, memory runs out because of shapes, and exit codes and signals belong to whole programs.
#[test]
fn every_reason_is_shown_by_an_exploit() {
    let table = table();
    let shown: BTreeSet<_> = table.values().flat_map(|row| row.codes.clone()).collect();
    let others = [
        ReasonCode::OutOfMemory,
        ReasonCode::NoValidSamples,
        ReasonCode::ExitCode,
        ReasonCode::EndedBySignal,
    ];
    for code in ReasonCode::ALL {
        assert_eq!(shown.contains(&code), !others.contains(&code), "{code}");
    }
    let weak: BTreeSet<_> = table.values().flat_map(|row| row.weak.clone()).collect();
    assert_eq!(weak.len(), 6, "{weak:?}");
    assert!(table.values().any(|row| row.device == Where::Gpu));
}
