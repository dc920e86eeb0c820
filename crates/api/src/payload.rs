//! Request and answer bodies: one operation takes JSON, YAML and MessagePack; answers are JSON.

use std::marker::PhantomData;

use poem::http::{HeaderMap, StatusCode, header};
use poem::{Body, IntoResponse, Request, RequestBody, Response};
use poem_openapi::payload::Payload;
use poem_openapi::registry::{
    MetaMediaType, MetaRequest, MetaResponse, MetaResponses, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiExtractor, ApiExtractorType, ApiResponse, ExtractParamOptions};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::aside::aside;
use super::body::{self, BodyLimits, Share};
use super::connections::Line;
use super::error::{ApiError, JSON};
use super::schema;
use warpgauge_contract::{BodyFormat, MAX_ARRAY_VALUES};
use warpgauge_model::ErrorCode;

/// Media types that request bodies may have.
pub(super) const MEDIA_TYPES: [(&str, BodyFormat); 6] = [
    (JSON, BodyFormat::Json),
    ("application/yaml", BodyFormat::Yaml),
    ("application/x-yaml", BodyFormat::Yaml),
    ("text/yaml", BodyFormat::Yaml),
    ("application/msgpack", BodyFormat::MsgPack),
    ("application/x-msgpack", BodyFormat::MsgPack),
];

/// Bodies above this size are parsed, and answers above it written, off the async threads.
const HEAVY_BYTES: usize = 1 << 20;

/// A request body, parsed by [`warpgauge_contract::parse`]; with `ARRAYS` it may hold large arrays of
/// numbers, which its type must take as such.
pub(super) struct Contract<T, const ARRAYS: bool = false> {
    pub(super) value: T,
    /// Keeps the memory that the request takes accounted for while it is worked on.
    pub(super) share: Share,
}

/// As [`Contract`], with large arrays of numbers.
pub(super) type Arrays<T> = Contract<T, true>;

impl<'a, T: DeserializeOwned + JsonSchema + Send + 'static, const ARRAYS: bool> ApiExtractor<'a>
    for Contract<T, ARRAYS>
{
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    const PARAM_IS_REQUIRED: bool = true;
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        schema::register_request::<T>(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        let content = MEDIA_TYPES.map(|(content_type, _)| MetaMediaType {
            content_type,
            schema: schema::reference::<T>(),
        });
        Some(MetaRequest { description: None, content: content.into(), required: true })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        let body = body.take()?;
        let format = body_format(request.headers())?;
        let (limits, line) = body::bounds(request)?;
        Ok(receive(format, body, request.headers(), &limits, line).await?)
    }
}

async fn receive<T: DeserializeOwned + Send + 'static, const ARRAYS: bool>(
    format: BodyFormat,
    body: Body,
    headers: &HeaderMap,
    limits: &BodyLimits,
    line: &Line,
) -> Result<Contract<T, ARRAYS>, ApiError> {
    let (bytes, share) = body::read(body, declared(headers), limits, line).await?;
    let parse = move |bytes: &[u8]| match ARRAYS {
        true => warpgauge_contract::parse_within(format, bytes, MAX_ARRAY_VALUES),
        false => warpgauge_contract::parse(format, bytes),
    };
    let value = if bytes.len() > HEAVY_BYTES {
        aside("parse", "parsing the body", move || parse(&bytes)).await?
    } else {
        parse(&bytes)
    };
    let value = value.map_err(unparsable)?;
    Ok(Contract { value, share })
}

/// The length that headers announce.
pub(super) fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Refuses a body that is not JSON.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    match body_format(headers)? {
        BodyFormat::Json => Ok(()),
        other => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::UnsupportedMediaType,
            format!("Content-Type must be {JSON} here; this body's is that of {other}"),
        )),
    }
}

/// The format that `Content-Type` names. One must be named: a body without is what a browser sends for
/// any page without asking first.
pub(super) fn body_format(headers: &HeaderMap) -> Result<BodyFormat, ApiError> {
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::UnsupportedEncoding,
            "send the body without Content-Encoding; tensor data can be compressed in the contract",
        ));
    }
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let came = match (values.next(), values.next()) {
        (None, _) => return Err(not_taken("this body has none")),
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => return Err(not_taken("this body has several")),
    };
    let essence = came.split(';').next().unwrap_or_default().trim();
    MEDIA_TYPES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(essence))
        .map(|(_, format)| *format)
        .ok_or_else(|| not_taken(&format!("this body's is {essence:?}")))
}

fn not_taken(came: &str) -> ApiError {
    let taken = MEDIA_TYPES.map(|(name, _)| name).join(", ");
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::UnsupportedMediaType,
        format!("Content-Type must be one of {taken}; {came}"),
    )
}

pub(super) fn unparsable(error: warpgauge_contract::ParseError) -> ApiError {
    let described = if error.path.is_empty() {
        ApiError::new(StatusCode::BAD_REQUEST, error.code.clone().into(), error.to_string())
    } else {
        ApiError::field(&error.path, error.code.clone(), error.to_string())
    };
    described.at(error.line, error.column)
}

/// A JSON answer, written by serde.
pub(super) struct Reply<T> {
    json: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

/// Size of an answer's body, for those that decide about compressing it.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLength(pub(super) usize);

impl<T: Serialize> Reply<T> {
    pub(super) fn new(value: &T) -> Result<Self, ApiError> {
        let json = serde_json::to_vec(value).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written");
            ApiError::internal("reply", "the answer cannot be written as JSON")
        })?;
        Ok(Self { json, of: PhantomData })
    }

    /// As [`Reply::new`], off the async threads where the answer carries `content_bytes` of tensors.
    pub(super) async fn with_content(value: T, content_bytes: usize) -> Result<Self, ApiError>
    where
        T: Send + 'static,
    {
        if content_bytes <= HEAVY_BYTES {
            return Self::new(&value);
        }
        aside("reply", "writing the answer", move || Self::new(&value)).await?
    }
}

impl<T> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let mut response = Response::builder().content_type(JSON).finish();
        response.set_data(BodyLength(self.json.len()));
        response.set_body(self.json);
        response
    }
}

impl<T: JsonSchema> Payload for Reply<T> {
    const CONTENT_TYPE: &'static str = JSON;

    fn schema_ref() -> MetaSchemaRef {
        schema::reference::<T>()
    }

    fn register(registry: &mut Registry) {
        schema::register::<T>(registry);
    }
}

impl<T: JsonSchema> ApiResponse for Reply<T> {
    fn meta() -> MetaResponses {
        MetaResponses {
            responses: vec![MetaResponse {
                description: "The answer.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType {
                    content_type: JSON,
                    schema: schema::reference::<T>(),
                }],
                headers: vec![],
            }],
        }
    }

    fn register(registry: &mut Registry) {
        schema::register::<T>(registry);
    }
}
