//! Request bodies: one operation takes JSON, YAML and MessagePack.

use poem::http::{HeaderMap, StatusCode, header};
use poem::{Body, Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::body::{self, BodyLimits, Share};
use crate::blocking::{HEAVY_BYTES, run_blocking};
use crate::connection::table::ConnectionState;
use crate::error::{ApiError, JSON};
use crate::schema;
use warpgauge_contract::BodyFormat;
use warpgauge_model::ErrorCode;

/// Media types that request bodies may have.
pub(crate) const MEDIA_TYPES: [(&str, BodyFormat); 6] = [
    (JSON, BodyFormat::Json),
    ("application/yaml", BodyFormat::Yaml),
    ("application/x-yaml", BodyFormat::Yaml),
    ("text/yaml", BodyFormat::Yaml),
    ("application/msgpack", BodyFormat::MsgPack),
    ("application/x-msgpack", BodyFormat::MsgPack),
];

/// A request body, parsed by [`warpgauge_contract::parse`]; with `ARRAYS` it may hold large arrays of
/// numbers, which its type must take as such.
pub(crate) struct ParsedBody<T, const ARRAYS: bool = false> {
    pub(crate) value: T,
    /// Keeps the memory that the request takes accounted for while it is worked on.
    pub(crate) share: Share,
}

/// As [`ParsedBody`], with large arrays of numbers.
pub(crate) type ArrayBody<T> = ParsedBody<T, true>;

impl<T: DeserializeOwned + Send + 'static, const ARRAYS: bool> ParsedBody<T, ARRAYS> {
    /// Reads the body of a request.
    pub(crate) async fn read(request: &Request, body: Body) -> Result<Self, ApiError> {
        let format = body_format(request.headers())?;
        let (limits, connection) = body::bounds(request)?;
        receive(format, body, request.headers(), &limits, connection).await
    }
}

impl<'a, T: DeserializeOwned + JsonSchema + Send + 'static, const ARRAYS: bool> ApiExtractor<'a>
    for ParsedBody<T, ARRAYS>
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
        Ok(Self::read(request, body.take()?).await?)
    }
}

async fn receive<T: DeserializeOwned + Send + 'static, const ARRAYS: bool>(
    format: BodyFormat,
    body: Body,
    headers: &HeaderMap,
    limits: &BodyLimits,
    connection: &ConnectionState,
) -> Result<ParsedBody<T, ARRAYS>, ApiError> {
    let (bytes, share) = body::read(body, declared(headers), limits, connection).await?;
    let parse = move |bytes: &[u8]| match ARRAYS {
        true => warpgauge_contract::parse_arrays(format, bytes),
        false => warpgauge_contract::parse(format, bytes),
    };
    let value = if bytes.len() > HEAVY_BYTES {
        run_blocking("parse", "parsing the body", move || parse(&bytes)).await?
    } else {
        parse(&bytes)
    };
    let value = value.map_err(unparsable)?;
    Ok(ParsedBody { value, share })
}

/// The length that headers announce.
pub(crate) fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Refuses a body that is not JSON.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
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
pub(crate) fn body_format(headers: &HeaderMap) -> Result<BodyFormat, ApiError> {
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

pub(crate) fn unparsable(error: warpgauge_contract::ParseError) -> ApiError {
    let described = if error.path.is_empty() {
        ApiError::new(StatusCode::BAD_REQUEST, error.code.clone().into(), error.to_string())
    } else {
        ApiError::field(&error.path, error.code.clone(), error.to_string())
    };
    described.at(error.line, error.column)
}
