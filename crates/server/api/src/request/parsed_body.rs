//! Parses request bodies: each operation accepts JSON, YAML and MessagePack ([`ParsedBody`]).

use std::marker::PhantomData;

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
use warpgauge_contract::{BodyFormat, Compatible, ParseError};
use warpgauge_model::ErrorCode;

/// Media types that request bodies may have, and the format of each.
pub(crate) const MEDIA_TYPES: [(&str, BodyFormat); 6] = [
    (JSON, BodyFormat::Json),
    ("application/yaml", BodyFormat::Yaml),
    ("application/x-yaml", BodyFormat::Yaml),
    ("text/yaml", BodyFormat::Yaml),
    ("application/msgpack", BodyFormat::MsgPack),
    ("application/x-msgpack", BodyFormat::MsgPack),
];

/// A way of parsing a body.
pub(crate) trait ReadAs<T> {
    fn parse(format: BodyFormat, bytes: &[u8]) -> Result<T, ParseError>;
}

/// Parses a body strictly according to its type.
pub(crate) enum Strict {}

/// Parses a body that may contain large arrays of numbers. The body's type must support arrays.
pub(crate) enum Arrays {}

/// Parses a body that may use the request format of the CUDA Evaluation Server.
pub(crate) enum AsReference {}

impl<T: DeserializeOwned> ReadAs<T> for Strict {
    fn parse(format: BodyFormat, bytes: &[u8]) -> Result<T, ParseError> {
        warpgauge_contract::parse(format, bytes)
    }
}

impl<T: DeserializeOwned> ReadAs<T> for Arrays {
    fn parse(format: BodyFormat, bytes: &[u8]) -> Result<T, ParseError> {
        warpgauge_contract::parse_arrays(format, bytes)
    }
}

impl<T: Compatible> ReadAs<T> for AsReference {
    fn parse(format: BodyFormat, bytes: &[u8]) -> Result<T, ParseError> {
        warpgauge_contract::parse_compatible(format, bytes)
    }
}

/// A request body, parsed by `R`.
pub(crate) struct ParsedBody<T, R = Strict> {
    pub(crate) value: T,
    /// Reservation of memory, held while the server works on the request.
    pub(crate) share: Share,
    read_as: PhantomData<R>,
}

/// A [`ParsedBody`] that may contain large arrays of numbers.
pub(crate) type ArrayBody<T> = ParsedBody<T, Arrays>;

/// A [`ParsedBody`] that may use the request format of the CUDA Evaluation Server.
pub(crate) type CompatibleBody<T> = ParsedBody<T, AsReference>;

impl<T: Send + 'static, R: ReadAs<T> + 'static> ParsedBody<T, R> {
    /// Reads and parses the body of a request.
    pub(crate) async fn read(request: &Request, body: Body) -> Result<Self, ApiError> {
        let format = body_format(request.headers())?;
        let (limits, connection) = body::bounds(request)?;
        receive(format, body, request.headers(), &limits, connection).await
    }
}

impl<'a, T: JsonSchema + Send + 'static, R: ReadAs<T> + 'static> ApiExtractor<'a>
    for ParsedBody<T, R>
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

async fn receive<T: Send + 'static, R: ReadAs<T> + 'static>(
    format: BodyFormat,
    body: Body,
    headers: &HeaderMap,
    limits: &BodyLimits,
    connection: &ConnectionState,
) -> Result<ParsedBody<T, R>, ApiError> {
    let (bytes, share) = body::read(body, declared(headers), limits, connection).await?;
    let value = if bytes.len() > HEAVY_BYTES {
        run_blocking("parse", "parsing the body", move || R::parse(format, &bytes)).await?
    } else {
        R::parse(format, &bytes)
    };
    let value = value.map_err(unparsable)?;
    Ok(ParsedBody { value, share, read_as: PhantomData })
}

/// Returns the length that `Content-Length` announces.
pub(crate) fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Rejects a body that is not JSON.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    match body_format(headers)? {
        BodyFormat::Json => Ok(()),
        other => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::UnsupportedMediaType,
            format!("Content-Type must be {JSON} here; this body's type is that of {other}"),
        )),
    }
}

/// Returns the format that `Content-Type` specifies, by default JSON. A browser must specify a
/// format: otherwise any web page could send the body without a preflight request.
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
        (None, _) if is_from_browser(headers) => {
            return Err(not_taken("the request comes from a browser and has no Content-Type"));
        }
        (None, _) => return Ok(BodyFormat::Json),
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => return Err(not_taken("the request has several")),
    };
    let essence = came.split(';').next().unwrap_or_default().trim();
    MEDIA_TYPES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(essence))
        .map(|(_, format)| *format)
        .ok_or_else(|| not_taken(&format!("the request has {essence:?}")))
}

/// Returns whether a browser sent the request. Browsers add one of these headers to each request
/// with a body, and web pages cannot remove them.
fn is_from_browser(headers: &HeaderMap) -> bool {
    let names = headers.keys().map(|name| name.as_str());
    names.into_iter().any(|name| name == "origin" || name.starts_with("sec-fetch-"))
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
