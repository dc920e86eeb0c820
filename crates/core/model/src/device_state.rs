//! State of a device.

use std::fmt::{self, Display, Formatter};

/// State of a device. `Display` formats it for responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// The device's first worker is starting.
    Starting,
    /// A worker is ready, or runs a job.
    Ready,
    /// Workers cannot be started. The fleet retries at intervals.
    Failed { reason: String },
}

impl Display for DeviceState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Ready => f.write_str("ready"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
        }
    }
}
