//! The one place where the command line starts the HTTP server and asks for its specification.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use super::CliError;
use crate::config::ServerConfig;
use crate::pipeline::EvaluationService;

/// Serves until `shutdown` resolves; then finishes what runs, for as long as the configuration
/// grants. `on_bound` gets the address once the socket listens.
pub(super) async fn serve(
    config: &ServerConfig,
    service: Arc<dyn EvaluationService>,
    shutdown: impl Future<Output = ()> + Send + 'static,
    on_bound: impl FnOnce(SocketAddr) + Send,
) -> Result<(), CliError> {
    let _ = (config, service, shutdown, on_bound);
    Err(CliError::Server(
        "this build of warpgauge has no HTTP server".into(),
    ))
}

/// Which specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Specification {
    /// Every media type.
    Whole,
    /// JSON only, for client generators.
    Client,
}

/// The OpenAPI specification, JSON.
pub(super) fn specification(_which: Specification) -> Result<String, CliError> {
    Err(CliError::Server(
        "this build of warpgauge has no HTTP server".into(),
    ))
}
