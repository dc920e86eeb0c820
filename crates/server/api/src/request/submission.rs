//! Parameters of a job that are not part of the request body: [`SubmissionParams`].

use poem::http::HeaderMap;
use poem::{FromRequest, Request, RequestBody};

use crate::error::ApiError;
use crate::tree::{Mapping, Value, parsed};
use warpgauge_model::FailureCode;
use warpgauge_service::webhook::WebhookPolicy;
use warpgauge_service::{Caller, JobSubmission};

/// Maximum length of an idempotency key and of a label, bytes.
pub(crate) const MAX_NAME_BYTES: usize = 255;

/// Valid priorities.
pub(crate) const PRIORITIES: std::ops::RangeInclusive<i16> = -100..=100;

/// Parameters of the operations that create a job. [`describe`] adds them to the OpenAPI document.
const PARAMETERS: &str = "
- {name: Idempotency-Key, in: header, required: false,
   description: 'Idempotency key of the request, 1 to 255 printable ASCII characters. Another request with the same
     key returns the same job, and a caller that disconnects does not cancel the job.',
   schema: {type: string, minLength: 1, maxLength: 255, pattern: '^[!-~]+$'}}
- {name: priority, in: query, required: false,
   description: 'Priority, -100 to 100; default 0. Jobs of higher priority run before others of the same caller.',
   schema: {type: integer, format: int32, minimum: -100, maximum: 100}}
- {name: label, in: query, required: false,
   description: 'Label of the job, by which lists can be filtered. At most 255 bytes, without control characters.',
   schema: {type: string, maxLength: 255}}
- {name: webhook, in: query, required: false,
   description: 'URL to which the server posts the end of the job, signed. The operator must allow its host.',
   schema: {type: string, format: uri, maxLength: 2048}}
";

/// Adds the parameters to an operation of the document.
pub(crate) fn describe(operation: &mut Mapping) {
    let list = operation.entry("parameters".into()).or_insert(Value::Sequence(vec![]));
    if let (Value::Sequence(list), Value::Sequence(added)) = (list, parsed(PARAMETERS)) {
        list.extend(added);
    }
}

/// A [`JobSubmission`] from the headers and the query.
pub(crate) struct SubmissionParams(pub(crate) JobSubmission);

impl<'a> FromRequest<'a> for SubmissionParams {
    async fn from_request(request: &'a Request, _: &mut RequestBody) -> poem::Result<Self> {
        let missing = || ApiError::internal("submission", "no caller or no policy is set");
        let (caller, policy) = (request.data::<Caller>(), request.data::<WebhookPolicy>());
        let caller = caller.ok_or_else(missing)?;
        let policy = policy.ok_or_else(missing)?;
        let query = Parameters::of(request)?;
        let wanted = Wanted {
            idempotency_key: header(request.headers()),
            priority: query.get("priority").map(|text| number(&text)).transpose()?,
            label: query.get("label"),
            webhook: query.get("webhook"),
        };
        Ok(Self(wanted.submission(caller, policy, "")?))
    }
}

/// Parameters of a job that are not checked yet.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) idempotency_key: Option<String>,
    pub(crate) priority: Option<i64>,
    pub(crate) label: Option<String>,
    pub(crate) webhook: Option<String>,
}

impl Wanted {
    /// Checks the parameters. Errors put `prefix` before the names of fields.
    pub(crate) fn submission(
        self,
        caller: &Caller,
        policy: &WebhookPolicy,
        prefix: &str,
    ) -> Result<JobSubmission, ApiError> {
        let at = |name: &str, code: FailureCode, what: String| {
            ApiError::field(&format!("{prefix}{name}"), code, format!("{prefix}{name}: {what}"))
        };
        // Outside a batch, the key is sent as a header.
        let key_name = if prefix.is_empty() { "Idempotency-Key" } else { "idempotency_key" };
        if let Some(key) = &self.idempotency_key
            && !((1..=MAX_NAME_BYTES).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            let what = format!("expected 1 to {MAX_NAME_BYTES} printable ASCII characters");
            return Err(at(key_name, FailureCode::InvalidIdempotencyKey, what));
        }
        let priority = self.priority.unwrap_or(0);
        let Some(priority) =
            i16::try_from(priority).ok().filter(|number| PRIORITIES.contains(number))
        else {
            let what =
                format!("expected {} to {}, got {priority}", PRIORITIES.start(), PRIORITIES.end());
            return Err(at("priority", FailureCode::OutOfRange, what));
        };
        if let Some(label) = &self.label
            && (label.len() > MAX_NAME_BYTES || label.chars().any(warpgauge_model::is_hidden))
        {
            let what = format!(
                "expected at most {MAX_NAME_BYTES} bytes, without control characters and characters \
                 that change the direction of writing"
            );
            return Err(at("label", FailureCode::InvalidLabel, what));
        }
        if let Some(url) = &self.webhook {
            let refused = |why: warpgauge_service::webhook::WebhookRefusal| {
                at("webhook", FailureCode::WebhookRefused, why.to_string())
            };
            policy.check(url).map_err(refused)?;
        }
        Ok(JobSubmission {
            caller: caller.clone(),
            job_id: None,
            idempotency_key: self.idempotency_key,
            priority,
            label: self.label.filter(|label| !label.is_empty()),
            webhook: self.webhook,
            once: false,
        })
    }
}

fn header(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("idempotency-key")?;
    // A value that is not text fails the following check.
    Some(value.to_str().unwrap_or_default().to_owned())
}

/// The decoded query parameters.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn of(request: &Request) -> Result<Self, ApiError> {
        request.params().map(Self).map_err(|error| invalid("query", &error.to_string()))
    }

    /// Returns the first value of a parameter.
    fn get(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }
}

fn number(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_| invalid("priority", "expected a whole number"))
}

fn invalid(name: &str, what: &str) -> ApiError {
    ApiError::field(name, FailureCode::InvalidParameter, format!("{name}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_config::{Config, DEFAULT_TOML};

    fn checked(wanted: Wanted) -> Result<JobSubmission, ApiError> {
        let mut config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        config.server.webhook_hosts = vec!["ci.example".into()];
        config.server.webhook_secret = "0123456789abcdef".into();
        wanted.submission(
            &Caller::local(),
            &WebhookPolicy::new(&config.server.webhook_hosts, &config.server.webhook_secret),
            "jobs[3].",
        )
    }

    #[test]
    fn what_does_not_fit_says_where() {
        let text = |length: usize| Some("x".repeat(length));
        let cases = [
            (Wanted { idempotency_key: text(0), ..Wanted::default() }, "jobs[3].idempotency_key"),
            (Wanted { idempotency_key: text(256), ..Wanted::default() }, "jobs[3].idempotency_key"),
            (
                Wanted { idempotency_key: Some("a b".into()), ..Wanted::default() },
                "jobs[3].idempotency_key",
            ),
            (Wanted { priority: Some(101), ..Wanted::default() }, "jobs[3].priority"),
            (Wanted { priority: Some(i64::MIN), ..Wanted::default() }, "jobs[3].priority"),
            (Wanted { label: text(256), ..Wanted::default() }, "jobs[3].label"),
            (Wanted { label: Some("a\nb".into()), ..Wanted::default() }, "jobs[3].label"),
            (
                Wanted { webhook: Some("http://10.0.0.1/".into()), ..Wanted::default() },
                "jobs[3].webhook",
            ),
        ];
        for (wanted, path) in cases {
            let shown = format!("{wanted:?}");
            let error = checked(wanted).expect_err(&shown);
            assert_eq!(error.body().path.as_deref(), Some(path), "{shown}");
        }
    }

    #[test]
    fn what_fits_is_taken() {
        let params = checked(Wanted {
            idempotency_key: Some("k".into()),
            priority: Some(-100),
            label: Some("nächtlich".into()),
            webhook: Some("https://ci.example/hook?job=1".into()),
        });
        let params = params.unwrap();
        assert_eq!((params.priority, params.label.as_deref()), (-100, Some("nächtlich")));
        assert_eq!(checked(Wanted::default()).unwrap(), JobSubmission::local());
    }

    #[test]
    fn the_query_is_decoded() {
        let uri = "/evaluate?wait=false&label=a%20b+c&label=other&webhook=https%3A%2F%2Fh%2F";
        let request = Request::builder().uri_str(uri).finish();
        let query = Parameters::of(&request).unwrap();
        assert_eq!(query.get("label").as_deref(), Some("a b c"));
        assert_eq!(query.get("webhook").as_deref(), Some("https://h/"));
        assert_eq!(query.get("priority"), None);
    }
}
