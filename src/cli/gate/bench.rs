//! Where comparisons are made: in this process, or at a server.

use crate::cli::args::Target;
use crate::cli::local::Session;
use crate::cli::remote::{self, RemoteError};
use crate::cli::{CliError, json};
use crate::config::Config;
use crate::contract::CompareRequest;
use crate::pipeline::{DeviceView, ServiceError, Submission};
use crate::report::CompareResponse;
use crate::worker::protocol::DeviceKind;

/// A place that compares.
pub(super) enum Bench<'a> {
    /// This process.
    Local(Box<Session>),
    /// A server.
    Remote { target: &'a Target, server: &'a str },
}

impl<'a> Bench<'a> {
    /// Starts the pipeline here unless a server is named.
    pub(super) fn open(target: &'a Target, config: &Config) -> Result<Self, CliError> {
        Ok(match &target.server {
            Some(server) => {
                // An address that is none is told before anything else is done.
                remote::endpoint(server, "/compare")?;
                Self::Remote { target, server }
            }
            None => Self::Local(Box::new(Session::start(config)?)),
        })
    }

    /// Whether it is known already that there is nothing but the emulated device.
    pub(super) fn counts(&mut self) -> Result<bool, CliError> {
        let Self::Local(session) = self else {
            return Ok(false);
        };
        let status = session.call(|service| async move { Ok(service.status()) })?;
        let emulated = |view: &DeviceView| view.device.kind == DeviceKind::Emulator;
        Ok(!status.devices.is_empty() && status.devices.iter().all(emulated))
    }

    /// Makes one comparison.
    pub(super) fn compare(
        &mut self,
        request: &CompareRequest,
    ) -> Result<CompareResponse, CliError> {
        match self {
            Self::Local(session) => {
                let request = request.clone();
                session.call(|service| async move {
                    Ok(service.compare(request, Submission::local()).await?)
                })
            }
            Self::Remote { target, server } => {
                let body = json::tree("comparison", request)?;
                Ok(remote::post(target, server, "/compare", &body)?.1)
            }
        }
    }
}

/// Whether an error means that no further comparison can succeed: it says nothing of the case.
pub(super) fn is_fatal(error: &CliError) -> bool {
    match error {
        CliError::Remote(RemoteError::Refused { status, .. }) => matches!(status, 401 | 403 | 404),
        CliError::Remote(_) => true,
        CliError::Service(error) => {
            matches!(error, ServiceError::Unavailable(_) | ServiceError::ShuttingDown)
        }
        CliError::Interrupted => true,
        _ => false,
    }
}
