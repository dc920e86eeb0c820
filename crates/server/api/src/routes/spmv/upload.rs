//! Uploads of matrices ([`MatrixUpload`]): JSON, or a form whose file is written to a temporary
//! file while it arrives.

use poem::http::{HeaderMap, StatusCode, header};
use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};

use crate::blocking::run_blocking;
use crate::error::{ApiError, JSON};
use crate::request::body::{self, Pieces, Share};
use crate::request::form::{self, FORM, MultipartForm, boundary};
use crate::request::parsed_body::{declared, unparsable};
use crate::request::spool::Spool;
use crate::schema;
use warpgauge_contract::BodyFormat;
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_service::Upload;
use warpgauge_sparse::spmv::UploadRequest;

/// Name of the form field that contains the file.
const FIELD: &str = "file";

/// Describes the blocking work, for errors.
const READING: &str = "reading the upload";

/// The file of a matrix, from a form or a JSON body.
pub(crate) struct MatrixUpload {
    pub(crate) upload: Upload,
    /// Reservation of memory or disk space, held while the server works on the request.
    pub(crate) share: Share,
}

impl<'a> ApiExtractor<'a> for MatrixUpload {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    const PARAM_IS_REQUIRED: bool = true;
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        schema::register_request::<UploadRequest>(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        let file = MetaSchema::new_with_format("string", "binary");
        let form = MetaSchema {
            properties: vec![(FIELD, MetaSchemaRef::Inline(Box::new(file)))],
            required: vec![FIELD],
            ..MetaSchema::new("object")
        };
        let content = vec![
            MetaMediaType { content_type: JSON, schema: schema::reference::<UploadRequest>() },
            MetaMediaType { content_type: FORM, schema: MetaSchemaRef::Inline(Box::new(form)) },
        ];
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
        let declared = declared(headers);
        Ok(match kind(headers)? {
            Kind::Form { boundary } => {
                let limits = limits.of_uploads();
                let pieces = Pieces::new(body, declared, &limits, line)?;
                let mut form = MultipartForm::new(pieces, &limits, boundary);
                let upload = read(&mut form).await?;
                Self { upload, share: form.into_share() }
            }
            Kind::Json => {
                let (bytes, share) = body::read(body, declared, &limits, line).await?;
                Self {
                    upload: run_blocking("upload", READING, move || json(&bytes)).await??,
                    share,
                }
            }
        })
    }
}

/// Kind of a request body.
enum Kind {
    Form { boundary: String },
    Json,
}

fn kind(headers: &HeaderMap) -> Result<Kind, ApiError> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let text = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().unwrap_or_default(),
        _ => "",
    };
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(JSON) {
        return Ok(Kind::Json);
    }
    if let Some(boundary) = boundary(text) {
        return Ok(Kind::Form { boundary });
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::UnsupportedMediaType,
        format!(
            "Content-Type must be {FORM} with a boundary, or {JSON}; the request has {essence:?}"
        ),
    ))
}

/// Reads an upload from a JSON body. The call blocks.
fn json(bytes: &[u8]) -> Result<Upload, ApiError> {
    let request = warpgauge_contract::parse::<UploadRequest>(BodyFormat::Json, bytes);
    let UploadRequest { filename, content } = request.map_err(unparsable)?;
    let bytes = content.decoded_len().map_err(|error| {
        ApiError::field("content", FailureCode::InvalidData, format!("is not base64: {error}"))
    })?;
    Ok(Upload { name: filename, content: content.reader(), bytes })
}

async fn read(form: &mut MultipartForm<'_>) -> Result<Upload, ApiError> {
    let malformed = |error: multer::Error| form::malformed(FIELD, error);
    let mut found = None;
    while let Some(mut field) = form.next().await.map_err(malformed)? {
        if field.name() != Some(FIELD) {
            form.skip(field).await.map_err(malformed)?;
            continue;
        }
        if found.is_some() {
            let text =
                format!("the form has more than one field `{FIELD}`: send one file at a time");
            return Err(ApiError::field(FIELD, FailureCode::DuplicateField, text));
        }
        let name = field.file_name().unwrap_or_default().to_owned();
        let mut spool = Spool::default();
        while let Some(piece) = form.piece(&mut field).await.map_err(malformed)? {
            spool.write(piece).await?;
        }
        let (file, bytes) = spool.end().await?;
        found = Some(Upload { name, content: Box::new(file), bytes });
    }
    found.ok_or_else(|| {
        let text = format!("the form has no field `{FIELD}` with a file");
        ApiError::field(FIELD, FailureCode::MissingField, text)
    })
}
