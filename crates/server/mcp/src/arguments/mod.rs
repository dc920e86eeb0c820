//! Arguments of the tools. A contract may be given in one of these forms:
//!
//! - `request`, an object: the body of `POST /evaluate` or `POST /compare`. The CUDA Evaluation
//!   Server's tools use this form;
//! - `contract_yaml`, the same body as text;
//! - the fields of that body as arguments;
//! - [`flat`]: kernels in separate arguments (`kernel_source`, `kernel_type`, `io_contract`, …),
//!   the form of that server's older tools.

mod flat;

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::MAX_WAIT;
use super::backend::{JobBackendError, JobOrder};
use super::resources::Part;
use super::tools::ToolName;
use warpgauge_contract::{
    BodyFormat, CompareRequest, Compatible, EvaluateRequest, parse_compatible,
};
use warpgauge_service::JobRequest;

/// Maximum length of a label and of an idempotency key, bytes, as in the HTTP API.
const MAX_NAME_BYTES: usize = 255;

/// Set of metrics that is used if the caller requests none. The roofline and the advice need it.
const EXPLAIN: &str = "explain";

/// A job to create, and the time for which the call waits for the job.
#[derive(Debug)]
pub(crate) struct JobCall {
    pub(crate) order: JobOrder,
    pub(crate) wait: Duration,
}

/// A query about a job.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) job_id: String,
    pub(crate) wait: Duration,
    pub(crate) part: Option<Part>,
}

/// Parses the arguments of a tool that creates a job.
pub(crate) fn job(
    tool: ToolName,
    mut arguments: Map<String, Value>,
) -> Result<JobCall, JobBackendError> {
    let wait = wait(&mut arguments, MAX_WAIT)?;
    let label = name(&mut arguments, "label", |c| !warpgauge_model::is_hidden(c))?;
    let idempotency_key = name(&mut arguments, "idempotency_key", |c| c.is_ascii_graphic())?;
    let asked = if tool == ToolName::Profile { asked_metrics(&mut arguments)? } else { None };
    let body = body(tool, arguments)?;
    let request = request(tool, &body, asked)?;
    Ok(JobCall { order: JobOrder { request, label, idempotency_key }, wait })
}

/// Parses the arguments of `get_job`.
pub(crate) fn question(mut arguments: Map<String, Value>) -> Result<Question, JobBackendError> {
    let wait = wait(&mut arguments, Duration::ZERO)?;
    let mut text = |field: &str| match arguments.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => {
            Err(JobBackendError::at(field, "wrong_type", format!("{field}: expected a string")))
        }
    };
    let (job_id, read, kernel) = (text("job_id")?, text("read")?, text("kernel")?);
    let job_id = job_id.ok_or_else(|| {
        let what = "job_id: missing; set it to the id in the answer of another tool";
        JobBackendError::at("job_id", "missing_field", what)
    })?;
    if let Some(unknown) = arguments.keys().next() {
        return Err(unknown_argument(unknown, "job_id, wait_s, read, kernel"));
    }
    let part = read.map(|read| Part::named(&read, kernel)).transpose()?;
    Ok(Question { job_id, wait, part })
}

pub(crate) fn unknown_argument(name: &str, known: &str) -> JobBackendError {
    let name: String = name.chars().take(64).collect();
    let message = format!("{name}: there is no such argument; the arguments are {known}");
    JobBackendError::at(&name, "unknown_field", message)
}

/// The body of a request to the HTTP API.
struct Body {
    /// Whether the request is for `POST /compare`.
    compares: bool,
    format: BodyFormat,
    text: String,
}

/// Finds the contract in the arguments. JSON is converted back to text, because the parser for
/// bodies reports paths and enforces all limits.
fn body(tool: ToolName, mut arguments: Map<String, Value>) -> Result<Body, JobBackendError> {
    let compares = tool == ToolName::Compare;
    let json = |value: &Value| Body { compares, format: BodyFormat::Json, text: value.to_string() };
    // Some clients send every argument, with null for those that are not used.
    arguments.retain(|_, value| !value.is_null());
    let given = ["request", "contract_yaml"].map(|form| arguments.remove(form));
    match (given, arguments.is_empty()) {
        ([None, None], true) => Err(JobBackendError::at(
            "request",
            "missing_field",
            "request: missing; set the contract as `request`, or as text in `contract_yaml`",
        )),
        ([Some(Value::String(text)), None] | [None, Some(Value::String(text))], true) => {
            Ok(Body { compares, format: BodyFormat::Yaml, text })
        }
        ([Some(request @ Value::Object(_)), None], true) => Ok(json(&request)),
        ([Some(_), None], true) => {
            Err(JobBackendError::at("request", "wrong_type", "request: expected an object"))
        }
        ([None, Some(_)], true) => Err(JobBackendError::at(
            "contract_yaml",
            "wrong_type",
            "contract_yaml: expected a string",
        )),
        ([None, None], false) if flat::is(&arguments) => {
            let body = flat::body(arguments)?;
            // A kernel that has a reference is compared, even if another tool was called.
            Ok(Body { compares: body.get("ref_kernel").is_some(), ..json(&body) })
        }
        ([None, None], false) => Ok(json(&Value::Object(arguments))),
        _ => {
            let more = arguments.keys().next().map_or("contract_yaml", String::as_str);
            let more: String = more.chars().take(64).collect();
            let message = format!(
                "{more}: the contract is given in two forms; use only one of `request`, `contract_yaml`, and \
                 the fields of the contract"
            );
            Err(JobBackendError::at(&more, "contradictory_arguments", message))
        }
    }
}

fn request(
    tool: ToolName,
    body: &Body,
    asked: Option<Value>,
) -> Result<JobRequest, JobBackendError> {
    fn read<T: Compatible>(body: &Body) -> Result<T, JobBackendError> {
        Ok(parse_compatible(body.format, body.text.as_bytes())?)
    }
    if body.compares {
        return Ok(JobRequest::Compare(Box::new(read::<CompareRequest>(body)?)));
    }
    let mut request: EvaluateRequest = read(body)?;
    if tool == ToolName::Profile {
        let mut profile = request.profile.take().unwrap_or_default();
        if let Some(asked) = asked {
            let asked: warpgauge_contract::ProfileSpec = warpgauge_document::from_value(asked)
                .map_err(|error| {
                    JobBackendError::at("metrics", "wrong_type", format!("metrics, tools: {error}"))
                })?;
            if !asked.metrics.is_empty() {
                profile.metrics = asked.metrics;
            }
            if !asked.tools.is_empty() {
                profile.tools = asked.tools;
            }
        }
        if profile.metrics.is_empty() {
            profile.metrics.push(EXPLAIN.to_owned());
        }
        request.profile = Some(profile);
    }
    Ok(JobRequest::Evaluate(Box::new(request)))
}

/// Returns the arguments `metrics` and `tools` of `profile_kernel`, as the contract's `profile`.
fn asked_metrics(arguments: &mut Map<String, Value>) -> Result<Option<Value>, JobBackendError> {
    let mut asked = Map::new();
    for field in ["metrics", "tools"] {
        match arguments.remove(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(names)) => {
                let names: Vec<&str> = names.split(',').map(str::trim).collect();
                asked.insert(field.to_owned(), json!(names));
            }
            Some(names) => {
                asked.insert(field.to_owned(), names);
            }
        }
    }
    Ok((!asked.is_empty()).then_some(Value::Object(asked)))
}

fn wait(
    arguments: &mut Map<String, Value>,
    default: Duration,
) -> Result<Duration, JobBackendError> {
    let most = MAX_WAIT.as_secs_f64();
    match arguments.remove("wait_s") {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value
            .as_f64()
            .filter(|seconds| (0.0..=most).contains(seconds))
            .map(Duration::from_secs_f64)
            .ok_or_else(|| {
                let message = format!("wait_s: expected 0 to {most} seconds");
                JobBackendError::at("wait_s", "out_of_range", message)
            }),
    }
}

pub(crate) fn name(
    arguments: &mut Map<String, Value>,
    field: &str,
    allowed: fn(char) -> bool,
) -> Result<Option<String>, JobBackendError> {
    let value = match arguments.remove(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let text = value
        .as_str()
        .filter(|text| (1..=MAX_NAME_BYTES).contains(&text.len()) && text.chars().all(allowed));
    let text = text.ok_or_else(|| {
        let message = format!("{field}: expected 1 to {MAX_NAME_BYTES} bytes of printable text");
        JobBackendError::at(field, "invalid_value", message)
    })?;
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests;
