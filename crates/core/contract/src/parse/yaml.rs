//! YAML bodies.

use serde::de::DeserializeOwned;
use serde_saphyr::options::AliasLimits;
use serde_saphyr::{Budget, Error, Options};

use warpgauge_document::{Document, DocumentFormat, path_text};

use super::{Adapt, MAX_DEPTH, MAX_VALUES, ParseError, data_error, data_error_code};

use warpgauge_model::FailureCode;

/// Maximum number of bytes that aliases may repeat. An alias can repeat at most the whole document,
/// so the limit for repeated nodes is this number divided by the document's length. The limit is 0
/// for documents of more than 32 MiB.
const MAX_REPEATED_BYTES: usize = 32 << 20;

/// Maximum number of repeated nodes in a document of any length.
const MAX_REPEATED_NODES: usize = 20_000;

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8], adapt: Adapt<'_>) -> Result<T, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, error))?;
    let mut document = Document::parse_yaml(text, || options(text.len()))
        .map_err(|unparsed| describe(&unparsed.error).at_path(&path_text(&unparsed.path)))?;
    adapt(&mut document).and_then(|()| document.read(DocumentFormat::Yaml)).map_err(|error| {
        let described = data_error(&error);
        match error.place() {
            Some(place) => described.at_line(place.line.into(), place.column.into()),
            None => described,
        }
    })
}

fn options(length: usize) -> Options {
    let repeated = (MAX_REPEATED_BYTES / length.max(1)).min(MAX_REPEATED_NODES);
    let mut budget = Budget::default();
    budget.max_depth = MAX_DEPTH;
    budget.flow_nesting_limit = MAX_DEPTH;
    budget.max_documents = 1;
    budget.max_nodes = MAX_VALUES;
    budget.max_aliases = repeated;
    budget.max_recorded_anchor_events = MAX_REPEATED_NODES;
    budget.max_recorded_anchor_bytes = MAX_REPEATED_BYTES;
    // Scalars are no longer than the body, whose size the caller bounds.
    budget.max_total_scalar_bytes = usize::MAX;
    // The number of repeated nodes is bounded above; the ratio would reject legitimate documents.
    budget.enforce_alias_anchor_ratio = false;
    let mut aliases = AliasLimits::default();
    aliases.max_total_replayed_events = repeated;
    aliases.max_replay_stack_depth = 8;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits = aliases;
    options.with_snippet = false;
    // In YAML 1.1 an argument called `n` or `y` is a boolean; in YAML 1.2 only `true` and `false`
    // are.
    options.strict_booleans = true;
    options
}

fn describe(error: &Error) -> ParseError {
    let described = match error.without_snippet() {
        Error::AliasError { error: inner, .. } => return describe(inner),
        Error::Budget { breach, .. } => over_budget(&format!("{breach:?}")),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => ParseError::new(
            FailureCode::TooLarge,
            "YAML aliases repeat too much of the document; write the repeated part out",
        ),
        Error::Eof { .. } => ParseError::new(
            FailureCode::TruncatedBody,
            "the YAML body ends too early; it may be cut off",
        ),
        Error::DuplicateMappingKey { key, .. } => ParseError::new(
            FailureCode::DuplicateField,
            format!("duplicate field `{}`", key.as_deref().unwrap_or("?")),
        ),
        Error::Message { msg, .. } => ParseError::new(data_error_code(msg), msg.as_str()),
        Error::MultipleDocuments { .. } => ParseError::new(
            FailureCode::MalformedYaml,
            "more than one YAML document; send one document per request",
        ),
        other => malformed(other),
    };
    match error.location() {
        Some(place) => described.at_line(place.line(), place.column()),
        None => described,
    }
}

/// Returns a syntax error. Its code is that of too deep nesting if the message mentions nesting or
/// recursion.
fn malformed(error: &Error) -> ParseError {
    let mut text = error.to_string();
    if let Some(place) = error.location() {
        let suffix = format!(" at line {}, column {}", place.line(), place.column());
        text = text.replace(&suffix, "");
    }
    let code = if text.contains("nesting") || text.contains("recursion") {
        FailureCode::TooDeep
    } else {
        FailureCode::MalformedYaml
    };
    ParseError::new(code, format!("not YAML: {text}"))
}

fn over_budget(breach: &str) -> ParseError {
    if breach.contains("Depth") || breach.contains("Nesting") {
        let message = format!("the body nests deeper than {MAX_DEPTH} levels");
        return ParseError::new(FailureCode::TooDeep, message);
    }
    let message = format!(
        "the YAML document exceeds a limit ({breach}); send data as base64 and write aliases out"
    );
    ParseError::new(FailureCode::TooLarge, message)
}

fn invalid_utf8(bytes: &[u8], error: std::str::Utf8Error) -> ParseError {
    let good = &bytes[..error.valid_up_to()];
    let line = good.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
    let column = good.iter().rev().take_while(|&&byte| byte != b'\n').count() as u64 + 1;
    ParseError::new(FailureCode::MalformedYaml, "not YAML: the text is not UTF-8")
        .at_line(line, column)
}
