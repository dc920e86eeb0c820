//! Wraps all requests and answers: an id, a log span, JSON errors, headers and compression. If a
//! handler panics, or the server shuts down, the client receives an error.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures_util::FutureExt;
use poem::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use tokio::sync::watch;
use tracing::Instrument;

use super::hidden_paths::HiddenPaths;
use super::http_metrics::HttpMetrics;
use super::route_table::RouteTable;
use crate::error::{ApiError, JSON, framework_error};
use crate::phase::Phase;
use crate::response::compression::{accepts_gzip, compressed};
use crate::response::html::{HTML, answers_page, error_as_page, is_asset};
use warpgauge_service::MachineService;

/// Maximum length of the text of poem that an error quotes, bytes.
const MAX_QUOTED_BYTES: usize = 2000;

/// Content security policy of answers that set no other policy: a browser may show them with their
/// styles and pictures.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const REQUEST_ID: &str = "x-request-id";
const GPU_TYPE: &str = "x-gpu-type";

/// Wraps the application.
pub(crate) struct Envelope<E> {
    pub(crate) inner: E,
    pub(crate) routes: Arc<RouteTable>,
    pub(crate) http: Arc<HttpMetrics>,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) places: HiddenPaths,
    pub(crate) gpu: GpuType,
}

impl<E: Endpoint<Output = Response>> Endpoint for Envelope<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let id = request_id(request.headers());
        let span = tracing::info_span!(
            "request",
            id = %id,
            method = %request.method(),
            path = request.uri().path(),
        );
        Ok(self.answer(request, &id).instrument(span).await)
    }
}

impl<E: Endpoint<Output = Response>> Envelope<E> {
    async fn answer(&self, request: Request, id: &str) -> Response {
        let started = Instant::now();
        let method = request.method().clone();
        let uri = request.uri().clone();
        let gzip = accepts_gzip(request.headers());
        let page = answers_page(&method, uri.path(), request.headers());

        let response = self.run(request, id).await;
        let response = self.in_json(response, &method, &uri).await;
        let mut response = self.without_places(response).await;
        if page {
            response = error_as_page(response, uri.path()).await;
        }
        let mut response = compressed(response, gzip).await;
        let status = response.status();
        self.add_headers(response.headers_mut(), status, id);
        if !is_asset(uri.path()) {
            // Files of pages have a hash in their name, so a browser may cache them.
            let never = HeaderValue::from_static("no-store");
            response.headers_mut().insert(header::CACHE_CONTROL, never);
        }
        let took = started.elapsed();
        self.http.answered(method.as_str(), self.routes.template(uri.path()), status, took);
        let ms = took.as_secs_f64() * 1e3;
        if status.is_server_error() {
            tracing::warn!(status = status.as_u16(), ms, "answered");
        } else {
            tracing::debug!(status = status.as_u16(), ms, "answered");
        }
        response
    }

    /// Runs the handler until it ends or panics, or until the server's grace period is over.
    async fn run(&self, request: Request, id: &str) -> Response {
        let mut phase = self.phase.clone();
        let over = phase.wait_for(|phase| *phase == Phase::Over);
        let handler = AssertUnwindSafe(self.inner.get_response(request)).catch_unwind();
        tokio::select! {
            biased;
            ended = handler => ended.unwrap_or_else(|_| {
                tracing::error!("a handler panicked");
                ApiError::internal(id, "the request failed because of an error in the server").into_response()
            }),
            _ = over => ApiError::shutting_down().into_response(),
        }
    }

    /// Converts errors that poem wrote as plain text to the JSON form.
    async fn in_json(&self, mut response: Response, method: &Method, uri: &Uri) -> Response {
        let status = response.status();
        let described = response.content_type().is_some_and(|is| is == JSON || is == HTML);
        if described || !(status.is_client_error() || status.is_server_error()) {
            return response;
        }
        let text = response.take_body().into_bytes_limit(MAX_QUOTED_BYTES).await;
        let text = String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned();
        let mut error = if status.is_server_error() {
            tracing::error!(status = status.as_u16(), %text, "the framework failed");
            ApiError::internal("framework", "the request failed because of an error in the server")
                .into_response()
        } else {
            framework_error(status, &text, method.as_str(), uri.path()).into_response()
        };
        if status == StatusCode::METHOD_NOT_ALLOWED
            && let Some(allow) = self.routes.allow(uri.path())
        {
            error.headers_mut().insert(header::ALLOW, allow);
        }
        error
    }

    /// Removes paths of this machine from errors.
    async fn without_places(&self, mut response: Response) -> Response {
        let status = response.status();
        if !(status.is_client_error() || status.is_server_error()) {
            return response;
        }
        // The body is in memory, so reading it does not fail in practice.
        let body = response.take_body().into_bytes().await.unwrap_or_default();
        response.set_body(self.places.hidden_in_text(body));
        response
    }

    fn add_headers(&self, headers: &mut HeaderMap, status: StatusCode, id: &str) {
        if let Ok(id) = HeaderValue::from_str(id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        // With `no-referrer`, browsers would send forms with the origin `null`.
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        headers
            .entry(header::CONTENT_SECURITY_POLICY)
            .or_insert_with(|| HeaderValue::from_static(POLICY));
        // A rejected caller does not learn the type of the device.
        if status != StatusCode::FORBIDDEN
            && let Some(name) = self.gpu.name()
        {
            headers.insert(GPU_TYPE, name);
        }
    }
}

/// Product name of the first device, once a device is known.
pub(crate) struct GpuType {
    pub(crate) machine: Arc<dyn MachineService>,
    pub(crate) known: OnceLock<HeaderValue>,
}

impl GpuType {
    fn name(&self) -> Option<HeaderValue> {
        if let Some(name) = self.known.get() {
            return Some(name.clone());
        }
        let status = self.machine.status();
        let name = HeaderValue::from_str(&status.devices.first()?.device.name).ok()?;
        Some(self.known.get_or_init(|| name).clone())
    }
}

/// Returns the caller's id if it is safe in a log line, otherwise a new id.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match given {
        Some(id) if (1..=64).contains(&id.len()) && id.bytes().all(plain) => id.to_owned(),
        _ => uuid::Uuid::new_v4().to_string(),
    }
}
