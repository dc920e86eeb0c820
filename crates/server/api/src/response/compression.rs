//! Compresses answers for clients that accept it.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use poem::http::{HeaderMap, HeaderValue, header};
use poem::{IntoResponse, Response};

use super::reply::BodyLength;
use crate::error::ApiError;

/// Minimum size of an answer that is compressed, bytes.
const COMPRESS_FROM_BYTES: usize = 16 << 10;

/// Returns whether the client accepts gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(
        |coding| {
            let mut parts = coding.split(';').map(str::trim);
            let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
            let refused = parts
                .filter_map(|part| part.strip_prefix("q="))
                .any(|quality| quality.parse() == Ok(0.0));
            named && !refused
        },
    )
}

/// Compresses an answer with the fastest level of gzip, because brotli takes longer than most
/// kernels run. The work runs outside the async threads, because the body may be large.
pub(crate) async fn compressed(mut response: Response, gzip: bool) -> Response {
    let large =
        matches!(response.data::<BodyLength>(), Some(length) if length.0 >= COMPRESS_FROM_BYTES);
    if !(gzip && large) {
        return response;
    }
    let body = match response.take_body().into_bytes().await {
        Ok(body) => body,
        Err(error) => return uncompressed(&error),
    };
    let zipping = tokio::task::spawn_blocking(move || zipped(&body));
    match zipping.await.map_err(std::io::Error::other).flatten() {
        Ok(zipped) => response.set_body(zipped),
        Err(error) => return uncompressed(&error),
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// Compresses a body with gzip.
pub(crate) fn zipped(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut zip = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    zip.write_all(body)?;
    zip.finish()
}

fn uncompressed(error: &dyn std::fmt::Display) -> Response {
    tracing::error!(%error, "an answer cannot be compressed");
    ApiError::internal("compress", "the answer cannot be compressed").into_response()
}
