//! A warpgauge server that is started for one task: [`Server`].

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Maximum time to wait until the server prints its address.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A running server. Dropping this value stops the server.
pub struct Server {
    child: Child,
    /// Base address, e.g. `http://127.0.0.1:41234`.
    pub url: String,
}

impl Server {
    /// Starts `program serve` on a free port, and waits until the server accepts connections. The
    /// output of the server is written to `log`.
    pub fn start(program: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        Self::start_command(Command::new(program), arguments, log)
    }

    /// Works like [`Self::start`], with a command that may set environment variables.
    pub fn start_command(mut program: Command, arguments: &[String], log: &Path) -> Result<Self> {
        let name = program.get_program().to_owned();
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut child = program
            .args(["serve", "--host", "127.0.0.1", "--port", "0"])
            .args(arguments)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", name.display()))?;
        let (sender, receiver) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            forward(stdout, file.try_clone()?, sender.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            forward(stderr, file, sender);
        }
        // When the server closes its output, both senders are dropped. So the wait ends at once if
        // the server dies.
        match receiver.recv_timeout(START_TIMEOUT) {
            Ok(url) => Ok(Self { child, url }),
            Err(_) => {
                let _ = child.kill();
                let status = child.wait()?;
                bail!(
                    "the server did not print its address ({status}); its output is in {}:\n{}",
                    log.display(),
                    std::fs::read_to_string(log).unwrap_or_default()
                );
            }
        }
    }

    /// Returns the server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server ends without being stopped.
    pub fn wait(mut self) -> Result<()> {
        let status = self.child.wait().context("cannot wait for the server")?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // SIGTERM lets the server end its children. The standard library can send only SIGKILL.
        let asked =
            Command::new("sh").args(["-c", &format!("kill -TERM {}", self.child.id())]).status();
        if !asked.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Copies lines to the log. Sends the first server address that occurs in a line.
fn forward(stream: impl Read + Send + 'static, mut log: File, sender: Sender<String>) {
    thread::spawn(move || {
        let mut sender = Some(sender);
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            // The loop continues to read if the disk is full, because a full pipe would block the
            // server.
            let _ = writeln!(log, "{line}");
            if let Some(url) = address(&line)
                && let Some(sender) = sender.take()
            {
                let _ = sender.send(url);
            }
        }
    });
}

/// Returns the address in `warpgauge 0.1.0 listens on http://127.0.0.1:8000`.
fn address(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("listens on ")?;
    let url = rest.split([' ', '"', '\'', '\u{1b}']).next()?;
    let url = url.trim_end_matches(['/', '.', ',']);
    url.starts_with("http://").then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn finds_the_address_in_the_announcement() {
        let line = "warpgauge 0.1.0 listens on http://127.0.0.1:41234";
        assert_eq!(address(line).as_deref(), Some("http://127.0.0.1:41234"));
        assert_eq!(address("listens on nothing"), None);
        assert_eq!(address("  docs     http://127.0.0.1:1/docs"), None);
    }
}
