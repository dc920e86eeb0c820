//! SIGINT and SIGTERM of a server: the first asks, the second insists.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CliError;
use super::terminal::write_error_stream;
use crate::exit::Exit;

/// The two signals that end a server.
pub(super) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl EndSignals {
    /// Takes over both signals. Must run inside a runtime.
    pub(super) fn listen() -> Result<Self, CliError> {
        let take = |kind| {
            signal(kind).map_err(|source| CliError::System { operation: "handle signals", source })
        };
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    /// Waits for the next of them.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Resolves at the first signal; a second one then ends the process at once, children included,
    /// since theirs is the death of their parent.
    pub(super) async fn graceful(mut self) {
        self.next().await;
        write_error_stream(
            "warpgauge: finishing what runs; a second signal ends everything at once",
        );
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(i32::from(Exit::Interrupted.code()));
        });
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn either_signal_is_noticed() {
        let mut signals = EndSignals::listen().unwrap();
        for signal in [Signal::TERM, Signal::INT] {
            kill_process(getpid(), signal).unwrap();
            signals.next().await;
        }
    }
}
