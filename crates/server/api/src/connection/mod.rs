//! Connections of clients: their maximum number, their deadlines, and how they end.
//!
//! - `deadlines`: how long clients may take
//! - `graceful_close`: draining of unread bodies
//! - `metered`: sockets and answers that record what the client does
//! - `table`: all connections, and which of them is closed to make room for a new one

pub(crate) mod deadlines;
pub(crate) mod graceful_close;
pub(crate) mod metered;
pub(crate) mod table;
