//! Listens for connections, serves them within limits, and shuts down gracefully: [`serve`].
//!
//! poem's server sets neither TCP_NODELAY nor a header timeout, does not limit the number of
//! connections, and spins when the process has no file descriptors left. Therefore this module
//! drives connections itself. `connection` limits their number, and ends those whose clients miss a
//! deadline. The protocol is HTTP/1.1 only: HTTP/2 needs TLS in practice, which a proxy in front of
//! the server provides.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use poem::Endpoint;
use poem::http::uri::Scheme;
use poem::web::{LocalAddr, RemoteAddr};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::app::app;
use super::connection::deadlines::Deadlines;
use super::connection::graceful_close;
use super::connection::metered::{MeteredBody, MeteredStream};
use super::connection::table::{ConnectionSlot, Connections};
use super::middleware::auth::Keys;
use super::phase::Phase;
use warpgauge_config::ServerConfig;
use warpgauge_service::Services;

/// Maximum size of a request head, bytes; bodies are read in pieces of at most this size.
const MAX_HEAD_BYTES: usize = 256 << 10;

/// Maximum time for which sent bytes may stay unacknowledged.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of unsent bytes of an answer that the operating system buffers. Fast readers need
/// no more, and clients that do not read occupy no more memory.
const MAX_UNSENT_BYTES: u32 = 256 << 10;

/// Pause after a connection could not be accepted, e.g. when file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time for writing the last answers, after requests were informed of the shutdown.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Reason why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines can reach the address, and no key is required.
    #[error(
        "refusing to listen on {address}: other machines can reach it, and no API key is \
         set; set a key, which callers send as X-API-Key (`export WARPGAUGE_API_KEYS=$(openssl rand -hex 16)`, or \
         server.api_keys), or listen on this machine alone (`export HOST=127.0.0.1`, or server.host)"
    )]
    OpenToOthers {
        /// The address that was rejected.
        address: SocketAddr,
    },
    /// The host name cannot be resolved.
    #[error("cannot resolve server.host = {host:?}")]
    Resolve {
        /// The name that cannot be resolved.
        host: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {host}:{port}; is another server running there?")]
    Bind {
        host: String,
        port: u16,
        /// Cause of the failure.
        source: std::io::Error,
    },
}

/// Serves until `shutdown` resolves, and then for at most `config.shutdown_grace_s` seconds more.
///
/// `on_bound` receives the address. If `config.port` is 0, the address contains a free port.
///
/// # Errors
///
/// The address cannot be bound, or other machines can reach it and there is no API key.
pub async fn serve(
    config: &ServerConfig,
    service: Services,
    shutdown: impl Future<Output = ()>,
    on_bound: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let listener = listen(config).await?;
    let (phase, phases) = watch::channel(Phase::Serving);
    let app = Arc::new(app(config, service, phases.clone()));
    let table = Connections::new(config.max_connections, Deadlines::new(config));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "listening");
        on_bound(address);
    }
    let mut deadlines = pin!(table.keep_deadlines());
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            () = &mut deadlines => {}
            (stream, peer) = accept(&listener, &table) => {
                let slot = tokio::select! {
                    biased;
                    () = &mut shutdown => break,
                    () = &mut deadlines => continue,
                    slot = table.slot() => slot,
                };
                let connection = Connection { stream, peer, phases: phases.clone(), slot };
                connections.spawn(connection.serve(Arc::clone(&app)));
            }
        }
    }
    drop(listener);
    tracing::info!(connections = connections.len(), "shutting down");
    let grace = Duration::try_from_secs_f64(config.shutdown_grace_s).unwrap_or(Duration::MAX);
    drain(phase, connections, grace).await;
    Ok(())
}

/// Binds the configured address. A public address requires an API key.
async fn listen(config: &ServerConfig) -> Result<TcpListener, ServeError> {
    let (host, port) = (config.host.as_str(), config.port);
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|source| ServeError::Resolve { host: host.to_owned(), source })?
        .collect();
    if Keys::new(config).is_empty()
        && let Some(address) = addresses.iter().find(|address| !address.ip().is_loopback())
    {
        return Err(ServeError::OpenToOthers { address: *address });
    }
    TcpListener::bind(addresses.as_slice()).await.map_err(|source| ServeError::Bind {
        host: host.to_owned(),
        port,
        source,
    })
}

async fn accept(listener: &TcpListener, table: &Connections) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // The process may have no file descriptor left.
                table.make_room();
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Lets requests end within `grace`, then answers the remaining ones with 503, then closes the
/// remaining connections.
async fn drain(phase: watch::Sender<Phase>, mut connections: JoinSet<()>, grace: Duration) {
    phase.send_replace(Phase::Draining);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(grace, all_ended).await.is_ok() {
        return;
    }
    tracing::warn!(
        connections = connections.len(),
        "grace period over; failing requests that still run"
    );
    phase.send_replace(Phase::Over);
    let all_answered = async { while connections.join_next().await.is_some() {} };
    if timeout(LAST_ANSWERS, all_answered).await.is_err() {
        connections.shutdown().await;
    }
}

/// A client's connection.
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    phases: watch::Receiver<Phase>,
    slot: ConnectionSlot,
}

impl Connection {
    async fn serve(self, app: Arc<impl Endpoint<Output = poem::Response> + 'static>) {
        self.set_options();
        let Ok(local) = self.stream.local_addr() else {
            return;
        };
        let peer = self.peer;
        let state = Arc::clone(&self.slot.connection);
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let (app, state) = (Arc::clone(&app), Arc::clone(&state));
            let (local, remote) = (LocalAddr(local.into()), RemoteAddr(peer.into()));
            async move {
                let _under_way = state.begin();
                let mut request: poem::Request = (request, local, remote, Scheme::HTTP).into();
                request.set_data(state);
                let request = graceful_close::unless_read(request);
                let answer: hyper::Response<_> = app.get_response(request).await.into();
                let answer = answer.map(|body| MeteredBody { body, _under_way });
                Ok::<_, Infallible>(answer)
            }
        });
        let state = Arc::clone(&self.slot.connection);
        let stream = MeteredStream { stream: self.stream, connection: Arc::clone(&state) };
        // `connection::table` enforces the deadline for the head, together with all other
        // deadlines.
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let mut phases = self.phases;
        let draining = async move {
            // If the server has ended, this returns an error, which ends the connection as well.
            let _ = phases.wait_for(|phase| *phase != Phase::Serving).await;
        };
        let served = async {
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = draining => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        let ended = tokio::select! {
            ended = served => ended,
            () = state.told_to_end() => return,
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %self.peer, %error, "connection broke off");
        }
    }

    /// Sets socket options. The server also works without them, with drawbacks. Without the first,
    /// answers may wait 40 ms for an acknowledgement. Without the second, the operating system's
    /// longer timeout applies. Without the third, clients that do not read occupy more memory.
    fn set_options(&self) {
        let nodelay = self.stream.set_nodelay(true);
        let send_ms = SEND_TIMEOUT.as_millis() as u32;
        let send = rustix::net::sockopt::set_tcp_user_timeout(&self.stream, send_ms);
        let unsent = SockRef::from(&self.stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
        if let Err(error) = nodelay.and(send.map_err(Into::into)).and(unsent) {
            tracing::debug!(%error, "cannot set socket options");
        }
    }
}
