//! `warpgauge serve`: runs the HTTP API until a signal ends it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::signals::EndSignals;
use super::terminal::Terminal;
use super::{CliError, format, http, local};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_report::Warning;
use warpgauge_sandbox::{own_root, privileges};
use warpgauge_service::{ProcessRole, ServiceStatus};

pub(super) fn run(config: Config, terminal: Terminal) -> Result<Exit, CliError> {
    // The server writes submitted content, which other users of this machine must not be able to
    // read.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let runtime = local::runtime()?;
    runtime.block_on(async {
        // The handlers are installed first, so that signals during a slow start are not lost.
        let signals = EndSignals::listen()?;
        let service = Arc::new(local::start(&config, ProcessRole::Server).await?);
        let status = service.services().machine.status();
        let server = &config.server;
        let has_keys = !server.api_keys.is_empty() || !server.admin_keys.is_empty();
        let names = names_line(has_keys, &server.allowed_hosts);
        let announce = move |address: SocketAddr| {
            if !terminal.quiet {
                // If no process reads standard output, the server continues.
                let _ = terminal.print(&(announcement(address, &status) + &names));
            }
        };
        let serving = service.services().clone();
        let (ending, grace) = (Arc::clone(&service), config.server.shutdown_grace_s);
        let (asked, told) = tokio::sync::oneshot::channel();
        let end = async move {
            signals.graceful().await;
            ending.drain();
            let _ = asked.send(Instant::now());
        };
        if privileges::is_root() {
            let Warning { message, remedy, .. } = Warning::runs_as_root();
            tracing::warn!("{message}; {remedy}");
        }
        tokio::task::spawn_blocking(|| {
            if let Some(reason) = own_root::visible_because() {
                let Warning { message, remedy, .. } = Warning::paths_are_visible(reason);
                tracing::warn!("{message}; {remedy}");
            }
        });
        let served = http::serve(&config.server, serving, end, announce).await;
        // Jobs for which no caller waits get the rest of the grace period.
        let since = told.await.map_or(Duration::MAX, |asked| asked.elapsed());
        let grace = Duration::try_from_secs_f64(grace).unwrap_or(Duration::MAX);
        service.shutdown(grace.saturating_sub(since)).await;
        served?;
        Ok(Exit::Success)
    })
}

/// Returns the lines that the server prints once it listens.
fn announcement(address: SocketAddr, status: &ServiceStatus) -> String {
    let mut text = format!(
        "warpgauge {} listens on http://{address}\n  docs     http://{address}/docs\n",
        status.version
    );
    for view in &status.devices {
        text.push_str(&format!("  device   {}\n", format::device(&view.device)));
    }
    if status.devices.is_empty() {
        text.push_str("  device   none: kernels can be compiled but not run\n");
    }
    for compiler in &status.compilers {
        text.push_str(&format!("  compiler {compiler}\n"));
    }
    if status.compilers.is_empty() {
        text.push_str("  compiler none: `warpgauge toolchain install` installs one\n");
    }
    text.push_str(&format!("  sandbox  {}\n", status.compile_sandbox));
    text
}

/// Returns a line with the names that requests may use in `Host`, if the server rejects other
/// names.
fn names_line(has_keys: bool, allowed_hosts: &[String]) -> String {
    if has_keys && allowed_hosts.is_empty() {
        return String::new();
    }
    let known = ["localhost", "its addresses"].into_iter();
    let known = known.chain(allowed_hosts.iter().map(String::as_str));
    let known = known.collect::<Vec<_>>().join(", ");
    format!(
        "  names    {known}; for another `Host`: export WARPGAUGE_ALLOWED_HOSTS=gpu.example.com\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_announced_where_others_are_refused() {
        assert!(names_line(false, &[]).contains("WARPGAUGE_ALLOWED_HOSTS="));
        assert_eq!(names_line(true, &[]), "");
        let allowed = ["gpu.example.org".to_owned()];
        assert!(names_line(true, &allowed).contains("its addresses, gpu.example.org;"));
    }

    #[test]
    fn the_announcement_says_what_is_missing() {
        let status = ServiceStatus {
            version: "9.9.9".to_owned(),
            uptime_s: 0.0,
            devices: Vec::new(),
            queue_depth: 0,
            queue_capacity: 1,
            jobs_by_state: Default::default(),
            average_job_age_s: 0.0,
            compilers: Vec::new(),
            compile_sandbox: "landlock enforced".to_owned(),
        };
        let text = announcement(([127, 0, 0, 1], 8000).into(), &status);
        assert!(text.starts_with("warpgauge 9.9.9 listens on http://127.0.0.1:8000\n"), "{text}");
        assert!(text.contains("http://127.0.0.1:8000/docs"), "{text}");
        assert!(text.contains("device   none"), "{text}");
        assert!(text.contains("toolchain install"), "{text}");
    }
}
