//! The phases of a shutdown: [`Phase`].

/// Phase of the server's shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No shutdown has begun.
    Serving,
    /// The server accepts no new connections. Requests in progress may end.
    Draining,
    /// The grace period is over. Requests in progress are answered with 503.
    Over,
}
