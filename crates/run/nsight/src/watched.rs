//! Runs a tool around a submitted program. The program may create files in the tool's directory, so
//! their number and size are limited.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::time::{Instant, interval, sleep_until};

use warpgauge_model::{Cause, Unavailable};
use warpgauge_sandbox::contained::{ContainedProcess, ProcessEnd, ProcessLaunch};

/// Maximum total size of a run's files, including the tool's files, bytes.
const MOST_BYTES: u64 = 2 << 30;

/// Maximum number of files and directories of a run.
const MOST_ENTRIES: usize = 20_000;

/// Interval between checks of the directory's size.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs a tool until it ends or the time limit is reached. `directory` is the only directory that
/// the tool and the program may write to.
///
/// # Errors
/// Fails if the tool cannot be started, or if the directory exceeds a limit.
pub(crate) async fn run_watched(
    launch: &ProcessLaunch,
    directory: &Path,
    time_limit: Duration,
) -> Result<ProcessEnd, Unavailable> {
    let started = ContainedProcess::start(launch);
    bounded(running(started, launch)?, directory, time_limit, MOST_BYTES, MOST_ENTRIES).await
}

/// Like [`run_watched`], for a served program. The program communicates through `stdin`; the caller
/// holds the other end.
///
/// # Errors
/// Fails like [`run_watched`].
pub(crate) async fn run_served(
    launch: &ProcessLaunch,
    stdin: OwnedFd,
    directory: &Path,
    time_limit: Duration,
) -> Result<ProcessEnd, Unavailable> {
    let started = ContainedProcess::start_with(launch, Stdio::from(stdin));
    bounded(running(started, launch)?, directory, time_limit, MOST_BYTES, MOST_ENTRIES).await
}

fn running(
    started: io::Result<ContainedProcess>,
    launch: &ProcessLaunch,
) -> Result<ContainedProcess, Unavailable> {
    started.map_err(|error| {
        Cause::ToolDied.because(format!("cannot start {}: {error}", launch.program.name()))
    })
}

async fn bounded(
    mut running: ContainedProcess,
    directory: &Path,
    time_limit: Duration,
    bytes: u64,
    entries: usize,
) -> Result<ProcessEnd, Unavailable> {
    let deadline = Instant::now() + time_limit;
    tokio::select! {
        () = running.exited() => {}
        () = sleep_until(deadline) => {}
        () = exceeded(directory.to_owned(), bytes, entries) => {
            running.stop().await;
            let text = format!(
                "the program wrote more than {} MiB or {entries} files, the limits of a run under a \
                 tool",
                bytes >> 20
            );
            return Err(Cause::ApplicationFailed.because(text));
        }
    }
    Ok(running.finish(deadline).await)
}

/// Completes when a directory contains more than `bytes` bytes or `entries` entries.
async fn exceeded(directory: PathBuf, bytes: u64, entries: usize) {
    let mut looks = interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        let directory = directory.clone();
        let look = tokio::task::spawn_blocking(move || is_within(&directory, bytes, entries));
        // A directory that cannot be read has been removed and does not grow.
        if let Ok(Ok(false)) = look.await {
            return;
        }
    }
}

/// Returns whether a directory tree has at most `bytes` bytes on the disk and at most `entries`
/// entries. Does not follow links.
fn is_within(directory: &Path, bytes: u64, entries: usize) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let mut open = vec![directory.to_owned()];
    let (mut seen, mut size) = (0, 0_u64);
    while let Some(directory) = open.pop() {
        // A directory that was just removed is empty.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            seen += 1;
            size = size.saturating_add(facts.blocks().saturating_mul(512));
            if seen > entries || size > bytes {
                return Ok(false);
            }
            if facts.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_sandbox::contained::tool;

    const LONG: Duration = Duration::from_secs(60);

    async fn run(script: &str, limit: Duration) -> Result<ProcessEnd, Unavailable> {
        let directory = tempfile::tempdir().unwrap();
        let program = tool("/bin/sh", directory.path()).arg("-c").arg(script);
        let running = ContainedProcess::start(&ProcessLaunch::new(program)).unwrap();
        bounded(running, directory.path(), limit, 1 << 20, 100).await
    }

    #[tokio::test]
    async fn what_writes_without_end_is_stopped_and_the_rest_is_not() {
        let end = run("head -c 100000 /dev/zero > some; echo done", LONG).await.unwrap();
        assert_eq!((end.stdout.text.as_str(), end.succeeded()), ("done\n", true));
        for script in [
            "head -c 5000000 /dev/zero > much; exec tail -f /dev/null",
            "mkdir d; i=0; while [ $i -lt 200 ]; do : > d/$i; i=$((i + 1)); done; exec tail -f /dev/null",
        ] {
            let why = run(script, LONG).await.unwrap_err();
            assert_eq!(why.code, "application_failed", "{script}: {}", why.reason);
        }
        let end = run("exec tail -f /dev/null", Duration::from_millis(300)).await.unwrap();
        assert!(end.status.is_none());
    }
}
