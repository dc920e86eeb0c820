//! The page on which a user submits a kernel, and the form that it sends.

use poem::http::{StatusCode, header};
use poem::{IntoResponse, Request, Response};
use tokio::runtime::Handle;

use crate::blocking::run_blocking;
use crate::error::ApiError;
use crate::request::body::{self, Pieces};
use crate::request::form::{self, MultipartForm};
use crate::request::parsed_body::declared;
use crate::request::submission::Wanted;
use crate::response::html::{HtmlReply, SUBMIT, links};
use warpgauge_code::infer::{self, Wishes};
use warpgauge_contract::{BodyFormat, CompileRequest};
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_page::{Links, Submission};
use warpgauge_report::CompileResponse;
use warpgauge_service::webhook::WebhookPolicy;
use warpgauge_service::{Caller, JobRequest, ServiceError, Services};
use warpgauge_watch::{EvaluatorError, FileRejection, infer_file, request_with};

/// Maximum size of a form, bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 16;

/// Kernels that fill the form: name, language, source, contract, and the file and source of the
/// reference.
const EXAMPLES: [(&str, &str, &str, &str, [&str; 2]); 3] = [
    (
        "vector_add",
        "cu",
        include_str!("../../../../../kernels/vector_add/kernel.cu"),
        include_str!("../../../../../kernels/vector_add/contract.yaml"),
        ["reference.cu", include_str!("../../../../../kernels/vector_add/reference.cu")],
    ),
    (
        "triton_softmax",
        "py",
        include_str!("../../../../../kernels/triton_softmax/kernel.py"),
        include_str!("../../../../../kernels/triton_softmax/contract.yaml"),
        ["reference.cu", include_str!("../../../../../kernels/triton_softmax/reference.cu")],
    ),
    (
        "torch_softplus",
        "cu",
        include_str!("../../../../../kernels/torch_softplus/kernel.cu"),
        include_str!("../../../../../kernels/torch_softplus/contract.yaml"),
        ["reference.py", include_str!("../../../../../kernels/torch_softplus/reference.py")],
    ),
];

const NAMES: [&str; 3] = [EXAMPLES[0].0, EXAMPLES[1].0, EXAMPLES[2].0];

/// Writes the page with an empty form, or with an example.
pub(super) fn page(example: Option<&str>, links: &Links) -> Result<String, ApiError> {
    let Some(name) = example else {
        return Ok(warpgauge_page::submit(
            Submission { examples: &NAMES, ..Submission::default() },
            links,
        ));
    };
    let found = EXAMPLES.iter().find(|(known, ..)| *known == name);
    let Some((_, language, source, contract, [file, reference])) = found else {
        let text =
            format!("example: there is none of this name; the examples are {}", NAMES.join(", "));
        return Err(ApiError::field("example", FailureCode::InvalidParameter, text));
    };
    // A form has no files beside it, so the contract contains the reference.
    let quoted = serde_json::Value::from(*reference).to_string();
    let contract =
        contract.replace(&format!("source_file: {file}"), &format!("source_code: {quoted}"));
    let submission = Submission {
        language,
        source,
        contract: &contract,
        examples: &NAMES,
        ..Submission::default()
    };
    Ok(warpgauge_page::submit(submission, links))
}

/// Content of the form.
#[derive(Debug, Default)]
struct Sent {
    language: String,
    source: String,
    contract: String,
    label: String,
    /// Whether only a contract is requested.
    infers: bool,
}

/// Answers the form: redirects to the page of the accepted job, or writes the form again with the
/// reason why the kernel was not accepted.
pub(crate) async fn sent(mut request: Request, service: &Services) -> Result<Response, ApiError> {
    let caller = request.data::<Caller>().cloned().ok_or_else(ApiError::without_key)?;
    let body = request.take_body();
    let mut sent = read(&request, body).await?;
    let links = links(SUBMIT);
    let answered = match sent.infers {
        true => contract(&sent, service, &caller).await.map(|(text, assumed)| {
            sent.contract = text;
            Answer::Form { assumed, error: None }
        }),
        false => submit(&sent, &request, service, &caller).await.map(Answer::Job),
    };
    // After an error, the form stays as it was typed.
    let kept = |error| Answer::Form { assumed: Vec::new(), error: Some(error) };
    match answered.unwrap_or_else(kept) {
        Answer::Job(id) => {
            let location = format!("jobs/{id}");
            let response = Response::builder().status(StatusCode::SEE_OTHER);
            Ok(response.header(header::LOCATION, location).finish())
        }
        Answer::Form { assumed, error } => {
            let text = error.as_ref().map(|error| error.body().error.clone());
            let html = warpgauge_page::submit(
                Submission {
                    language: &sent.language,
                    source: &sent.source,
                    contract: &sent.contract,
                    label: &sent.label,
                    error: text.as_deref(),
                    assumed: &assumed,
                    examples: &NAMES,
                },
                &links,
            );
            let mut response = HtmlReply(html).into_response();
            if let Some(error) = error {
                response.set_status(error.status());
            }
            Ok(response)
        }
    }
}

enum Answer {
    /// Id of the accepted job.
    Job(String),
    Form {
        assumed: Vec<String>,
        error: Option<ApiError>,
    },
}

/// Submits the kernel as an evaluation. Returns the id of the job.
async fn submit(
    sent: &Sent,
    request: &Request,
    service: &Services,
    caller: &Caller,
) -> Result<String, ApiError> {
    let policy = request
        .data::<WebhookPolicy>()
        .ok_or_else(|| ApiError::internal("submission", "no policy is set"))?;
    let label = Some(sent.label.trim().to_owned()).filter(|label| !label.is_empty());
    let submission = Wanted { label, ..Wanted::default() }.submission(caller, policy, "")?;
    let contract = sent.contract.trim().to_owned();
    let found = with_compiler(sent, service, caller, move |name, source, compile| {
        let given = (!contract.is_empty()).then_some((BodyFormat::Yaml, contract.as_bytes()));
        request_with(name, source.as_bytes(), given, &Wishes::default(), compile)
    });
    let request = JobRequest::Evaluate(Box::new(found.await?.request));
    Ok(service.evaluations.submit(request, submission).await?.job_id)
}

/// Infers a contract. Returns it in YAML, and assumptions in addition to its comments.
async fn contract(
    sent: &Sent,
    service: &Services,
    caller: &Caller,
) -> Result<(String, Vec<String>), ApiError> {
    let found = with_compiler(sent, service, caller, |name, source, compile| {
        let found = infer_file(name, source.as_bytes(), &Wishes::default(), compile)?;
        let kind = found.kernel_type.name();
        let text = infer::text(&found.guess, kind, name, &found.kernel_name, false);
        Ok((text, found.assumed))
    });
    found.await
}

/// Calls `work` on a blocking thread with the name of the kernel's file, its source, and a function
/// that compiles kernels.
async fn with_compiler<T: Send + 'static>(
    sent: &Sent,
    service: &Services,
    caller: &Caller,
    work: impl FnOnce(&str, &str, warpgauge_watch::Compile<'_>) -> Result<T, EvaluatorError>
    + Send
    + 'static,
) -> Result<T, ApiError> {
    let name = format!("kernel.{}", sent.language);
    let source = sent.source.clone();
    let (compiler, caller) = (service.compiler.clone(), caller.clone());
    let runtime = Handle::current();
    run_blocking("submit", "reading the form", move || {
        let mut failed: Option<ServiceError> = None;
        let mut compile = |request: &CompileRequest| -> Result<CompileResponse, EvaluatorError> {
            let compiled = runtime.block_on(compiler.compile(request.clone(), &caller));
            compiled.map_err(|error| {
                failed = Some(error);
                EvaluatorError::Stopped
            })
        };
        let done = work(&name, &source, &mut compile);
        done.map_err(|error| match (failed, error) {
            (Some(error), _) => error.into(),
            (None, EvaluatorError::Refused(FileRejection { message, .. })) => unfit(&message),
            (None, error) => unfit(&error.to_string()),
        })
    })
    .await?
}

fn unfit(message: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidContract, message)
}

async fn read(request: &Request, body: poem::Body) -> Result<Sent, ApiError> {
    let (limits, line) = body::bounds(request)?;
    let headers = request.headers();
    let boundary = form::required_boundary(headers, "programs send contracts to /evaluate")?;
    let limits = limits.at_most(
        MAX_BYTES,
        "the limit of this form",
        "programs send larger contracts to /evaluate",
    );
    let pieces = Pieces::new(body, declared(headers), &limits, line)?;
    let mut form = MultipartForm::new(pieces, &limits, boundary);
    let malformed = |error: multer::Error| form::malformed("form", error);
    let mut sent = Sent::default();
    let mut count = 0;
    while let Some(mut field) = form.next().await.map_err(malformed)? {
        count += 1;
        if count > MAX_FIELDS {
            let text = format!("the form has more than {MAX_FIELDS} fields");
            return Err(ApiError::field("form", FailureCode::TooLong, text));
        }
        let name = field.name().unwrap_or_default().to_owned();
        let file = field.file_name().unwrap_or_default().to_owned();
        let mut bytes = Vec::new();
        while let Some(piece) = form.piece(&mut field).await.map_err(malformed)? {
            bytes.extend_from_slice(&piece);
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            let text = format!("{name}: is not text in UTF-8; send binaries to /evaluate");
            ApiError::field("form", FailureCode::InvalidData, text)
        })?;
        // Browsers send line ends as CR LF.
        sent.set(&name, &file, text.replace("\r\n", "\n"))?;
    }
    Ok(sent)
}

impl Sent {
    fn set(&mut self, name: &str, file: &str, value: String) -> Result<(), ApiError> {
        let languages = warpgauge_page::LANGUAGES.map(|(extension, _)| extension);
        match name {
            "language" if languages.contains(&value.as_str()) => self.language = value,
            "language" => {
                let text = format!("language: must be one of {}", languages.join(", "));
                return Err(ApiError::field("language", FailureCode::InvalidParameter, text));
            }
            "source" if self.source.is_empty() => self.source = value,
            // The file takes precedence over the text, and its extension over the language.
            "file" if !value.is_empty() => {
                let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
                if let Some(known) = languages.iter().find(|known| **known == extension) {
                    self.language = (*known).to_owned();
                }
                self.source = value;
            }
            "contract" => self.contract = value,
            "label" => self.label = value,
            "action" => self.infers = value == "contract",
            _ => {}
        }
        Ok(())
    }
}
