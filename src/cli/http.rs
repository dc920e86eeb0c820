//! Starts the HTTP server for the commands that need it.

use std::future::Future;
use std::net::SocketAddr;

use super::CliError;
use warpgauge_config::ServerConfig;
use warpgauge_service::Services;

/// Serves until `shutdown` resolves. Requests in progress may then end within the grace period of
/// the configuration. `on_bound` receives the address once the socket listens.
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
