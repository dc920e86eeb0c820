//! `/mcp`: the Model Context Protocol over HTTP, for agents ([`Mcp`]).
//!
//! `rmcp` implements the protocol. This module enforces the rules that hold for all operations: the
//! owner of a request, limits on its body, and the number and end of open streams. The number of
//! sessions is limited ([`sessions`]), and each belongs to the key that began it.

mod sessions;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyDataStream, BodyExt, Full};
use poem::http::request::Parts;
use poem::http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, StatusCode, header};
use poem::{Body, Endpoint, Request, Response};
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::sync::watch;

use self::sessions::{Sessions, UnderWay};
use super::connection::table::ConnectionState;
use super::error::ApiError;
use super::phase::Phase;
use super::request::body::{self, BodyLimits, Share};
use super::request::parsed_body;
use super::response::events::Watchers;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use warpgauge_contract::BodyFormat;
use warpgauge_mcp::{
    AgentServer, CallPermits, JobBackend, JobDurability, MAX_MESSAGE_BYTES, ServiceBackend,
};
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_service::{Caller, Services};

/// Methods that the endpoint supports.
pub(super) const METHODS: [&str; 3] = ["DELETE", "GET", "POST"];

const SESSION: &str = "mcp-session-id";

/// Headers with API keys, which are not passed to `rmcp`.
const KEYS: [&str; 2] = ["authorization", "x-api-key"];

/// The endpoint of the protocol.
pub(super) struct Mcp {
    protocol: StreamableHttpService<AgentServer, LocalSessionManager>,
    sessions: Sessions,
    limits: BodyLimits,
    watchers: Watchers,
    phase: watch::Receiver<Phase>,
}

/// The part of a message that this module reads before `rmcp` does.
#[derive(Deserialize)]
struct Message {
    /// Absent in a response that the client sends.
    #[serde(default)]
    method: Option<String>,
}

impl Mcp {
    pub(super) fn new(
        service: &Services,
        limits: &BodyLimits,
        public_url: &str,
        watchers: Watchers,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let (service, phases, public_url) = (service.clone(), phase.clone(), public_url.to_owned());
        let find = move |given: &Extensions| -> Option<Arc<dyn JobBackend>> {
            let caller = given.get::<Parts>()?.extensions.get::<Caller>()?.clone();
            let backend = ServiceBackend::new(service.clone(), caller, JobDurability::Durable)
                .linking_to(public_url.clone());
            let phases = phases.clone();
            Some(Arc::new(backend.cancelling_while(move || *phases.borrow() != Phase::Over)))
        };
        let server = AgentServer::finding(find, CallPermits::default());
        // `origin` checks Host and Origin for every path.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES);
        let sessions = Sessions::default();
        let manager = sessions.manager();
        let protocol = StreamableHttpService::new(move || Ok(server.clone()), manager, config);
        Self {
            protocol,
            sessions,
            limits: limits.at_most(
                MAX_MESSAGE_BYTES as u64,
                "the limit of MCP",
                "generate tensors (`init`), or send larger requests to the HTTP API",
            ),
            watchers,
            phase,
        }
    }

    async fn answer(&self, mut request: Request) -> Result<Response, ApiError> {
        let caller = request.data::<Caller>().cloned();
        let connection = request.data::<Arc<ConnectionState>>().cloned();
        let (Some(caller), Some(connection)) = (caller, connection) else {
            return Err(ApiError::internal("mcp", "no caller or no connection is set"));
        };
        let session = session(request.headers())?;
        let body = request.take_body();
        let under_way = match &session {
            Some(id) => Some(self.sessions.use_of(id, &caller.owner).await?),
            None => None,
        };
        match *request.method() {
            Method::POST => self.post(request, body, caller, &connection, under_way).await,
            Method::GET => {
                let place = self.watchers.place(&caller)?;
                let answer = self.protocol.handle(self.passed(&request, Vec::new(), &caller)).await;
                Ok(self.streamed(answer, Phase::Draining, (place, under_way)))
            }
            _ => {
                let answer = self.protocol.handle(self.passed(&request, Vec::new(), &caller)).await;
                let mut response = self.streamed(answer, Phase::Over, under_way);
                if response.status() == StatusCode::ACCEPTED {
                    // The session has ended. Clients expect 204 for an answer without content.
                    response.set_status(StatusCode::NO_CONTENT);
                }
                Ok(response)
            }
        }
    }

    async fn post(
        &self,
        request: Request,
        body: Body,
        caller: Caller,
        connection: &ConnectionState,
        under_way: Option<UnderWay>,
    ) -> Result<Response, ApiError> {
        let (bytes, share) = self.receive(&request, body, connection, &caller).await?;
        let message: Message =
            warpgauge_contract::parse(BodyFormat::Json, &bytes).map_err(parsed_body::unparsable)?;
        let passed = self.passed(&request, bytes, &caller);
        let begins = under_way.is_none() && message.method.as_deref() == Some("initialize");
        if !begins {
            let answer = understood(self.protocol.handle(passed).await).await?;
            return Ok(self.streamed(answer, Phase::Over, (under_way, share)));
        }
        let place = self.sessions.begin(&caller.owner).await?;
        let protocol = self.protocol.clone();
        // A task runs this to completion. Otherwise a client that disconnects could leave a session
        // without an owner.
        let beginning = tokio::spawn(async move {
            let answer = protocol.handle(passed).await;
            let begun = session(answer.headers()).ok().flatten();
            (answer, begun.map(|id| place.is(&id, &caller.owner)))
        });
        let (answer, under_way) = beginning.await.map_err(|error| {
            tracing::error!(%error, "beginning a session panicked");
            ApiError::internal("mcp", "the session could not begin")
        })?;
        let answer = understood(answer).await?;
        Ok(self.streamed(answer, Phase::Over, (under_way, share)))
    }

    /// Reads the body within the limits for all bodies, and within the maximum size of a message.
    async fn receive(
        &self,
        request: &Request,
        body: Body,
        connection: &ConnectionState,
        caller: &Caller,
    ) -> Result<(Vec<u8>, Share), ApiError> {
        parsed_body::check_json(request.headers())?;
        let limits = self.limits.of(caller);
        body::read(body, parsed_body::declared(request.headers()), &limits, connection).await
    }

    /// Returns the request for `rmcp`, with its caller and without API keys.
    fn passed(
        &self,
        request: &Request,
        body: Vec<u8>,
        caller: &Caller,
    ) -> HttpRequest<Full<Bytes>> {
        let mut passed = HttpRequest::new(Full::new(Bytes::from(body)));
        *passed.method_mut() = request.method().clone();
        *passed.uri_mut() = request.uri().clone();
        *passed.headers_mut() = request.headers().clone();
        for name in KEYS {
            passed.headers_mut().remove(name);
        }
        // `rmcp` requires a Host header, which HTTP/1.0 lacks.
        let host = passed.headers_mut().entry(header::HOST);
        host.or_insert(HeaderValue::from_static("localhost"));
        passed.extensions_mut().insert(caller.clone());
        passed
    }

    /// Returns an answer whose stream ends when the server reaches `phase`. The stream owns `held`
    /// until then.
    fn streamed<T: Send + 'static>(&self, answer: HttpResponse, phase: Phase, held: T) -> Response {
        let (parts, body) = answer.into_parts();
        let mut phases = self.phase.clone();
        let over = async move {
            // If the server has ended, this returns an error, which ends the stream as well.
            let _ = phases.wait_for(|now| reached(*now, phase)).await;
        };
        let pieces = BodyDataStream::new(body).take_until(Box::pin(over)).map(move |piece| {
            let _held = &held;
            piece.map_err(std::io::Error::other)
        });
        let mut response = Response::builder().status(parts.status).finish();
        *response.headers_mut() = parts.headers;
        response.set_body(Body::from_bytes_stream(pieces));
        response
    }
}

type HttpResponse =
    poem::http::Response<http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>>;

/// Converts `rmcp`'s rejection of a message to the API's error for invalid bodies. The media type
/// was checked before, so this rejection concerns the content.
async fn understood(answer: HttpResponse) -> Result<HttpResponse, ApiError> {
    if answer.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return Ok(answer);
    }
    let text = answer.into_body().collect().await.map(|all| all.to_bytes()).unwrap_or_default();
    let message = format!(
        "the body is not a message of the Model Context Protocol: {}",
        String::from_utf8_lossy(&text)
    );
    Err(ApiError::new(StatusCode::BAD_REQUEST, FailureCode::MalformedJson.into(), message))
}

/// Returns whether the server has reached `phase`.
fn reached(now: Phase, phase: Phase) -> bool {
    match phase {
        Phase::Serving => true,
        Phase::Draining => now != Phase::Serving,
        Phase::Over => now == Phase::Over,
    }
}

/// Returns the session id in the headers.
fn session(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(SESSION).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => Ok(Some(value.to_str().unwrap_or_default().to_owned())),
        (Some(_), Some(_)) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            ErrorCode::NotFound,
            "the request has several Mcp-Session-Id headers; send one",
        )),
    }
}

impl Endpoint for Mcp {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        if !METHODS.contains(&request.method().as_str()) {
            return Err(StatusCode::METHOD_NOT_ALLOWED.into());
        }
        Ok(self.answer(request).await?)
    }
}
