//! Adapts requests that are written for the CUDA Evaluation Server, which ignores unknown fields, fills in missing
//! ones and accepts strings as numbers. The main type is [`Adapter`], which changes the tree of a request. Each
//! change that the author may not expect becomes a [`RequestWarning`].

mod kernel;
mod known;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use warpgauge_document::{Document, DocumentError, PathSegment, path_text};
use warpgauge_model::nearest;

use super::{CompareRequest, EvaluateRequest, LegacyCompareRequest};
use known::KNOWN;

/// Maximum number of warnings for one request.
const MAX_WARNINGS: usize = 64;

/// Longest name of a field that a warning quotes, characters.
const MAX_QUOTED: usize = 100;

/// Part of a request that is ignored, or that was missing and was filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestWarning {
    /// Path in the request, e.g. `kernel.io.args[0].index`.
    pub path: String,
    /// Description of the ignored part, or of the value that was filled in.
    pub message: String,
}

/// A request that may be written for the CUDA Evaluation Server.
pub trait Compatible: DeserializeOwned {
    /// Changes the tree of a request before it is read.
    ///
    /// # Errors
    /// A name is near a known one, or there are too many warnings.
    fn adapt(document: &mut Document<'_>, adapter: &mut Adapter) -> Result<(), DocumentError>;

    /// Sets the warnings for the report.
    fn set_warnings(&mut self, warnings: Vec<RequestWarning>);
}

/// Changes the tree of a request and collects warnings.
#[derive(Default)]
pub struct Adapter {
    path: Vec<PathSegment>,
    warnings: Vec<RequestWarning>,
}

impl Adapter {
    pub(crate) fn into_warnings(self) -> Vec<RequestWarning> {
        self.warnings
    }

    /// Changes a part of the value at the current path.
    fn within(
        &mut self,
        segment: PathSegment,
        change: impl FnOnce(&mut Self) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        self.path.push(segment);
        let changed = change(self);
        self.path.pop();
        changed
    }

    /// Changes the entry of a map, if it has one with this name.
    fn entry(
        &mut self,
        map: &mut Document<'_>,
        name: &str,
        change: impl FnOnce(&mut Self, &mut Document<'_>) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        match map.entry_mut(name) {
            Some(value) => {
                self.within(PathSegment::Field(name.to_owned()), |adapter| change(adapter, value))
            }
            None => Ok(()),
        }
    }

    fn warn(&mut self, message: String) -> Result<(), DocumentError> {
        if self.warnings.len() >= MAX_WARNINGS {
            let message = format!(
                "more than {MAX_WARNINGS} fields of the request are unknown or missing; leave out unknown \
                 fields, and give each tensor that the kernel reads an `init`"
            );
            return Err(DocumentError::at_path(message, &self.path));
        }
        self.warnings.push(RequestWarning { path: path_text(&self.path), message });
        Ok(())
    }

    /// Removes fields that are not known. A name similar to a known one is an error, because it is probably misspelt.
    fn ignore_unknown(
        &mut self,
        map: &mut Document<'_>,
        known: &[String],
    ) -> Result<(), DocumentError> {
        for name in map.names() {
            if known.contains(&name) {
                continue;
            }
            map.remove(&name);
            let shown: String = name.chars().take(MAX_QUOTED).collect();
            let near = nearest(&name, known.iter().map(String::as_str)).map(str::to_owned);
            self.within(PathSegment::Field(shown.clone()), |adapter| match near {
                Some(near) => {
                    let message = format!("unknown field `{shown}` (did you mean `{near}`?)");
                    Err(DocumentError::at_path(message, &adapter.path))
                }
                None => adapter.warn(format!("`{shown}` is not a field here, and is ignored")),
            })?;
        }
        Ok(())
    }
}

/// Converts entries of a map from strings to numbers.
fn settle_numbers(map: &mut Document<'_>, names: &[&str]) {
    for name in names {
        if let Some(value) = map.entry_mut(name) {
            value.settle_number();
        }
    }
}

impl Compatible for EvaluateRequest {
    fn adapt(document: &mut Document<'_>, adapter: &mut Adapter) -> Result<(), DocumentError> {
        adapter.ignore_unknown(document, &KNOWN.evaluation)?;
        settle_numbers(document, &["num_trials", "timeout"]);
        adapter.entry(document, "kernel", |adapter, kernel| adapter.kernel(kernel, true))
    }

    fn set_warnings(&mut self, warnings: Vec<RequestWarning>) {
        self.warnings = warnings;
    }
}

impl Compatible for CompareRequest {
    fn adapt(document: &mut Document<'_>, adapter: &mut Adapter) -> Result<(), DocumentError> {
        two_kernels(document);
        adapter.ignore_unknown(document, &KNOWN.comparison)?;
        settle_numbers(document, &["num_trials", "timeout", "atol", "rtol"]);
        adapter.entry(document, "ref_kernel", |adapter, kernel| adapter.kernel(kernel, true))?;
        // A kernel without a launch uses the reference's, if there is one.
        let launch = document.entry("ref_kernel").and_then(|kernel| kernel.entry("io"));
        let has_launch = launch.is_some_and(|io| io.entry("launch").is_some());
        adapter
            .entry(document, "custom_kernel", |adapter, kernel| adapter.kernel(kernel, !has_launch))
    }

    fn set_warnings(&mut self, warnings: Vec<RequestWarning>) {
        self.warnings = warnings;
    }
}

impl Compatible for LegacyCompareRequest {
    fn adapt(document: &mut Document<'_>, adapter: &mut Adapter) -> Result<(), DocumentError> {
        adapter.ignore_unknown(document, &KNOWN.two_sources)?;
        settle_numbers(document, &["num_trials", "timeout"]);
        Ok(())
    }

    fn set_warnings(&mut self, warnings: Vec<RequestWarning>) {
        self.warnings = warnings;
    }
}

/// Converts the oldest form of a comparison, two sources, to a request with two kernels.
fn two_kernels(document: &mut Document<'_>) {
    if document.entry("ref_code").is_none() || document.entry("custom_code").is_none() {
        return;
    }
    for (code, kernel, kind) in
        [("ref_code", "ref_kernel", "torch"), ("custom_code", "custom_kernel", "torch_cuda")]
    {
        if let Some(source) = document.remove(code) {
            let kind = serde_json::Value::from(kind).into();
            document
                .insert(kernel, Document::map([("source_code", source), ("kernel_type", kind)]));
        }
    }
    if document.entry("timeout").is_none() {
        document.insert("timeout", serde_json::Value::from(super::legacy::default_timeout()));
    }
}

#[cfg(test)]
mod tests;
