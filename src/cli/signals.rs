//! SIGINT and SIGTERM, of a server and of who waits for one: the first asks, the second insists.

use std::sync::{Mutex, Once, PoisonError};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CliError;
use super::terminal::write_error_stream;
use crate::exit::Exit;
use warpgauge_client::Interrupt;

/// The two signals that end a process.
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

/// What ends the present wait for a server.
static WAITING: Mutex<Option<Interrupt>> = Mutex::new(None);

/// Hands SIGINT and SIGTERM to the latest wait for a server: the first asks it to end, the second ends the process at
/// once.
pub(super) fn interrupts(interrupt: Interrupt) {
    static LISTENER: Once = Once::new();
    *WAITING.lock().unwrap_or_else(PoisonError::into_inner) = Some(interrupt);
    LISTENER.call_once(|| {
        // Made ready in a thread: the request need not wait for it.
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Where signals cannot be had, they end the process as ever.
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let Ok(mut signals) = EndSignals::listen() else { return };
                signals.next().await;
                let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner).take();
                // After the answer it ends what is done with that.
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
