//! Whether a device can be used.

use std::fmt::{self, Display, Formatter};

/// Whether a device can be used. It is shown as answers have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// Its first worker is being started.
    Starting,
    /// A worker is ready, or runs a job.
    Ready,
    /// Workers cannot be started; the fleet tries again from time to time.
    Failed {
        /// Why.
        reason: String,
    },
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
