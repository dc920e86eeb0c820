//! Errors of commands ([`CliError`]), and the exit code of each.

use std::path::PathBuf;

use super::contract_file::ContractFileError;
use super::gate::GateError;
use super::io_words;
use super::outputs::OutputError;
use crate::exit::{Exit, are_unmet};
use warpgauge_api::ServeError;
use warpgauge_client::ClientError;
use warpgauge_config::ConfigError;
use warpgauge_service::{ExecError, Problem, ServiceError};
use warpgauge_watch::FolderError;
use warpgauge_watch::mailbox::{GitError, MailboxError};

/// Error of a command. `Display` describes the problem and its place; `source` is the cause.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The contract file cannot be read, or does not contain a contract.
    #[error(transparent)]
    ContractFile(#[from] ContractFileError),
    /// The local service returned no report.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The remote service returned no report.
    #[error(transparent)]
    Remote(ClientError),
    /// The folder cannot be watched.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The mailbox cannot be served, or a kernel cannot be sent through it.
    #[error(transparent)]
    Mailbox(MailboxError),
    /// Outputs cannot be written to files.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The gate could not reach a verdict.
    #[error(transparent)]
    Gate(Box<GateError>),
    /// A file cannot be written.
    #[error("could not write {}", path.display())]
    Write {
        /// The file that cannot be written.
        path: PathBuf,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error("could not {operation}")]
    System {
        /// The operation that failed.
        operation: &'static str,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The HTTP server failed.
    #[error("the HTTP server failed")]
    Server(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The program that started `warpgauge mcp` does not follow the Model Context Protocol.
    #[error("no agent could be served")]
    Agent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An option is not valid in combination with the other options, or on this machine.
    #[error("{0}")]
    Usage(String),
    /// A kernel file does not compile.
    #[error("{0}")]
    NotCompiled(String),
    /// This machine lacks something that the command needs.
    #[error("{0}")]
    Unavailable(String),
    /// SIGINT ended the command.
    #[error("interrupted")]
    Interrupted,
    /// A bug in warpgauge.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<GateError> for CliError {
    fn from(error: GateError) -> Self {
        CliError::Gate(Box::new(error))
    }
}

impl From<MailboxError> for CliError {
    fn from(error: MailboxError) -> Self {
        match error {
            MailboxError::Folder(error) => Self::Folder(error),
            other => Self::Mailbox(other),
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Interrupted => CliError::Interrupted,
            other => CliError::Remote(other),
        }
    }
}

impl CliError {
    pub fn exit(&self) -> Exit {
        match self {
            CliError::Config(_)
            | CliError::Usage(_)
            | CliError::ContractFile(_)
            | CliError::Mailbox(MailboxError::Git(GitError::Address(_) | GitError::Branch(_)))
            | CliError::Folder(FolderError::Watched { .. } | FolderError::NotInside { .. })
            | CliError::Agent(_) => Exit::Usage,
            CliError::Service(error) => Exit::of_service_error(error),
            CliError::Remote(error) => Exit::of_client_error(error),
            // The address comes from the configuration, so this is not a problem of the machine.
            CliError::Server(error)
                if matches!(error.downcast_ref(), Some(ServeError::OpenToOthers { .. })) =>
            {
                Exit::Usage
            }
            CliError::Output(_)
            | CliError::Write { .. }
            | CliError::System { .. }
            | CliError::Unavailable(_)
            | CliError::Folder(FolderError::Io { .. })
            | CliError::Server(_) => Exit::Environment,
            // The gate has separate exit codes. None of its errors is a verdict.
            CliError::Gate(error) if matches!(**error, GateError::Render(_)) => Exit::Internal,
            CliError::Gate(_) => Exit::Usage,
            CliError::Mailbox(MailboxError::Interrupted) => Exit::Interrupted,
            CliError::Mailbox(MailboxError::Late(_)) => Exit::Busy,
            CliError::Mailbox(_) => Exit::Environment,
            CliError::NotCompiled(_) => Exit::NotCompiled,
            CliError::Interrupted => Exit::Interrupted,
            CliError::Internal(_) => Exit::Internal,
        }
    }

    /// Returns the invalid fields of a contract.
    pub(super) fn problems(&self) -> &[Problem] {
        match self {
            CliError::Service(ServiceError::Exec(ExecError::Invalid(problems))) => problems,
            _ => &[],
        }
    }

    /// Returns the error and its causes, one per line, for standard error.
    pub(super) fn render(&self) -> String {
        use std::error::Error;
        let mut text = match self {
            CliError::Service(ServiceError::Exec(ExecError::Invalid(problems))) => {
                let mut text = match are_unmet(problems) {
                    true => "this machine lacks what the contract requires".to_owned(),
                    false => "the contract is not valid".to_owned(),
                };
                for problem in problems {
                    text.push_str(&format!("\n  {}: {}", problem.path, problem.message));
                }
                text
            }
            CliError::Service(ServiceError::NoSuchBaseline(name)) => {
                format!("there is no baseline `{name}`; `warpgauge baselines list` lists them")
            }
            other => other.to_string(),
        };
        // An error that only wraps its cause has the same text as the cause. The text is printed
        // once.
        let mut cause = self.source();
        let writes = matches!(self, CliError::Write { .. } | CliError::Output(_));
        while let Some(error) = cause {
            let file = error.downcast_ref::<std::io::Error>();
            let words = file.and_then(|error| io_words::of(error, writes));
            let line = words.map_or_else(|| error.to_string(), str::to_owned);
            if !text.contains(&line) {
                text.push_str(&format!("\n  because: {line}"));
            }
            cause = error.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_model::FailureCode;
    use warpgauge_service::Problem;

    #[test]
    fn causes_are_shown_once_and_problems_one_per_line() {
        let source = std::io::Error::other("disk full");
        let write = CliError::Write { path: "a".into(), source };
        assert_eq!(write.render(), "could not write a\n  because: disk full");
        let problem = |path: &str| Problem {
            path: path.to_owned(),
            code: FailureCode::ArgumentType,
            message: "wrong".to_owned(),
        };
        let invalid = ServiceError::invalid(vec![problem("a"), problem("b")]);
        assert_eq!(
            CliError::from(invalid).render(),
            "the contract is not valid\n  a: wrong\n  b: wrong"
        );
    }

    #[test]
    fn what_a_machine_lacks_is_no_mistake_of_the_contract() {
        let problem = |code| Problem {
            path: "requires".to_owned(),
            code,
            message: "not available here: language `triton` is missing: get it".to_owned(),
        };
        let lacking =
            CliError::from(ServiceError::invalid(vec![problem(FailureCode::UnmetRequirements)]));
        assert_eq!(lacking.exit(), Exit::Environment);
        assert!(lacking.render().starts_with("this machine lacks what the contract requires\n"));
        let both = CliError::from(ServiceError::invalid(vec![
            problem(FailureCode::UnmetRequirements),
            problem(FailureCode::ArgumentType),
        ]));
        assert_eq!(both.exit(), Exit::Usage);
        let refused = |code: &str| {
            CliError::Remote(ClientError::Refused {
                url: "u".to_owned(),
                status: 422,
                message: "m".to_owned(),
                problems: vec![code.to_owned()],
                retry_after: None,
            })
        };
        assert_eq!(refused("unmet_requirements").exit(), Exit::Environment);
        assert_eq!(refused("argument_type").exit(), Exit::Usage);
    }

    #[test]
    fn a_server_without_keys_is_the_operators_mistake() {
        let open = ServeError::OpenToOthers { address: ([0, 0, 0, 0], 1).into() };
        assert_eq!(CliError::Server(Box::new(open)).exit(), Exit::Usage);
        let other = std::io::Error::other("x");
        assert_eq!(CliError::Server(Box::new(other)).exit(), Exit::Environment);
    }
}
