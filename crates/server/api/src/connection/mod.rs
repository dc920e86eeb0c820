//! Connections of clients: their number, their deadlines, and how they end.
//!
//! - `deadlines`: how long clients may take
//! - `graceful_close`: bodies that are not read to their end
//! - `metered`: sockets and answers that record what the client does
//! - `table`: all connections, and which one makes room for another

pub(crate) mod deadlines;
pub(crate) mod graceful_close;
pub(crate) mod metered;
pub(crate) mod table;
