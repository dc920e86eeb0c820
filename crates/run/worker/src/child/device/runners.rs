//! The judge's side of launches that other processes make.
//!
//! A runner has the candidate in its context. It can access only the buffers of the judge's memory.
//! The judge's own data, on the host and on the device, are in a separate address space.

use std::cell::RefCell;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use crate::child::failure::{Failed, JobResult, environment};
use crate::child::io::link::Link;
use crate::child::memory::buffers::JobBuffer;
use crate::child::memory::variables::Restored;
use crate::frame::{self, FrameError};
use crate::protocol::{
    Blame, FromRunner, LaunchHow, Launches, LentSets, LineTimes, RunFailure, TimedLaunch, ToRunner,
};
use warpgauge_device::{DeviceError, Stream};
use warpgauge_model::gate_page::Digest;
use warpgauge_model::{FailureCode, FunctionFacts, LaunchCounts};

/// A judge's connections to the runners of the candidate and of references.
pub(crate) struct Runners {
    candidate: Rc<RefCell<Runner>>,
    reference: Option<Rc<RefCell<Runner>>>,
}

impl Runners {
    /// Connects to the runners whose sockets were handed over. `checked`: whether the emulator
    /// checks the candidate's accesses.
    pub(crate) fn connect(link: &mut Link, has_reference: bool, checked: bool) -> JobResult<Self> {
        let mut connect = |checked| {
            let runner = Runner { stream: link.socket()?, lent: Vec::new(), programs: 0, checked };
            Ok(Rc::new(RefCell::new(runner)))
        };
        let candidate = connect(checked)?;
        let reference = has_reference.then(|| connect(false)).transpose()?;
        Ok(Self { candidate, reference })
    }

    /// Returns the runner whose code is at fault for failures with this `blame`.
    pub(crate) fn of(&self, blame: Blame) -> JobResult<&Rc<RefCell<Runner>>> {
        match blame {
            Blame::Candidate => Some(&self.candidate),
            Blame::Reference => self.reference.as_ref(),
            Blame::Environment => None,
        }
        .ok_or_else(|| {
            let text = format!("no runner is connected for the code at fault ({blame:?})");
            Failed::new(FailureCode::InternalError, text, Blame::Environment)
        })
    }

    /// Lets the runner of references clean up. It must have closed the buffers.
    pub(crate) fn dismiss_reference(&mut self) {
        self.reference = None;
    }

    /// Returns the emulator's findings about the candidate's launches.
    pub(crate) fn report(&self) -> Option<serde_json::Value> {
        match self.candidate.borrow_mut().ask(&ToRunner::Report) {
            Ok(FromRunner::Report(report)) => report,
            _ => None,
        }
    }
}

/// A judge's connection to one runner.
pub(crate) struct Runner {
    stream: UnixStream,
    /// Address in this process and size of each buffer that the runner has open.
    lent: Vec<(u64, usize)>,
    /// Number of programs that the runner has loaded since it opened the buffers.
    programs: usize,
    checked: bool,
}

/// What a runner that makes its own launches hands over to its judge.
pub(crate) enum HandedOver {
    Launch {
        /// Number of launches that the runner plans to hand over after this one.
        later: u32,
    },
    /// No launch follows. The runner does not use the buffers until it may continue.
    Nothing,
    /// The runner has ended or failed.
    Lost,
}

/// Reason why a runner did not fulfil a judge's request.
enum Refusal {
    /// The device reported an error, or the runner has ended.
    Device(DeviceError),
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
    /// Sends a message to the runner, and waits for the answer.
    fn ask(&mut self, message: &ToRunner) -> Result<FromRunner, Refusal> {
        let answer = frame::write(&mut self.stream, message)
            .and_then(|()| frame::read_soon::<FromRunner>(&mut self.stream));
        Self::answer(answer)
    }

    fn answer(answer: Result<FromRunner, FrameError>) -> Result<FromRunner, Refusal> {
        match answer {
            // Only the runner's context may be lost; this process's context is not affected.
            Ok(FromRunner::Failed(error)) => {
                Err(Refusal::Device(DeviceError { elsewhere: true, ..*error }))
            }
            Ok(FromRunner::Unable(failure)) => Err(Refusal::Other(*failure)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(ended(&error)),
        }
    }

    /// Makes the runner open the buffers, unless it has them open already.
    fn lend(&mut self, buffers: &[JobBuffer<'_>], guard: u8) -> JobResult<()> {
        let lent = buffers.iter().map(JobBuffer::block).collect::<Vec<_>>();
        if self.programs > 0 && self.lent == lent {
            return Ok(());
        }
        self.start_lending(buffers, guard, None)?;
        self.finish_lending(buffers)
    }

    /// Makes the runner open the buffers, and prepared sets with their content if there are any.
    pub(crate) fn start_lending(
        &mut self,
        buffers: &[JobBuffer<'_>],
        guard: u8,
        sets: Option<LentSets>,
    ) -> JobResult<()> {
        let handles = buffers.iter().map(|buffer| buffer.lend().map_err(environment));
        let buffers = handles.collect::<JobResult<_>>()?;
        let message = ToRunner::Open { buffers, guard, checked: self.checked, sets };
        frame::write(&mut self.stream, &message)
            .map_err(|error| ended(&error).failed(Blame::Environment))
    }

    /// Waits until the runner has opened the buffers.
    pub(crate) fn finish_lending(&mut self, buffers: &[JobBuffer<'_>]) -> JobResult<()> {
        Self::is_done(Self::answer(frame::read_soon(&mut self.stream)))?;
        (self.lent, self.programs) = (buffers.iter().map(JobBuffer::block).collect(), 0);
        Ok(())
    }

    fn is_done(answer: Result<FromRunner, Refusal>) -> JobResult<()> {
        match answer.map_err(|refusal| refusal.failed(Blame::Environment))? {
            FromRunner::Done => Ok(()),
            other => Err(out_of_turn(&other).failed(Blame::Environment)),
        }
    }

    /// Waits until a runner that makes its own launches hands over the next one, or announces that
    /// none follows.
    pub(crate) fn next_turn(&mut self) -> JobResult<HandedOver> {
        match frame::read_soon::<FromRunner>(&mut self.stream) {
            Ok(FromRunner::Turn { later }) => Ok(HandedOver::Launch { later }),
            Ok(FromRunner::NoTurns) => Ok(HandedOver::Nothing),
            Ok(other) => Err(out_of_turn(&other).failed(Blame::Environment)),
            // The runner reports its outcome to the server.
            Err(_) => Ok(HandedOver::Lost),
        }
    }

    /// Makes a runner decrypt a prepared set, and make the launch that it hands over. Returns the
    /// time of the launch, milliseconds, and the hash of what it left.
    pub(crate) fn unlock(
        &mut self,
        (set, key): (u32, Digest),
        how: TimedLaunch,
    ) -> JobResult<(f32, Digest)> {
        let message = ToRunner::Unlock { set, key, how };
        match self.ask(&message).map_err(|refusal| refusal.failed(Blame::Candidate))? {
            FromRunner::Committed { ms, digest } => Ok((ms, digest)),
            other => Err(out_of_turn(&other).failed(Blame::Environment)),
        }
    }

    /// Lets the runner hand launches over, or continue after its last launch was judged.
    pub(crate) fn yield_turn(&mut self) -> JobResult<()> {
        frame::write(&mut self.stream, &ToRunner::Yield)
            .map_err(|error| ended(&error).failed(Blame::Environment))
    }

    /// Announces to a runner that makes its own launches that no more launches are judged. Waits
    /// until it has ended or closed the buffers.
    pub(crate) fn part(&mut self) {
        // This fails if the connection is closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
        while frame::read_soon::<FromRunner>(&mut self.stream).is_ok() {}
    }

    /// Makes the runner unload its programs and close its buffers.
    fn close(&mut self) {
        if self.programs > 0 {
            // This fails if the runner has ended; then it holds nothing.
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

/// A program that a runner has loaded. Dropping it makes the runner unload all programs on the same
/// buffers.
pub(crate) struct RemoteProgram {
    runner: Rc<RefCell<Runner>>,
    index: usize,
    /// Why the state of the program's modules cannot be restored; `None` if it can.
    unlisted: Option<String>,
    /// Whether the program's modules may keep any state between launches.
    keeps_state: bool,
    /// Whether the runner restores variables before the next launch.
    forgets: bool,
}

impl RemoteProgram {
    /// Makes a runner load a program on the buffers.
    pub(crate) fn load(
        runner: &Rc<RefCell<Runner>>,
        launches: &Launches,
        buffers: &[JobBuffer<'_>],
        (blame, restored, guard): (Blame, Restored, u8),
    ) -> JobResult<(Self, Option<FunctionFacts>)> {
        runner.borrow_mut().lend(buffers, guard)?;
        Self::load_on_open(runner, launches, (blame, restored))
    }

    /// Makes a runner load a program on prepared sets, which it opens in place of other buffers.
    pub(crate) fn load_on_sets(
        runner: &Rc<RefCell<Runner>>,
        launches: &Launches,
        sets: LentSets,
        how: (Blame, Restored),
    ) -> JobResult<Self> {
        {
            let mut asked = runner.borrow_mut();
            Runner::is_done(asked.ask(&ToRunner::OpenSets { sets }))?;
            (asked.lent, asked.programs) = (Vec::new(), 0);
        }
        Self::load_on_open(runner, launches, how).map(|(program, _)| program)
    }

    /// Makes a runner load a program on the memory that it has open.
    fn load_on_open(
        runner: &Rc<RefCell<Runner>>,
        launches: &Launches,
        (blame, restored): (Blame, Restored),
    ) -> JobResult<(Self, Option<FunctionFacts>)> {
        let mut asked = runner.borrow_mut();
        let constants_too = restored == Restored::ConstantsToo;
        let index = asked.programs;
        // Even a failed load leaves state in the runner that must be closed.
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

    /// Returns the program of a runner that makes its own launches and loads the program itself.
    pub(crate) fn of_another(runner: &Rc<RefCell<Runner>>) -> Self {
        // The runner restores its modules' state as far as it can, and reports whether it could.
        let runner = Rc::clone(runner);
        Self { runner, index: 0, unlisted: None, keeps_state: false, forgets: false }
    }

    /// Waits for this process's queued work, starts the launch, and waits for its end.
    pub(crate) fn launch(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        self.launch_how(LaunchHow::Plain, stream).map(drop)
    }

    /// Launches between two events. Returns the time between them, milliseconds.
    pub(crate) fn time(&mut self, how: TimedLaunch, stream: &Stream) -> Result<f32, DeviceError> {
        self.launch_how(LaunchHow::Timed(how), stream).map(|(ms, _)| ms)
    }

    /// Launches once to obtain the emulator's counts.
    pub(crate) fn count(&mut self, stream: &Stream) -> Result<Option<LaunchCounts>, DeviceError> {
        self.launch_how(LaunchHow::Counted, stream).map(|(_, counts)| counts)
    }

    /// Runs all steps of a list, and times each separately.
    pub(crate) fn time_steps(&mut self, stream: &Stream) -> Result<Vec<LineTimes>, DeviceError> {
        match self.ask(LaunchHow::Steps, stream)? {
            FromRunner::Steps(times) => Ok(times),
            other => Err(out_of_turn(&other).device()),
        }
    }

    fn launch_how(
        &mut self,
        how: LaunchHow,
        stream: &Stream,
    ) -> Result<(f32, Option<LaunchCounts>), DeviceError> {
        match self.ask(how, stream)? {
            FromRunner::Launched { ms, counts } => Ok((ms, counts)),
            other => Err(out_of_turn(&other).device()),
        }
    }

    fn ask(&mut self, how: LaunchHow, stream: &Stream) -> Result<FromRunner, DeviceError> {
        stream.synchronize()?;
        let forget = std::mem::take(&mut self.forgets);
        let message = ToRunner::Launch { program: self.index, forget, how };
        self.runner.borrow_mut().ask(&message).map_err(Refusal::device)
    }

    /// Launches on each prepared set, with variables as after loading, and waits for the end.
    pub(crate) fn expect(&mut self) -> Result<(), DeviceError> {
        let message = ToRunner::Expect { program: self.index };
        match self.runner.borrow_mut().ask(&message).map_err(Refusal::device)? {
            FromRunner::Done => Ok(()),
            other => Err(out_of_turn(&other).device()),
        }
    }

    /// Makes the next launch restore the known variables first. Returns `false` if some state is
    /// not known.
    pub(crate) fn forget(&mut self) -> bool {
        self.forgets = true;
        self.unlisted.is_none()
    }

    /// Returns whether the program's modules may keep any state between launches.
    pub(crate) fn keeps_state(&self) -> bool {
        self.keeps_state
    }

    /// Returns why the state of the modules cannot be restored; `None` if it can.
    pub(crate) fn unlisted(&self) -> Option<&String> {
        self.unlisted.as_ref()
    }
}

impl Drop for RemoteProgram {
    fn drop(&mut self) {
        self.runner.borrow_mut().close();
    }
}
