//! Arguments of `import_report`, and the errors of reports that cannot be read. The main type is
//! [`ImportCall`].

use base64::Engine as _;
use serde_json::{Map, Value};

use crate::arguments;
use crate::backend::JobBackendError;
use warpgauge_metrics::import::{self, Changes, ImportError, Imported};
use warpgauge_metrics::{Selection, select, unknown_name};

/// Maximum number of requested metrics, and maximum length of a name, as in a contract.
const MAX_METRICS: usize = 256;

/// Number of characters at the beginning of a text that show whether it is base64.
const HEAD: usize = 64;

/// A report to read.
pub(super) struct ImportCall {
    content: String,
    /// File name of the report. It may identify the table of Nsight Systems.
    name: String,
    /// Text of an earlier report, which `content` is compared with.
    against: Option<String>,
    metrics: Vec<String>,
}

/// A parsed report, with its differences from an earlier one.
pub(super) struct Loaded {
    pub(super) report: Imported,
    pub(super) changes: Option<Changes>,
}

/// Parses the arguments of a call.
pub(super) fn parse(mut given: Map<String, Value>) -> Result<ImportCall, JobBackendError> {
    let content = text(&mut given, "content")?;
    let content = content.ok_or_else(|| {
        let what = "content: missing; set it to the text of the report, such as the output of \
                    `ncu --import FILE --csv --page raw --print-units base`";
        JobBackendError::at("content", "missing_field", what)
    })?;
    let against = text(&mut given, "against")?;
    let name = arguments::name(&mut given, "name", |c| !warpgauge_model::is_hidden(c))?;
    let metrics = names(&mut given)?;
    if let Some(unknown) = given.keys().next() {
        return Err(arguments::unknown_argument(unknown, "content, name, against, metrics"));
    }
    Ok(ImportCall { content, name: name.unwrap_or_default(), against, metrics })
}

/// Takes a text that must not be empty.
fn text(given: &mut Map<String, Value>, field: &str) -> Result<Option<String>, JobBackendError> {
    match given.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => {
            let what = format!("{field}: empty; check that the tool wrote its output to the file");
            Err(JobBackendError::at(field, "invalid_value", what))
        }
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => {
            let what = format!("{field}: expected the text of a report, as a string");
            Err(JobBackendError::at(field, "wrong_type", what))
        }
    }
}

/// Takes the names of metrics, which are a list, or a text with commas.
fn names(given: &mut Map<String, Value>) -> Result<Vec<String>, JobBackendError> {
    let names: Option<Vec<String>> = match given.remove("metrics") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(names)) => {
            Some(names.split(',').map(|name| name.trim().to_owned()).collect())
        }
        Some(Value::Array(names)) => {
            names.into_iter().map(|name| name.as_str().map(str::to_owned)).collect()
        }
        Some(_) => None,
    };
    let names = names.ok_or_else(|| {
        let what = "metrics: expected a list of names of metrics, groups or sets";
        JobBackendError::at("metrics", "wrong_type", what)
    })?;
    let fits = |name: &String| (1..=MAX_METRICS).contains(&name.len());
    if names.len() > MAX_METRICS || !names.iter().all(fits) {
        let what = format!("metrics: at most {MAX_METRICS} names of 1 to {MAX_METRICS} bytes each");
        return Err(JobBackendError::at("metrics", "too_large", what));
    }
    Ok(names)
}

impl ImportCall {
    /// Returns whether the caller requested values of metrics.
    pub(super) fn with_metrics(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// Parses the report and the earlier one, if given. Errors name the argument at fault.
    pub(super) fn load(self) -> Result<Loaded, JobBackendError> {
        let selection = select(&self.metrics);
        if let Some(name) = selection.unknown.first() {
            let index = self.metrics.iter().position(|one| one == name).unwrap_or_default();
            let path = format!("metrics[{index}]");
            let what = format!("{path}: {}", unknown_name(name));
            return Err(JobBackendError::at(&path, "unknown_metric", what));
        }
        let report = load("content", self.content, &self.name, &selection)?;
        let before = self.against.map(|text| load("against", text, &self.name, &selection));
        let changes = before.transpose()?.map(|before| import::changes(&before, &report));
        let changes = changes.transpose().map_err(|error| {
            JobBackendError::at("against", "invalid_value", format!("against: {error}"))
        })?;
        Ok(Loaded { report, changes })
    }
}

fn load(
    field: &str,
    text: String,
    name: &str,
    selection: &Selection,
) -> Result<Imported, JobBackendError> {
    let binary = is_base64_of_binary(&text);
    import::import_bytes(text.into_bytes(), name, selection).map_err(|error| {
        let what = match error {
            ImportError::UnknownContent if binary => {
                "this is base64 of a binary file; export the report as text with `ncu --import FILE --csv --page \
                 raw --print-units base` or `nsys stats --format csv --force-export=true FILE`"
                    .to_owned()
            }
            ImportError::OtherFormat { .. } => {
                format!("{error} (import_report reads text only)")
            }
            error => error.to_string(),
        };
        JobBackendError::at(field, "invalid_value", format!("{field}: {what}"))
    })
}

/// Returns whether a text is base64 of a file in a format that cannot be read.
fn is_base64_of_binary(text: &str) -> bool {
    let Some(head) = text.trim_start().get(..HEAD) else { return false };
    let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(head) else { return false };
    let parsed = import::import_bytes(bytes, "", &Selection::default());
    matches!(parsed, Err(ImportError::OtherFormat { .. }))
}
