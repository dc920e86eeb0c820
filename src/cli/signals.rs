//! Handles SIGINT and SIGTERM in the server, and in commands that wait for a server. The first
//! signal requests an end, the second forces it.

use std::sync::{Mutex, Once, PoisonError};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CliError;
use super::terminal::write_error_stream;
use crate::exit::Exit;
use warpgauge_client::Interrupt;

/// Streams that receive SIGINT and SIGTERM.
pub(super) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl EndSignals {
    /// Replaces the default action of both signals. It must be called inside an async runtime.
    pub(super) fn listen() -> Result<Self, CliError> {
        let take = |kind| {
            signal(kind).map_err(|source| CliError::System { operation: "handle signals", source })
        };
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    /// Waits for the next SIGINT or SIGTERM.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Resolves at the first signal. A second signal ends the process and its children at once.
    pub(super) async fn graceful(mut self) {
        self.next().await;
        write_error_stream(
            "warpgauge: finishing running work; a second signal ends everything at once",
        );
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(i32::from(Exit::Interrupted.code()));
        });
    }
}

/// Function that interrupts the current wait for a server.
static WAITING: Mutex<Option<Interrupt>> = Mutex::new(None);

/// Passes SIGINT and SIGTERM to the most recent wait for a server. The first signal requests an
/// end; the second ends the process at once.
pub(super) fn interrupts(interrupt: Interrupt) {
    static LISTENER: Once = Once::new();
    *WAITING.lock().unwrap_or_else(PoisonError::into_inner) = Some(interrupt);
    LISTENER.call_once(|| {
        // A separate thread installs the handlers, so that the request does not wait for them.
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // If no handlers can be installed, the signals end the process.
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let Ok(mut signals) = EndSignals::listen() else { return };
                signals.next().await;
                let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner).take();
                // If the wait has already ended, the first signal ends the process.
                if waiting.is_some_and(|interrupt| interrupt()) {
                    signals.next().await;
                }
                std::process::exit(i32::from(Exit::Interrupted.code()));
            });
        });
    });
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
