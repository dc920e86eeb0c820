//! Makes launches for a judge. This process has the kernel in its context, and can access only the
//! buffers of the judge's memory.

use std::fmt::Display;
use std::os::unix::net::UnixStream;

use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::residue::Residue;
use crate::child::memory::variables::Restored;
use crate::child::run::Run;
use crate::child::timing::stage::Stage;
use crate::frame::{self, FrameError};
use crate::protocol::{
    Blame, FromRunner, FromWorker, LaunchHow, Launches, LentBuffer, LentSets, TimedLaunch, ToRunner,
};
use warpgauge_device::{DeviceBuffer, DeviceError};
use warpgauge_model::FailureCode;

/// Serves the judge whose socket was handed over, until the judge closes the connection or the
/// context is lost.
pub(crate) fn run(run: &mut Run<'_, '_>) -> JobResult<()> {
    let Run { executor, link, residue, .. } = run;
    let mut judge = link.socket()?;
    // From here on, failures are due to the launched code. The watchdog notices that the server is
    // gone.
    let _ = link.send(&FromWorker::Started);
    let mut served = Served {
        executor,
        residue,
        memory: Vec::new(),
        addresses: Vec::new(),
        sets: Vec::new(),
        programs: Vec::new(),
        checked: false,
    };
    let ended = served.answer_all(&mut judge);
    let closed = served.close();
    ended.and(closed.map_err(environment))
}

fn broken(what: &str, error: &dyn Display) -> Failed {
    let text = format!("cannot {what} the process that judges the kernel: {error}");
    Failed::new(FailureCode::WorkerUnavailable, text, Blame::Environment)
}

/// Reason why a judge's request failed.
enum Refused {
    Device(DeviceError),
    Other(Failed),
}

impl From<DeviceError> for Refused {
    fn from(error: DeviceError) -> Self {
        Refused::Device(error)
    }
}

impl From<Failed> for Refused {
    fn from(failed: Failed) -> Self {
        Refused::Other(failed)
    }
}

/// Buffers and programs of the judge that this process has open.
struct Served<'a> {
    executor: &'a mut Executor,
    residue: &'a mut Residue,
    memory: Vec<DeviceBuffer>,
    /// Addresses of the buffers.
    addresses: Vec<u64>,
    /// Addresses of the buffers' content in each prepared set.
    sets: Vec<Vec<u64>>,
    programs: Vec<LoadedProgram>,
    /// Whether the emulator checks the launches.
    checked: bool,
}

impl Served<'_> {
    fn answer_all(&mut self, judge: &mut UnixStream) -> JobResult<()> {
        loop {
            let message = match frame::read_soon::<ToRunner>(judge) {
                Ok(message) => message,
                Err(FrameError::Closed) => return Ok(()),
                Err(error) => return Err(broken("read a request of", &error)),
            };
            let (answer, lost) = match self.answer(message) {
                Ok(answer) => (answer, None),
                Err(Refused::Device(error)) => {
                    let lost = error.is_sticky().then(|| environment(error.clone()));
                    (FromRunner::Failed(Box::new(error)), lost)
                }
                Err(Refused::Other(failed)) => {
                    let Failed { failure, sticky } = failed;
                    let lost = sticky.then(|| Failed { failure: failure.clone(), sticky });
                    (FromRunner::Unable(Box::new(failure)), lost)
                }
            };
            frame::write(judge, &answer).map_err(|error| broken("answer", &error))?;
            if let Some(failed) = lost {
                return Err(failed);
            }
        }
    }

    fn answer(&mut self, message: ToRunner) -> Result<FromRunner, Refused> {
        match message {
            ToRunner::OpenSets { sets } => {
                self.close()?;
                self.open_sets(&sets)?;
                Ok(FromRunner::Done)
            }
            ToRunner::Open { buffers, checked, .. } => {
                self.close()?;
                self.open(&buffers)?;
                self.executor.arm_checks(checked)?;
                self.checked = checked;
                Ok(FromRunner::Done)
            }
            ToRunner::Load { launches, constants_too, blame } => {
                self.load(&launches, constants_too, blame)
            }
            ToRunner::Expect { program } => self.expect(program),
            ToRunner::Launch { program, forget, how } => self.launch(program, forget, how),
            ToRunner::Report => {
                Ok(FromRunner::Report(self.executor.emulator.and_then(|e| e.take_report())))
            }
            ToRunner::Close => {
                self.close()?;
                Ok(FromRunner::Done)
            }
            ToRunner::Yield | ToRunner::Unlock { .. } => {
                let text = "a judge answered a process that hands over no launches".to_owned();
                Err(Failed::new(FailureCode::InternalError, text, Blame::Environment).into())
            }
        }
    }

    fn open(&mut self, buffers: &[LentBuffer]) -> Result<(), DeviceError> {
        for buffer in buffers {
            let (handle, bytes) = (&buffer.handle, buffer.bytes);
            let memory = DeviceBuffer::import(&self.executor.context, handle, bytes)?;
            self.addresses.push(memory.address() + buffer.offset);
            self.memory.push(memory);
        }
        Ok(())
    }

    /// Opens prepared sets. Programs are loaded for the buffers of the first set.
    fn open_sets(&mut self, sets: &LentSets) -> Result<(), DeviceError> {
        let memory = DeviceBuffer::import(&self.executor.context, &sets.handle, sets.bytes)?;
        let (mut at, end) = (memory.address(), memory.address() + sets.bytes);
        let bytes = sets.blocks.iter().map(|(bytes, _)| bytes).sum::<u64>();
        while bytes > 0 && at + bytes <= end {
            let addresses = sets.blocks.iter().map(|(bytes, offset)| {
                let address = at + offset;
                at += bytes;
                address
            });
            self.sets.push(addresses.collect());
        }
        self.addresses = self.sets.first().cloned().unwrap_or_default();
        self.memory.push(memory);
        Ok(())
    }

    fn load(
        &mut self,
        launches: &Launches,
        constants_too: bool,
        blame: Blame,
    ) -> Result<FromRunner, Refused> {
        let restored = if constants_too { Restored::ConstantsToo } else { Restored::Variables };
        let (executor, residue) = (&*self.executor, &mut *self.residue);
        executor.reset_persisting_l2()?;
        let program = LoadedProgram::load_at(
            executor,
            launches,
            &self.addresses,
            residue,
            (blame, restored),
        )?;
        let (facts, unlisted) = (program.facts, program.unlisted().cloned());
        let keeps_state = program.keeps_state();
        self.programs.push(program);
        Ok(FromRunner::Loaded { facts, unlisted, keeps_state })
    }

    /// Launches a program on each prepared set, and waits for the end.
    fn expect(&mut self, program: usize) -> Result<FromRunner, Refused> {
        let Some(arm) = self.programs.get_mut(program) else { return Err(not_loaded(program)) };
        let stream = &self.executor.stream;
        for addresses in &self.sets {
            arm.forget(stream)?;
            arm.launch_at(addresses, stream)?;
        }
        stream.synchronize()?;
        Ok(FromRunner::Done)
    }

    /// Makes a launch, and waits for its end.
    fn launch(
        &mut self,
        program: usize,
        forget: bool,
        how: LaunchHow,
    ) -> Result<FromRunner, Refused> {
        let Some(arm) = self.programs.get_mut(program) else { return Err(not_loaded(program)) };
        let launched = |ms, counts| FromRunner::Launched { ms, counts };
        let stream = &self.executor.stream;
        match how {
            LaunchHow::Timed(how) => {
                let ms = time(self.executor, arm, &self.addresses, forget, how)?;
                return Ok(launched(ms, None));
            }
            LaunchHow::Counted => {
                let Some(emulator) = self.executor.emulator else { return Ok(launched(0.0, None)) };
                self.executor.suspend_checks(self.checked)?;
                let counts = emulator.count(arm.has_steps, || {
                    arm.launch_at(&self.addresses, stream)?;
                    stream.synchronize()
                });
                self.executor.resume_checks(self.checked)?;
                // Restoring the variables makes the counted launch leave no trace.
                arm.forget(stream)?;
                return Ok(launched(0.0, counts?));
            }
            LaunchHow::Steps => {
                let mut aids = self.executor.timing.take();
                let times = arm.time_steps_at(self.executor, &self.addresses, aids.as_mut());
                self.executor.timing = aids;
                return Ok(FromRunner::Steps(times?));
            }
            LaunchHow::Plain => {}
        }
        if forget {
            arm.forget(stream)?;
        }
        arm.launch_at(&self.addresses, stream)?;
        stream.synchronize()?;
        Ok(launched(0.0, None))
    }

    /// Unloads programs and closes buffers.
    fn close(&mut self) -> Result<(), DeviceError> {
        self.programs.drain(..).for_each(|program| program.retire(self.residue));
        let unloaded = self.executor.unload(self.residue);
        self.addresses.clear();
        self.sets.clear();
        self.memory.clear();
        unloaded
    }
}

fn not_loaded(program: usize) -> Refused {
    let text = format!("a judge requested program {program}, which it did not load");
    Failed::new(FailureCode::InternalError, text, Blame::Environment).into()
}

/// Returns the time of a launch between two events, milliseconds.
fn time(
    executor: &mut Executor,
    arm: &mut LoadedProgram,
    addresses: &[u64],
    forget: bool,
    how: TimedLaunch,
) -> Result<f32, Refused> {
    let mut aids = executor.timing.take();
    let timed = (|| {
        let tools = executor.tools()?;
        let [start, end, ..] = executor.events.events() else { return Ok(0.0) };
        let (stream, support) = (tools.stream, tools.support);
        let flush = executor.flush.as_ref();
        let mut stage = Stage { stream, support, flush, aids: aids.as_mut() };
        let address = |index: usize| addresses.get(index).copied();
        stage.queue(arm, &address, (forget, how), [start, end])?;
        end.synchronize()?;
        Ok(end.elapsed_ms_since(start)?)
    })();
    if let Some(aids) = &aids {
        aids.blocking_kernel.release();
    }
    executor.timing = aids;
    timed
}
