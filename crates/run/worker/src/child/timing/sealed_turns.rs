//! Timed launches that another process judges. This process uses the judge's buffers and launches
//! at its request. It knows neither the source of the inputs nor the expected outputs. On a GPU the
//! judge has usually prepared the inputs (`lent_sets`), and verifies the launches at the end.
//!
//! All launches use the judge's buffers, so that a kernel cannot identify sealed launches by an
//! address.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::audit_schedule::Assigned;
use super::judge::Phase;
use super::lent_sets::LentMemory;
use super::stage::Stage;
use crate::child::device::executor::{Executor, TimingAids};
use crate::child::failure::{Failed, JobResult, candidate, environment};
use crate::child::io::link::Link;
use crate::child::launch::program::LoadedProgram;
use crate::child::memory::buffers::{JobBuffer, addresses_of};
use crate::child::memory::residue::Residue;
use crate::frame;
use crate::protocol::{Blame, BufferSpec, FromRunner, LaunchHow, ToRunner};
use warpgauge_device::{DeviceError, Event};
use warpgauge_model::FailureCode;
use warpgauge_statistics::sealed_times;

/// Maximum wait for the judge. It compiles nothing, and has launched its reference before.
const PATIENCE: Duration = Duration::from_secs(20);

/// Wait for the judge's references that needs no message to the server, nanoseconds.
const BRIEF_NS: i64 = 2_000_000;

/// The connection to the judge, and the launches that it judges.
pub(crate) struct Turns {
    judge: UnixStream,
    /// Inputs that the judge prepared, if it did.
    sets: Option<LentMemory>,
    assigned: Assigned,
    /// Indices of the sealed launches among all timed launches, ascending.
    taken: Vec<u32>,
    /// Number of launches that were handed to the judge.
    pub made: u32,
    /// Whether more launches were sealed because times disagreed.
    confirmed: bool,
}

impl Turns {
    /// Opens the judge's buffers instead of allocating buffers. `measures`: whether the judge runs
    /// references first, which may take until the server's time limit.
    pub(crate) fn open<'job>(
        link: &mut Link,
        specs: &'job [BufferSpec],
        measures: bool,
        (executor, buffers): (&Executor, &mut Vec<JobBuffer<'job>>),
    ) -> JobResult<Self> {
        let tools = executor.tools()?;
        let judge = link.socket()?;
        let mut turns = Self {
            judge,
            sets: None,
            assigned: Assigned::default(),
            taken: Vec::new(),
            made: 0,
            confirmed: false,
        };
        turns.limit_wait((!measures).then_some(PATIENCE))?;
        let (lent, guard, sets) = match turns.hear()? {
            ToRunner::Open { buffers, guard, sets, .. } if buffers.len() == specs.len() => {
                (buffers, guard, sets)
            }
            other => return Err(out_of_turn(&other)),
        };
        turns.limit_wait(Some(PATIENCE))?;
        for (spec, lent) in specs.iter().zip(&lent) {
            buffers.push(JobBuffer::borrow(spec, lent, guard, tools)?);
        }
        turns.sets = sets.map(|sets| LentMemory::open(executor, &sets, buffers)).transpose()?;
        turns.tell(&FromRunner::Done)?;
        Ok(turns)
    }

    /// Waits briefly for a message of the judge. Returns whether there is one.
    pub(crate) fn is_answered_soon(&self) -> bool {
        let mut socket = [PollFd::new(&self.judge, PollFlags::IN)];
        let brief = Timespec { tv_sec: 0, tv_nsec: BRIEF_NS };
        rustix::event::poll(&mut socket, Some(&brief)) != Ok(0)
    }

    /// Waits, without a limit of its own, until the judge lets this process continue: before the
    /// first sealed launch until references have run, which would disturb the timing, and after
    /// [`Self::end`] until all launches are verified.
    pub(crate) fn wait(&mut self) -> JobResult<()> {
        self.limit_wait(None)?;
        match self.hear()? {
            ToRunner::Yield => self.limit_wait(Some(PATIENCE)),
            other => Err(out_of_turn(&other)),
        }
    }

    /// Sets the maximum wait for a message of the judge.
    fn limit_wait(&self, longest: Option<Duration>) -> JobResult<()> {
        self.judge.set_read_timeout(longest).map_err(|error| silent(&error.to_string()))
    }

    /// Begins a batch, after `before` timed launches. The launches at `places` are sealed. After
    /// the batch, `later` more launches are sealed.
    pub(crate) fn begin(&mut self, before: usize, places: Vec<usize>, later: usize) {
        self.assigned.begin(Phase::Timed, before, places, later);
    }

    /// Forgets the first timed launches, which were repeated.
    pub(crate) fn forget(&mut self, launches: usize) {
        let after = self.taken.iter().filter_map(|&place| place.checked_sub(launches as u32));
        self.taken = after.collect();
    }

    /// Returns the indices of the sealed launches among all timed launches, ascending. `residue`
    /// gets the connection and the memory of the sets.
    pub(crate) fn into_taken(self, residue: &mut Residue) -> Vec<u32> {
        residue.note_lender(self.sets.map(LentMemory::into_memory), self.judge);
        self.taken
    }

    /// Returns whether times of sealed launches differ from the other times; more sealed launches
    /// then show whether that was noise. Returns `true` at most once. `samples` are the timed
    /// launches from index `first` on.
    pub(crate) fn are_to_confirm(&mut self, samples: &[f32], first: usize) -> bool {
        let is_sealed = |place: usize| self.taken.binary_search(&((first + place) as u32)).is_ok();
        let (sealed, others): (Vec<_>, Vec<_>) =
            samples.iter().enumerate().partition(|(place, _)| is_sealed(*place));
        let [sealed, others] =
            [sealed, others].map(|of| of.into_iter().map(|(_, ms)| *ms).collect::<Vec<f32>>());
        let part = sealed_times(&sealed, &others).is_some_and(|times| !times.agree);
        part && !std::mem::replace(&mut self.confirmed, part)
    }

    /// Returns whether the launch at this position of the batch is sealed.
    pub(crate) fn takes(&mut self, index: usize) -> bool {
        let takes = self.assigned.takes(index);
        self.made += u32::from(takes);
        if takes {
            self.taken.push(self.assigned.trial(index) as u32);
        }
        takes
    }

    /// Makes one launch as the judge requests. Returns its time in milliseconds, after the judge
    /// has verified it.
    pub(crate) fn launch(
        &mut self,
        executor: &Executor,
        arm: &mut LoadedProgram,
        buffers: &[JobBuffer<'_>],
        [start, end]: &[Event; 2],
        mut aids: Option<&mut TimingAids>,
    ) -> JobResult<f32> {
        let tools = executor.tools()?;
        let mut took = None;
        let later = u32::try_from(self.assigned.later()).unwrap_or(u32::MAX);
        self.tell(&FromRunner::Turn { later })?;
        loop {
            let (forget, how, set) = match self.hear()? {
                ToRunner::Launch { forget, how: LaunchHow::Timed(how), .. } => (forget, how, None),
                ToRunner::Unlock { set, key, how } => {
                    let set = set as usize;
                    self.sets()?.unlock(executor, buffers, (set, key))?;
                    (true, how, Some(set))
                }
                ToRunner::Yield => return took.ok_or_else(|| silent("it did not launch")),
                other => return Err(out_of_turn(&other)),
            };
            let (stream, support) = (tools.stream, tools.support);
            let flush = executor.flush.as_ref();
            let mut stage = Stage { stream, support, flush, aids: aids.as_deref_mut() };
            let address = addresses_of(buffers);
            let timed = stage.queue(arm, &address, (forget, how), [start, end]).and_then(|()| {
                end.synchronize()?;
                end.elapsed_ms_since(start)
            });
            match timed {
                Ok(ms) if let Some(set) = set => {
                    let digest = self.sets()?.commit(executor, buffers, set)?;
                    self.tell(&FromRunner::Committed { ms, digest })?;
                    return Ok(ms);
                }
                Ok(ms) => {
                    took = Some(ms);
                    self.tell(&FromRunner::Launched { ms, counts: None })?;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn sets(&self) -> JobResult<&LentMemory> {
        self.sets.as_ref().ok_or_else(|| silent("it has prepared no inputs"))
    }

    /// Announces that no more launches are handed over. The judge now uses the buffers, until
    /// [`Self::wait`] returns, and keeps them until the connection is closed.
    pub(crate) fn end(&mut self) {
        // If the judge has ended, this message is lost, which does no harm.
        let _ = self.tell(&FromRunner::NoTurns);
    }

    fn failed(&mut self, error: DeviceError) -> Failed {
        // If the judge has ended, this message is lost, which does no harm.
        let _ = self.tell(&FromRunner::Failed(Box::new(error.clone())));
        candidate(error)
    }

    fn tell(&mut self, message: &FromRunner) -> JobResult<()> {
        frame::write(&mut self.judge, message).map_err(|error| silent(&error.to_string()))
    }

    fn hear(&mut self) -> JobResult<ToRunner> {
        frame::read_soon(&mut self.judge).map_err(|error| silent(&error.to_string()))
    }
}

fn silent(reason: &str) -> Failed {
    let text = format!("the process that judges sealed launches gave no verdict: {reason}");
    Failed::new(FailureCode::JudgeLost, text, Blame::Environment)
}

fn out_of_turn(message: &ToRunner) -> Failed {
    environment(DeviceError::local(
        "read a request of the judge",
        FailureCode::InternalError,
        format!("{message:?} came out of turn; this is a defect of warpgauge"),
    ))
}
