//! How far the server is from its end: what all that waits looks at.

/// How far the server is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not in sight.
    Serving,
    /// No new connections; requests that run may end.
    Draining,
    /// The grace is over: requests that still run are answered with 503.
    Over,
}
