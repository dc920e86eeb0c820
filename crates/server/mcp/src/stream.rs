//! Serves an agent over two streams, such as a program's standard input and output. Each line is a
//! message.

use std::future::Future;
use std::pin::pin;

use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::MAX_MESSAGE_BYTES;
use super::server::AgentServer;

/// Reason why an agent could not be served.
#[derive(Debug, thiserror::Error)]
#[error("the agent did not begin with the handshake of the Model Context Protocol")]
pub struct StreamError(#[source] Box<ServerInitializeError>);

/// Serves one agent until the agent closes its stream, or until `end` resolves. Calls in progress
/// are then cancelled, together with their jobs.
///
/// # Errors
/// The agent does not begin with the protocol's handshake.
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
        // The agent disconnected before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StreamError(Box::new(error))),
    };
    let cancel = running.cancellation_token();
    let mut served = pin!(running.waiting());
    tokio::select! {
        _ = &mut served => {}
        () = end => {
            cancel.cancel();
            // The result does not matter, because `end` stopped the server.
            let _ = served.await;
        }
    }
    Ok(())
}
