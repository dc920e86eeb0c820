//! Agents at the other end of two streams: a message a line, as of a program's standard input and output.

use std::future::Future;
use std::pin::pin;

use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::MAX_MESSAGE_BYTES;
use super::server::AgentServer;

/// Why nobody was served.
#[derive(Debug, thiserror::Error)]
#[error("the agent did not begin as the protocol wants it")]
pub struct StreamError(#[source] Box<ServerInitializeError>);

/// Serves one agent until it closes its stream, or until `end`. Calls that are under way then are cancelled,
/// and their jobs with them.
///
/// # Errors
/// Where the agent begins with something else than the protocol.
pub async fn serve(
    server: AgentServer,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    end: impl Future<Output = ()>,
) -> Result<(), StreamError> {
    let transport = AsyncRwTransport::new(input, output).with_max_line_length(MAX_MESSAGE_BYTES);
    let mut end = pin!(end);
    let begun = tokio::select! {
        begun = serve_server(server, transport) => begun,
        () = &mut end => return Ok(()),
    };
    let running = match begun {
        Ok(running) => running,
        // It went away without a word.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StreamError(Box::new(error))),
    };
    let cancel = running.cancellation_token();
    let mut served = pin!(running.waiting());
    tokio::select! {
        _ = &mut served => {}
        () = end => {
            cancel.cancel();
            // How it ended does not matter: it was told to.
            let _ = served.await;
        }
    }
    Ok(())
}
