//! Launches that another process makes: what a judge has of its runners.
//!
//! A runner has the candidate in its context, and of the judge's memory the buffers alone. So what the
//! judge knows and keeps, on the host and on the device, is in an address space of its own.

use std::cell::RefCell;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use crate::child::failure::{Failed, JobResult, environment};
use crate::child::io::link::Link;
use crate::child::memory::buffers::JobBuffer;
use crate::child::memory::variables::Restored;
use crate::frame::{self, FrameError};
use crate::protocol::{Blame, FromRunner, LaunchHow, Launches, RunFailure, TimedLaunch, ToRunner};
use warpgauge_device::{DeviceError, Stream};
use warpgauge_model::{FailureCode, FunctionFacts, LaunchCounts};

/// Who makes which launches.
pub(crate) struct Runners {
    candidate: Rc<RefCell<Runner>>,
    reference: Option<Rc<RefCell<Runner>>>,
}

impl Runners {
    /// Those whose sockets were handed over. `checked`: whether the emulator checks what the
    /// candidate's does.
    pub(crate) fn connect(link: &mut Link, has_reference: bool, checked: bool) -> JobResult<Self> {
        let mut connect = |checked| {
            let runner = Runner { stream: link.socket()?, lent: Vec::new(), programs: 0, checked };
            Ok(Rc::new(RefCell::new(runner)))
        };
        let candidate = connect(checked)?;
        let reference = has_reference.then(|| connect(false)).transpose()?;
        Ok(Self { candidate, reference })
    }

    /// The one that runs what is to blame for its failures.
    pub(crate) fn of(&self, blame: Blame) -> JobResult<&Rc<RefCell<Runner>>> {
        match blame {
            Blame::Candidate => Some(&self.candidate),
            Blame::Reference => self.reference.as_ref(),
            Blame::Environment => None,
        }
        .ok_or_else(|| {
            let text = format!("there is no runner for what {blame:?} is to blame for");
            Failed::new(FailureCode::InternalError, text, Blame::Environment)
        })
    }

    /// What the emulator found in the candidate's launches.
    pub(crate) fn report(&self) -> Option<serde_json::Value> {
        match self.candidate.borrow_mut().ask(&ToRunner::Report) {
            Ok(FromRunner::Report(report)) => report,
            _ => None,
        }
    }
}

/// The connection to one process.
pub(crate) struct Runner {
    stream: UnixStream,
    /// The buffers that it has open: where they are here, and how large.
    lent: Vec<(u64, usize)>,
    /// Programs that it has loaded since it opened them.
    programs: usize,
    checked: bool,
}

/// Why a runner did not do what it was asked.
enum Refusal {
    /// Its device says so, or it is gone.
    Device(DeviceError),
    /// Something else is in the way.
    Other(RunFailure),
}

impl Refusal {
    fn device(self) -> DeviceError {
        match self {
            Refusal::Device(error) => error,
            Refusal::Other(failure) => {
                DeviceError::local("have the kernel run", failure.code, failure.message)
            }
        }
    }

    fn failed(self, blame: Blame) -> Failed {
        match self {
            Refusal::Device(error) => Failed::device(error, blame),
            Refusal::Other(failure) => Failed { failure, sticky: false },
        }
    }
}

impl Runner {
    /// Sends a message and waits for the answer.
    fn ask(&mut self, message: &ToRunner) -> Result<FromRunner, Refusal> {
        let answer = frame::write(&mut self.stream, message)
            .and_then(|()| frame::read_soon::<FromRunner>(&mut self.stream));
        match answer {
            // Its context may be lost; this one is as it was.
            Ok(FromRunner::Failed(error)) => {
                Err(Refusal::Device(DeviceError { elsewhere: true, ..*error }))
            }
            Ok(FromRunner::Unable(failure)) => Err(Refusal::Other(*failure)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(ended(&error)),
        }
    }

    /// Has it open the buffers, if it has not.
    pub(crate) fn lend(&mut self, buffers: &[JobBuffer<'_>], guard: u8) -> JobResult<()> {
        let lent = buffers.iter().map(JobBuffer::block).collect();
        if self.programs > 0 && self.lent == lent {
            return Ok(());
        }
        let handles = buffers.iter().map(|buffer| buffer.lend().map_err(environment));
        let buffers = handles.collect::<JobResult<_>>()?;
        let message = ToRunner::Open { buffers, guard, checked: self.checked };
        match self.ask(&message).map_err(|refusal| refusal.failed(Blame::Environment))? {
            FromRunner::Done => {}
            other => return Err(out_of_turn(&other).failed(Blame::Environment)),
        }
        (self.lent, self.programs) = (lent, 0);
        Ok(())
    }

    /// Waits for a launch that it hands over, if it makes launches of its own too: how many it means to
    /// hand over after that. `None`: it has no more.
    pub(crate) fn next_turn(&mut self) -> JobResult<Option<u32>> {
        match frame::read_soon::<FromRunner>(&mut self.stream) {
            Ok(FromRunner::Turn { later }) => Ok(Some(later)),
            Ok(other) => Err(out_of_turn(&other).failed(Blame::Environment)),
            // What it ended with, it tells by itself.
            Err(_) => Ok(None),
        }
    }

    /// The launch that was handed over is judged.
    pub(crate) fn yield_turn(&mut self) -> JobResult<()> {
        frame::write(&mut self.stream, &ToRunner::Yield)
            .map_err(|error| ended(&error).failed(Blame::Environment))
    }

    /// Tells a process that makes launches of its own that no more of them are judged, and waits until it
    /// has ended, or has nothing of the buffers any more.
    pub(crate) fn part(&mut self) {
        // Fails where the connection is closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
        while frame::read::<FromRunner>(&mut self.stream).is_ok() {}
    }

    /// Has it give up programs and buffers.
    fn close(&mut self) {
        if self.programs > 0 {
            // One that is gone has nothing any more.
            let _ = self.ask(&ToRunner::Close);
            (self.lent, self.programs) = (Vec::new(), 0);
        }
    }
}

fn ended(error: &FrameError) -> Refusal {
    let text = format!("the process that runs it has ended ({error})");
    Refusal::Device(DeviceError::local("run the kernel", FailureCode::WorkerDied, text))
}

fn out_of_turn(answer: &FromRunner) -> Refusal {
    Refusal::Other(RunFailure {
        code: FailureCode::InternalError,
        message: format!("a runner answered {answer:?} out of turn; this is a defect of warpgauge"),
        blame: Blame::Environment,
    })
}

/// A program that a runner has loaded. Dropping it has the runner give it up, with all others on the
/// same buffers, which end at the same time.
pub(crate) struct RemoteProgram {
    runner: Rc<RefCell<Runner>>,
    index: usize,
    /// Why what its modules keep cannot be put back; `None`: it can.
    unlisted: Option<String>,
    /// Whether its modules may keep anything from one launch to the next.
    keeps_state: bool,
    /// Whether variables are to be put back before the next launch.
    forgets: bool,
}

impl RemoteProgram {
    /// Has a runner load a program on the buffers.
    pub(crate) fn load(
        runner: &Rc<RefCell<Runner>>,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        (blame, restored, guard): (Blame, Restored, u8),
    ) -> JobResult<(Self, Option<FunctionFacts>)> {
        let mut asked = runner.borrow_mut();
        asked.lend(buffers, guard)?;
        let constants_too = restored == Restored::ConstantsToo;
        let index = asked.programs;
        // Even if it fails there is something to be closed.
        asked.programs += 1;
        let load = ToRunner::Load { launches: launches.clone(), constants_too, blame };
        let answer = asked.ask(&load).and_then(|answer| match answer {
            FromRunner::Loaded { facts, unlisted, keeps_state } => {
                Ok((facts, unlisted, keeps_state))
            }
            other => Err(out_of_turn(&other)),
        });
        match answer {
            Ok((facts, unlisted, keeps_state)) => {
                let runner = Rc::clone(runner);
                Ok((Self { runner, index, unlisted, keeps_state, forgets: false }, facts))
            }
            Err(refusal) => {
                asked.close();
                Err(refusal.failed(blame))
            }
        }
    }

    /// The program of a process that makes launches of its own too, and has loaded it itself.
    pub(crate) fn of_another(runner: &Rc<RefCell<Runner>>) -> Self {
        // What its modules keep it puts back as far as it can, and says so.
        let runner = Rc::clone(runner);
        Self { runner, index: 0, unlisted: None, keeps_state: false, forgets: false }
    }

    /// Launches once all that is queued here has ended, and waits for the end.
    pub(crate) fn launch(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        self.launch_how(LaunchHow::Plain, stream).map(drop)
    }

    /// Launches between two events; what it took, milliseconds.
    pub(crate) fn time(&mut self, how: TimedLaunch, stream: &Stream) -> Result<f32, DeviceError> {
        self.launch_how(LaunchHow::Timed(how), stream).map(|(ms, _)| ms)
    }

    /// Launches for the emulator's counts alone.
    pub(crate) fn count(&mut self, stream: &Stream) -> Result<Option<LaunchCounts>, DeviceError> {
        self.launch_how(LaunchHow::Counted, stream).map(|(_, counts)| counts)
    }

    fn launch_how(
        &mut self,
        how: LaunchHow,
        stream: &Stream,
    ) -> Result<(f32, Option<LaunchCounts>), DeviceError> {
        stream.synchronize()?;
        let forget = std::mem::take(&mut self.forgets);
        let message = ToRunner::Launch { program: self.index, forget, how };
        match self.runner.borrow_mut().ask(&message).map_err(Refusal::device)? {
            FromRunner::Launched { ms, counts } => Ok((ms, counts)),
            other => Err(out_of_turn(&other).device()),
        }
    }

    /// Has its variables put back before the next launch. `false`: they are not known.
    pub(crate) fn forget(&mut self) -> bool {
        self.forgets = self.unlisted.is_none();
        self.forgets
    }

    /// Whether its modules may keep anything from one launch to the next.
    pub(crate) fn keeps_state(&self) -> bool {
        self.keeps_state
    }

    /// Why what the modules keep cannot be put back; `None`: it can.
    pub(crate) fn unlisted(&self) -> Option<&String> {
        self.unlisted.as_ref()
    }
}

impl Drop for RemoteProgram {
    fn drop(&mut self) {
        self.runner.borrow_mut().close();
    }
}
