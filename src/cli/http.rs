//! The one place where the command line starts the HTTP server.

use std::future::Future;
use std::net::SocketAddr;

use super::CliError;
use warpgauge_config::ServerConfig;
use warpgauge_service::Services;

/// Serves until `shutdown` resolves; then finishes what runs, for as long as the configuration
/// grants. `on_bound` gets the address once the socket listens.
pub(super) async fn serve(
    config: &ServerConfig,
    service: Services,
    shutdown: impl Future<Output = ()> + Send + 'static,
    on_bound: impl FnOnce(SocketAddr) + Send,
) -> Result<(), CliError> {
    warpgauge_api::serve(config, service, shutdown, on_bound)
        .await
        .map_err(|error| CliError::Server(Box::new(error)))
}
