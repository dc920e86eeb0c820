//! Forms with reports of profilers, whose files are written to a temporary file while they arrive:
//! [`ReportForm`].

use std::fs::File;

use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};

use crate::error::ApiError;
use crate::request::body::{self, Pieces, Share};
use crate::request::form::{self, FORM, MultipartForm};
use crate::request::parsed_body::declared;
use crate::request::spool::Spool;
use warpgauge_metrics::import::MAX_REPORT_BYTES;
use warpgauge_model::FailureCode;
use warpgauge_service::{EARLIER_FIELD, NamedReport, REPORT_FIELD};

/// Form field with the selected metrics.
const METRICS: &str = "metrics";

/// Maximum length of a file's name, characters.
const MAX_NAME: usize = 255;

/// Maximum length of the value of `metrics`, bytes. The process that reads the reports gets it as an
/// argument, which Linux limits to 128 KiB, and a byte may take six in JSON.
const MAX_VALUE: usize = 16 << 10;

/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 16;

/// Reports from a form.
pub(crate) struct ReportUpload {
    /// Reports, in the order of `content`.
    pub(crate) reports: Vec<NamedReport>,
    pub(crate) metrics: Vec<String>,
    /// Contents of all reports, one after the other.
    pub(crate) content: File,
    /// Reservation of disk space, held while the server works on the request.
    pub(crate) share: Share,
}

/// Form fields with files: a report, and an earlier one.
const FIELDS: [&str; 2] = [REPORT_FIELD, EARLIER_FIELD];

/// A form with the first `FILES` of [`FIELDS`].
pub(crate) struct ReportForm<const FILES: usize>(pub(crate) ReportUpload);

impl<'a, const FILES: usize> ApiExtractor<'a> for ReportForm<FILES> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    const PARAM_IS_REQUIRED: bool = true;
    type ParamType = ();
    type ParamRawType = ();

    fn register(_: &mut Registry) {}

    fn request_meta() -> Option<MetaRequest> {
        Some(described(&FIELDS[..FILES]))
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        Ok(Self(read(request, body, &FIELDS[..FILES]).await?))
    }
}

/// Describes a form with these files for the OpenAPI document.
fn described(files: &[&'static str]) -> MetaRequest {
    let inline = |format, description| {
        let schema =
            MetaSchema { description: Some(description), format, ..MetaSchema::new("string") };
        MetaSchemaRef::Inline(Box::new(schema))
    };
    let mut properties = vec![
        (REPORT_FIELD, inline(Some("binary"), "Report.")),
        (
            EARLIER_FIELD,
            inline(Some("binary"), "Earlier report, which the other is compared with."),
        ),
    ];
    properties.retain(|(name, _)| files.contains(name));
    let metrics = "Metrics to select, separated by commas: ids, sets, groups. Default: all.";
    properties.push((METRICS, inline(None, metrics)));
    let form = MetaSchema { properties, required: files.to_vec(), ..MetaSchema::new("object") };
    let schema = MetaSchemaRef::Inline(Box::new(form));
    let content = vec![MetaMediaType { content_type: FORM, schema }];
    MetaRequest { description: None, content, required: true }
}

/// Reads a form that has exactly these files.
async fn read(
    request: &Request,
    body: &mut RequestBody,
    files: &[&str],
) -> Result<ReportUpload, ApiError> {
    let body = body.take().map_err(|_| missing(files[0]))?;
    let (limits, line) = body::bounds(request)?;
    let headers = request.headers();
    let otherwise = format!("such as `curl -F {REPORT_FIELD}=@FILE URL`");
    let boundary = form::required_boundary(headers, &otherwise)?;
    let limits = limits.of_uploads();
    let pieces = Pieces::new(body, declared(headers), &limits, line)?;
    let mut form = MultipartForm::new(pieces, &limits, boundary);
    let mut found = Found::default();
    let mut count = 0;
    while let Some(field) = form.next().await.map_err(malformed)? {
        count += 1;
        if count > MAX_FIELDS {
            let text = format!("the form has more than {MAX_FIELDS} fields");
            return Err(ApiError::field("form", FailureCode::TooLong, text));
        }
        found.take(&form, field, files).await?;
    }
    if let Some(field) = files.iter().find(|field| !found.has(field)) {
        return Err(missing(field));
    }
    let Found { reports, metrics, spool } = found;
    let (content, _) = spool.end().await?;
    let metrics = metrics.unwrap_or_default();
    Ok(ReportUpload { reports, metrics, content, share: form.into_share() })
}

/// Fields of the form that were read so far.
#[derive(Default)]
struct Found {
    reports: Vec<NamedReport>,
    metrics: Option<Vec<String>>,
    spool: Spool,
}

impl Found {
    fn has(&self, field: &str) -> bool {
        self.reports.iter().any(|report| report.field == field)
    }

    async fn take<'a>(
        &mut self,
        form: &MultipartForm<'a>,
        mut field: multer::Field<'a>,
        files: &[&str],
    ) -> Result<(), ApiError> {
        let name: String = field.name().unwrap_or_default().chars().take(MAX_NAME).collect();
        if name == METRICS {
            if self.metrics.is_some() {
                let text = format!(
                    "{METRICS}: the form has several such fields; separate the names by commas"
                );
                return Err(ApiError::field(METRICS, FailureCode::DuplicateField, text));
            }
            let value = value(form, field).await?;
            let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
            self.metrics = Some(names.map(str::to_owned).collect());
            return Ok(());
        }
        let is_file = FIELDS.contains(&name.as_str());
        let file = field.file_name().unwrap_or_default().chars().take(MAX_NAME).collect::<String>();
        let mut bytes = 0;
        while let Some(piece) = form.piece(&mut field).await.map_err(malformed)? {
            if piece.is_empty() {
                continue;
            }
            bytes += piece.len() as u64;
            if !files.contains(&name.as_str()) {
                return Err(unknown(&name, is_file));
            }
            if self.has(&name) {
                let text = format!("the form has more than one file `{name}`");
                return Err(ApiError::field(&name, FailureCode::DuplicateField, text));
            }
            if bytes > MAX_REPORT_BYTES as u64 {
                let mib = MAX_REPORT_BYTES >> 20;
                let text = format!(
                    "{name}: is longer than {mib} MiB; export fewer kernels, metrics or tables"
                );
                return Err(ApiError::field(&name, FailureCode::TooLong, text));
            }
            self.spool.write(piece).await?;
        }
        // A browser sends an empty field for a file that its user did not choose.
        if bytes > 0 {
            self.reports.push(NamedReport { field: name, name: file, bytes });
        } else if !is_file {
            return Err(unknown(&name, false));
        }
        Ok(())
    }
}

/// Reads the value of a field that is not a file.
async fn value<'a>(
    form: &MultipartForm<'a>,
    mut field: multer::Field<'a>,
) -> Result<String, ApiError> {
    let mut value = Vec::new();
    while let Some(piece) = form.piece(&mut field).await.map_err(malformed)? {
        value.extend_from_slice(&piece);
        if value.len() > MAX_VALUE {
            let text = format!("{METRICS}: has more than {MAX_VALUE} bytes");
            return Err(ApiError::field(METRICS, FailureCode::TooLong, text));
        }
    }
    Ok(String::from_utf8_lossy(&value).into_owned())
}

fn malformed(error: multer::Error) -> ApiError {
    form::malformed(REPORT_FIELD, error)
}

fn missing(field: &str) -> ApiError {
    let text = format!("{field}: the form has no such field with a file, or the file is empty");
    ApiError::field(field, FailureCode::MissingField, text)
}

fn unknown(field: &str, is_file: bool) -> ApiError {
    let text = match is_file {
        true => format!("send `{field}` and `{REPORT_FIELD}` to POST /import/changes"),
        false => format!(
            "the form has an unknown field `{field}`; the fields are {REPORT_FIELD}, \
             {EARLIER_FIELD} (for /import/changes) and {METRICS}"
        ),
    };
    ApiError::field(field, FailureCode::UnknownField, text)
}
