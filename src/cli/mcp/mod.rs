//! `warpgauge mcp`: serves an agent over standard input and output, on this machine or through a
//! server.

mod at_server;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use self::at_server::ServerDesk;
use super::args::{Patience, Target};
use super::signals::EndSignals;
use super::terminal::Terminal;
use super::{CliError, local};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_mcp::{AgentServer, CallPermits, JobBackend, JobDurability, ServiceBackend, serve};
use warpgauge_service::{Caller, LocalService, ProcessRole};

/// At the end, maximum time for which the command waits until cancelled calls have cancelled their
/// jobs.
const LAST_CALLS: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub patience: Patience,
}

pub(super) fn run(args: &McpArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    let client = args.target.client()?;
    let runtime = local::runtime()?;
    let outcome = runtime.block_on(async {
        let mut signals = EndSignals::listen()?;
        let (backend, service): (Arc<dyn JobBackend>, Option<LocalService>) = match client {
            Some(client) => {
                (Arc::new(ServerDesk::new(client, args.patience.seconds, terminal)), None)
            }
            None => {
                let service = local::start(config, ProcessRole::Command).await?;
                let here = service.services().clone();
                (
                    Arc::new(ServiceBackend::new(here, Caller::local(), JobDurability::WhileHere)),
                    Some(service),
                )
            }
        };
        let calls = CallPermits::default();
        let server = AgentServer::of(backend, calls.clone());
        let mut exit = Exit::Success;
        let end = async {
            signals.next().await;
            exit = Exit::Interrupted;
        };
        let served = serve(server, tokio::io::stdin(), tokio::io::stdout(), end).await;
        calls.ended(LAST_CALLS).await;
        if let Some(service) = service {
            service.shutdown(Duration::ZERO).await;
        }
        served.map_err(|error| CliError::Agent(Box::new(error)))?;
        Ok(exit)
    });
    // A blocking read of standard input cannot be cancelled.
    runtime.shutdown_background();
    outcome
}
