//! The phases of a shutdown: [`Phase`].

/// Progress of the server's shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No shutdown has begun.
    Serving,
    /// The server accepts no new connections; running requests may end.
    Draining,
    /// The grace period is over: running requests are answered with 503.
    Over,
}
