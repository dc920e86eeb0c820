//! Uploads of tensors ([`FormUpload`]): arrays, and forms whose file is written to a temporary file
//! while it arrives. Malformed bodies are answered with 422, as by the GPU Tensor Server.

use std::fs::File;

use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};

use crate::error::ApiError;
use crate::request::body::{self, Pieces, Share};
use crate::request::form::FORM;
use crate::request::form::{self, MultipartForm};
use crate::request::parsed_body::{ParsedBody, declared};
use crate::request::spool::Spool;
use warpgauge_model::FailureCode;
use warpgauge_service::{TensorOptions, TensorSource, TensorUpload};
use warpgauge_shared_tensors::{ArrayRequest, CPU};

/// Names of the form field that contains the file: the name that the GPU Tensor Server uses, and
/// another for files other than sound.
const FILES: [&str; 2] = ["wav_file", "file"];

/// Maximum length of the value of any other field, bytes.
const MAX_VALUE: usize = 4_096;

/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 64;

/// A file, and the settings of its tensor.
pub(crate) struct FormUpload {
    pub(crate) upload: TensorUpload,
    /// Reservation of disk space, held while the server works on the request.
    pub(crate) share: Share,
}

impl<'a> ApiExtractor<'a> for FormUpload {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    const PARAM_IS_REQUIRED: bool = true;
    type ParamType = ();
    type ParamRawType = ();

    fn register(_: &mut Registry) {}

    fn request_meta() -> Option<MetaRequest> {
        let inline = |ty, format, description| {
            MetaSchemaRef::Inline(Box::new(MetaSchema {
                description: Some(description),
                format,
                ..MetaSchema::new(ty)
            }))
        };
        let form = MetaSchema {
            properties: vec![
                ("wav_file", inline("string", Some("binary"), "WAV, .npy or .safetensors file.")),
                ("cuda_device", inline("integer", None, "CUDA ordinal; -1 for the host's memory.")),
                ("tensor", inline("string", None, "Name of the tensor in a .safetensors file.")),
                (
                    "sample_rate",
                    inline(
                        "integer",
                        None,
                        "Sample rate, Hz. Not needed for a WAV file, which contains it.",
                    ),
                ),
                ("ttl_s", inline("number", None, "Time without use until removal, seconds.")),
                ("evict", inline("boolean", None, "Whether to evict other tensors of the key.")),
            ],
            required: vec!["wav_file"],
            ..MetaSchema::new("object")
        };
        let schema = MetaSchemaRef::Inline(Box::new(form));
        let content = vec![MetaMediaType { content_type: FORM, schema }];
        Some(MetaRequest { description: None, content, required: true })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        let body = body.take()?;
        let (limits, line) = body::bounds(request)?;
        let headers = request.headers();
        let boundary =
            form::required_boundary(headers, "arrays in JSON go to /tensors/from-array")?;
        let limits = limits.of_uploads();
        let pieces = Pieces::new(body, declared(headers), &limits, line)?;
        let mut form = MultipartForm::new(pieces, &limits, boundary);
        let upload = read(&mut form).await?;
        Ok(Self { upload, share: form.into_share() })
    }
}

/// An array, in JSON or another supported format.
pub(crate) struct ArrayUpload(pub(crate) ParsedBody<ArrayRequest>);

impl<'a> ApiExtractor<'a> for ArrayUpload {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    const PARAM_IS_REQUIRED: bool = true;
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        <ParsedBody<ArrayRequest> as ApiExtractor>::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        <ParsedBody<ArrayRequest> as ApiExtractor>::request_meta()
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        let parsed = ParsedBody::read(request, body.take()?).await;
        Ok(Self(parsed.map_err(ApiError::unprocessable)?))
    }
}

async fn read(form: &mut MultipartForm<'_>) -> Result<TensorUpload, ApiError> {
    let mut found = Found::default();
    let mut count = 0;
    while let Some(field) = form.next().await.map_err(malformed)? {
        count += 1;
        if count > MAX_FIELDS {
            let text = format!("the form has more than {MAX_FIELDS} fields");
            return Err(unfit("wav_file", FailureCode::TooLarge, text));
        }
        found.take(form, field).await?;
    }
    let file = found.file.ok_or_else(|| {
        let text = "the form has no field `wav_file` with a file";
        unfit("wav_file", FailureCode::MissingField, text)
    })?;
    let source = TensorSource::File { file, tensor: found.tensor };
    Ok(TensorUpload { source, options: found.options })
}

fn malformed(error: multer::Error) -> ApiError {
    form::malformed("wav_file", error)
}

/// Fields of the form that were read so far.
#[derive(Default)]
struct Found {
    file: Option<File>,
    tensor: Option<String>,
    options: TensorOptions,
}

impl Found {
    async fn take<'a>(
        &mut self,
        form: &MultipartForm<'a>,
        mut field: multer::Field<'a>,
    ) -> Result<(), ApiError> {
        let Some(name) = field.name().map(str::to_owned) else {
            return form.skip(field).await.map_err(malformed);
        };
        if FILES.contains(&name.as_str()) {
            if self.file.is_some() {
                let text = "the form has more than one file: send one at a time";
                return Err(unfit(&name, FailureCode::DuplicateField, text));
            }
            self.options.name = field.file_name().map(str::to_owned);
            let mut spool = Spool::default();
            while let Some(piece) = form.piece(&mut field).await.map_err(malformed)? {
                spool.write(piece).await?;
            }
            self.file = Some(spool.end().await?.0);
            return Ok(());
        }
        let mut value = Vec::new();
        while let Some(chunk) = form.piece(&mut field).await.map_err(malformed)? {
            value.extend_from_slice(&chunk);
            if value.len() > MAX_VALUE {
                let text = format!("`{}` has more than {MAX_VALUE} bytes", short(&name));
                return Err(unfit(&short(&name), FailureCode::TooLong, text));
            }
        }
        self.set(&name, String::from_utf8_lossy(&value).trim())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        let options = &mut self.options;
        match name {
            "cuda_device" => {
                let number = value.strip_prefix("cuda:").unwrap_or(value);
                options.cuda_device = match value {
                    "cpu" => CPU,
                    _ => parsed(name, number, "an integer, or `cpu`")?,
                };
            }
            "sample_rate" => options.sample_rate = Some(parsed(name, value, "an integer")?),
            "ttl_s" => options.ttl_s = Some(parsed(name, value, "a number of seconds")?),
            "evict" => options.evict = parsed(name, value, "`true` or `false`")?,
            "tensor" => self.tensor = Some(value.to_owned()),
            other => {
                let text = format!(
                    "the form has an unknown field {:?}; the fields are wav_file, cuda_device, tensor, sample_rate, \
                     ttl_s and evict",
                    short(other)
                );
                return Err(unfit(&short(other), FailureCode::UnknownField, text));
            }
        }
        Ok(())
    }
}

/// Returns the error for a field of the form that is missing, unknown or of another type.
fn unfit(path: &str, code: FailureCode, text: impl Into<String>) -> ApiError {
    ApiError::field(path, code, text).unprocessable()
}

fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

fn parsed<T: std::str::FromStr>(name: &str, value: &str, expected: &str) -> Result<T, ApiError> {
    value.parse().map_err(|_| {
        let text = format!("`{name}` is {:?}; it must be {expected}", short(value));
        unfit(name, FailureCode::WrongType, text)
    })
}
