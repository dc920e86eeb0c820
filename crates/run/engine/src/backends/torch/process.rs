//! Judge process: its orders, its answers, and its main loop.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::account::Account;
use super::evaluate::{Evaluation, Judgement};
use super::expected::Computation;
use super::gpu::JudgeDevice;
use crate::error::{self, ExecError};
use warpgauge_torch::{JudgeConnection, JudgeProcess, NotBegun, RunnerSession};

/// An order that the server sends to a judge process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Judge a kernel.
    Evaluate(Box<Evaluation>),
    /// Compute expected outputs of other kernels, into files.
    Compute(Box<Computation>),
}

/// A judge process's answer to an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The report, with paired times and flags.
    Evaluated(Box<Judgement>),
    /// The outputs are in the files. The number is the number of further input sets for which
    /// outputs were computed.
    Computed(usize),
    /// An error; the order has no result. Internal errors contain their full message, because this
    /// process has no log.
    Failed(ExecError),
}

impl Answer {
    /// Converts an error, or an answer to another kind of order, to an error.
    pub(super) fn error(self) -> ExecError {
        match self {
            Self::Failed(ExecError::Internal { message, .. }) => {
                error::internal("judging a torch kernel", &io::Error::other(message))
            }
            Self::Failed(error) => error,
            Self::Evaluated(_) | Self::Computed(_) => {
                let other = io::Error::other("the answer belongs to another order");
                error::internal("judging a torch kernel", &other)
            }
        }
    }
}

/// Runs the child; the program calls this for its hidden subcommand.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match judge(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("torch judge: {error}");
            ExitCode::FAILURE
        }
    }
}

fn judge(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let ordinal = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let device: Option<(u32, PathBuf)> = ordinal.zip(arguments.next().map(PathBuf::from));
    let connection =
        JudgeConnection::confined(device.as_ref().map(|(_, directory)| directory.as_path()))?;
    // The device is opened before any order waits for it.
    let mut device =
        device.map(|(ordinal, directory)| JudgeDevice::open(ordinal, &directory)).transpose();
    for order in 1.. {
        connection.ready()?;
        let Some(judge) = connection.accept()? else { break };
        let may_stay = order < MOST_ORDERS && matches!(&device, Ok(Some(_)));
        if !serve(judge, &mut device, may_stay)? {
            break;
        }
    }
    // The end of the process frees the device's resources at once.
    std::mem::forget(device);
    Ok(())
}

/// Maximum number of orders that a process with a device serves, so that leaks do not accumulate.
const MOST_ORDERS: u32 = 64;

/// Serves one order. Returns whether the process accepts another one.
fn serve(
    mut judge: JudgeProcess,
    device: &mut Result<Option<JudgeDevice>, String>,
    may_stay: bool,
) -> io::Result<bool> {
    let account = Account::begun();
    let order: Order = judge.order()?;
    let begun = std::mem::take(&mut judge.runners).into_iter();
    let sessions: Result<Vec<RunnerSession>, NotBegun> =
        begun.map(|runner| RunnerSession::begin(runner, judge.deadline)).collect();
    let answer = match (sessions, device) {
        (Ok(sessions), Ok(device)) => {
            carried_out(order, sessions, device.as_mut(), (&mut judge, account))
        }
        (Err(NotBegun { with_parent: true, what }), _) => {
            Answer::Failed(ExecError::RunnersLost(what))
        }
        (Err(NotBegun { what, .. }), _) => {
            Answer::Failed(ExecError::Unavailable(format!("PyTorch cannot be used: {what}")))
        }
        (_, Err(what)) => {
            Answer::Failed(ExecError::Unavailable(format!("the device cannot be used: {what}")))
        }
    };
    // A fault may have left the device's context unusable.
    let stays = may_stay && !matches!(answer, Answer::Failed(_));
    judge.answer(&answer, stays)?;
    Ok(stays)
}

fn carried_out(
    order: Order,
    sessions: Vec<RunnerSession>,
    device: Option<&mut JudgeDevice>,
    (judge, account): (&mut JudgeProcess, Account),
) -> Answer {
    let answer = match order {
        Order::Evaluate(evaluation) => evaluation
            .carried_out(sessions, device, (judge.noise.take(), account))
            .map(|judgement| Answer::Evaluated(Box::new(judgement))),
        Order::Compute(computation) => {
            let files = std::mem::take(&mut judge.files);
            computation.carried_out(sessions, files).map(Answer::Computed)
        }
    };
    answer.unwrap_or_else(Answer::Failed)
}
