//! One submission in its runner, asked one thing after the other until it fails or is dropped.

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::fork::{Fork, Runner};
use super::locked::LockedOrder;
use super::memory::ProcessMemory;
use super::threads::NotStopped;
use super::wire::{
    Answer, Answered, Asked, DeviceTrace, EntryPoint, GradientInput, LoadedModule, ModuleParameter,
    Question, RunnerFault, SuggestedInputs, Tree, TreeOf, receive, send,
};
use super::{LayoutError, Secret, TensorAt};
use warpgauge_tensor::Dtype;

/// A tensor to be allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorLayout {
    /// Element type.
    pub dtype: Dtype,
    /// Extents.
    pub shape: Vec<u64>,
    /// Elements from one index to the next, by dimension; `None`: they lie side by side, in C order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<u64>>,
}

impl TensorLayout {
    /// Of a tensor in C order.
    pub fn in_order(dtype: Dtype, shape: Vec<u64>) -> Self {
        Self { dtype, shape, strides: None }
    }

    /// Of a copy of a tensor.
    pub fn of_copy(tensor: &TensorAt) -> Self {
        let strides = tensor.kept_strides();
        Self { dtype: tensor.dtype, shape: tensor.shape.clone(), strides }
    }
}

/// A tensor in memory that the judge lends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LentTensor {
    /// Where it begins for the first call of a batch.
    pub offset: u64,
    /// Element type.
    pub dtype: Dtype,
    /// Extents.
    pub shape: Vec<u64>,
    /// Elements from one index to the next, by dimension; `None`: they lie side by side, in C order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<u64>>,
}

impl LentTensor {
    /// One of this type and shape whose elements lie side by side.
    pub fn in_order(offset: u64, like: &TensorAt) -> Self {
        Self { offset, dtype: like.dtype, shape: like.shape.clone(), strides: None }
    }
}

/// Calls that are made one after the other.
#[derive(Debug, Clone)]
pub struct CallBatch<'a> {
    /// What the first one gets.
    pub arguments: &'a TreeOf<LentTensor>,
    /// Bytes from there to what the next one gets.
    pub stride: u64,
    /// How many.
    pub count: u32,
    /// Of generators of random numbers, before the first.
    pub seed: u64,
    /// Bytes that are written before each call so that the cache holds nothing of it; 0: none.
    pub flush: u64,
    /// How calls are held back, if their arguments are encrypted.
    pub locked: Option<LockedOrder>,
}

/// What a batch came to.
#[derive(Debug)]
pub struct CompletedBatch {
    /// What each call returned.
    pub returned: Vec<Tree>,
    /// From the word to go until the runner had said that the device has ended. Where a thread ran on for more
    /// than a moment, until it was stopped.
    pub took: Duration,
}

/// What is submitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TorchSubmission {
    /// Python source.
    pub source: String,
    /// What is called.
    pub entry: EntryPoint,
    /// Classes that are taken where the contract names none, best first.
    pub preferred: Vec<String>,
}

/// What a call came to.
#[derive(Debug)]
pub struct CompletedCall {
    /// What it returned.
    pub returned: Tree,
    /// From the word to go until the runner had said that it is done, by the clock of this process. Where a
    /// thread ran on for more than a moment, until it was stopped.
    pub took: Duration,
}

/// A runner with one submission. It is stopped unless it is asked something.
#[derive(Debug)]
pub struct RunnerSession {
    fork: Fork,
    secret: Secret,
    deadline: Instant,
    /// Whether it counts as stopped only where that is observed.
    observed: bool,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Longest time that threads may take to stop. One in a system call stops when it leaves that.
const STOPPING: Duration = Duration::from_secs(2);

/// What of that is not counted as time of the call: the signal has to reach all threads.
const FREE: Duration = Duration::from_micros(100);

/// How long the end of a fork is waited for that seems to be ending.
const ENDING: Duration = Duration::from_millis(100);

/// Why a runner could not begin. None of that is a fault of what is submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotBegun {
    /// Whether it ended with the process that it is a fork of: another one may do.
    pub with_parent: bool,
    /// What happened, in words.
    pub what: String,
}

/// Waits until a runner has confined itself, and has it stop.
pub(crate) fn confined(runner: Runner, deadline: Instant) -> Result<Fork, NotBegun> {
    #[derive(Deserialize)]
    struct Confined {
        confined: bool,
    }
    let failed = |what: String| NotBegun { with_parent: false, what };
    let fork = runner.opened().map_err(|error| failed(error.to_string()))?;
    let answer = supervised(&fork, deadline).and_then(|()| receive(&fork.session, deadline));
    let said = answer.map_err(|error| error.to_string()).and_then(|frame| {
        serde_json::from_slice::<Confined>(&frame).map_err(|error| error.to_string())
    });
    match said {
        Ok(Confined { confined: true }) => {
            fork.stop();
            Ok(fork)
        }
        Ok(_) => Err(failed("it says that it is not confined".to_owned())),
        Err(error) => {
            let end = fork.end();
            let with_parent = end.is_none();
            let how = end.map_or(error, |end| end.text());
            Err(NotBegun { with_parent, what: format!("{how}: {}", fork.printed().trim()) })
        }
    }
}

/// Has the runner's threads counted from here, before it is asked anything.
fn supervised(fork: &Fork, deadline: Instant) -> io::Result<()> {
    let within = deadline.saturating_duration_since(Instant::now());
    match warpgauge_sandbox::threads::received(&fork.session, within)? {
        Some(asking) => asking.supervise(warpgauge_sandbox::threads::most()),
        None => Ok(()),
    }
}

impl RunnerSession {
    /// With a runner that has been asked nothing yet, which must end by the deadline.
    ///
    /// # Errors
    /// It could not be confined, or not be stopped.
    pub fn begin(runner: Runner, deadline: Instant) -> Result<Self, NotBegun> {
        let mut fork = confined(runner, deadline)?;
        // Nothing that was submitted is in it yet.
        match fork.stopped(Instant::now(), deadline) {
            Ok(_) => Ok(Self { fork, secret: Secret::default(), deadline, observed: true }),
            Err(why) => {
                let with_parent = fork.end().is_none() && matches!(why, NotStopped::Ended);
                Err(NotBegun { with_parent, what: format!("it cannot be stopped: {why}") })
            }
        }
    }

    /// Has its answers wanted so much earlier than at the deadline.
    #[must_use]
    pub fn earlier(self, by: Duration) -> Self {
        let deadline = self.deadline.checked_sub(by).unwrap_or_else(Instant::now);
        Self { deadline, ..self }
    }

    /// Gives it so much more time.
    pub fn extend(&mut self, by: Duration) {
        self.deadline += by;
    }

    /// From now on the signal to stop is trusted: for a submission that gains nothing by running on.
    #[must_use]
    pub fn unobserved(self) -> Self {
        Self { observed: false, ..self }
    }

    fn is_trusted(&self) -> bool {
        !self.observed
    }

    /// Where its tensors are. Between two questions nothing there changes, as [`Self::ask`] and
    /// [`Self::still_stopped`] see to.
    pub fn memory(&self) -> &ProcessMemory {
        &self.fork.memory
    }

    /// Ends its process, before anybody wants to know what it printed.
    pub fn stop_for_good(&self) {
        self.fork.end();
    }

    /// Ends it; the beginning of what it printed.
    pub fn end(self) -> String {
        self.fork.end();
        self.fork.printed()
    }

    /// What asking takes when there is nothing to do.
    ///
    /// # Errors
    /// It did not answer.
    pub fn idle(&mut self) -> Result<Duration, RunnerFault> {
        match self.ask(Question::Nothing)? {
            (Answer::Done(_), took) => Ok(took),
            (other, _) => Err(unasked(&other)),
        }
    }

    /// Runs the module and makes its object; the first question to be asked, once. `init`: what the
    /// constructor gets in place of what the module says.
    ///
    /// # Errors
    /// What is wrong with the submission.
    pub fn load(
        &mut self,
        submission: &TorchSubmission,
        init: Option<&TreeOf<()>>,
        seed: u64,
    ) -> Result<LoadedModule, RunnerFault> {
        let TorchSubmission { source, entry, preferred } = submission;
        match self.ask(Question::Load { source, entry, preferred, init, seed })?.0 {
            Answer::Loaded(loaded) => Ok(loaded),
            other => Err(unasked(&other)),
        }
    }

    /// Where its parameters and buffers are now.
    ///
    /// # Errors
    /// It did not answer.
    pub fn parameters(&mut self) -> Result<Vec<ModuleParameter>, RunnerFault> {
        match self.ask(Question::Parameters)?.0 {
            Answer::Parameters(parameters) => Ok(parameters),
            other => Err(unasked(&other)),
        }
    }

    /// Allocates the arguments of the next call, and says where they are. They are those that were
    /// wanted: what it says about anything but addresses is checked.
    ///
    /// # Errors
    /// It did not, or something else.
    pub fn allocate(&mut self, arguments: &TreeOf<TensorLayout>) -> Result<Tree, RunnerFault> {
        let made = match self.ask(Question::Allocate { arguments })?.0 {
            Answer::Made(made) => made,
            other => return Err(unasked(&other)),
        };
        if !made.map(&mut TensorLayout::of_copy).is_alike(arguments) {
            return Err(RunnerFault::Forged(
                "it allocated other arguments than it was told".to_owned(),
            ));
        }
        Ok(made)
    }

    /// Has the submission make its own arguments, and says where they are.
    ///
    /// # Errors
    /// It did not.
    pub fn make_inputs(&mut self, seed: u64) -> Result<Tree, RunnerFault> {
        match self.ask(Question::MakeInputs { seed })?.0 {
            Answer::Made(made) => Ok(made),
            other => Err(unasked(&other)),
        }
    }

    /// The same for several seeds: the arguments of each, or of the first of them, at least one.
    ///
    /// # Errors
    /// It did not.
    pub fn draw_inputs(&mut self, seeds: &[u64]) -> Result<Vec<Tree>, RunnerFault> {
        match self.ask(Question::Draw { seeds })?.0 {
            Answer::Drawn(drawn) if (1..=seeds.len()).contains(&drawn.len()) => Ok(drawn),
            Answer::Drawn(drawn) => {
                let text = format!("it made {} inputs of {}", drawn.len(), seeds.len());
                Err(RunnerFault::Forged(text))
            }
            other => Err(unasked(&other)),
        }
    }

    /// Looks for inputs that the function takes.
    ///
    /// # Errors
    /// Nothing that was tried fits.
    pub fn suggest(&mut self) -> Result<SuggestedInputs, RunnerFault> {
        match self.ask(Question::Suggest)?.0 {
            Answer::Suggested(suggestion) => Ok(suggestion),
            other => Err(unasked(&other)),
        }
    }

    /// What a call returns; the object and its generators are none the wiser. `None`: with its own arguments.
    ///
    /// # Errors
    /// It raised.
    pub fn probe(
        &mut self,
        arguments: Option<&TreeOf<TensorLayout>>,
        seed: u64,
    ) -> Result<Tree, RunnerFault> {
        match self.ask(Question::Probe { arguments, seed })?.0 {
            Answer::Done(Some(returned)) => Ok(returned),
            other => Err(unasked(&other)),
        }
    }

    /// Has the calls from here on made by a new copy of its object, whose state nobody needs; `begin: false`: by the
    /// object itself again.
    ///
    /// # Errors
    /// There can be no copy.
    pub fn aside(&mut self, begin: bool) -> Result<(), RunnerFault> {
        self.done(Question::Aside { begin })
    }

    /// Has it compute gradients in each call from now on.
    ///
    /// # Errors
    /// It did not answer.
    pub fn backward(&mut self, upstream: &[GradientInput]) -> Result<(), RunnerFault> {
        self.done(Question::Backward { upstream })
    }

    /// Calls the function once.
    ///
    /// # Errors
    /// It raised, ended, or did not come back.
    pub fn call(&mut self, seed: u64) -> Result<CompletedCall, RunnerFault> {
        match self.ask(Question::Call { seed })? {
            (Answer::Done(Some(returned)), took) => Ok(CompletedCall { returned, took }),
            (other, _) => Err(unasked(&other)),
        }
    }

    /// Has it open memory of the device that is lent, by base64 of the handle.
    ///
    /// # Errors
    /// It cannot.
    pub fn open(&mut self, handle: &str, bytes: u64) -> Result<(), RunnerFault> {
        self.done(Question::Open { handle, bytes })
    }

    /// Has it ready to make calls, whose arguments need not be there yet.
    ///
    /// # Errors
    /// It cannot.
    pub fn prepare(&mut self, batch: &CallBatch<'_>) -> Result<(), RunnerFault> {
        let CallBatch { arguments, stride, count, seed, flush, ref locked } = *batch;
        self.done(Question::Prepare { arguments, stride, count, seed, flush, locked })
    }

    /// Makes the calls that it is ready for: as many results, or what is wrong.
    ///
    /// # Errors
    /// It raised, ended, or did not come back.
    pub fn run(&mut self) -> Result<CompletedBatch, RunnerFault> {
        match self.ask(Question::Run)? {
            (Answer::Ran(returned), took) => Ok(CompletedBatch { returned, took }),
            (other, _) => Err(unasked(&other)),
        }
    }

    /// Makes the calls that it is ready for, and tells what the device did. No longer than `within`: nothing
    /// depends on it.
    ///
    /// # Errors
    /// It could not, or did not come back.
    pub fn trace(&mut self, within: Duration) -> Result<DeviceTrace, RunnerFault> {
        let deadline = self.deadline;
        self.deadline = deadline.min(Instant::now() + within);
        let answer = self.ask(Question::Trace);
        self.deadline = deadline;
        match answer?.0 {
            Answer::Traced(trace) => Ok(trace),
            other => Err(unasked(&other)),
        }
    }

    /// Makes the calls that it is ready for while the tool that is round it looks at them.
    ///
    /// # Errors
    /// It raised, ended, or did not come back.
    pub fn count(&mut self) -> Result<(), RunnerFault> {
        self.done(Question::Count)
    }

    /// What its events say of the calls, milliseconds: of each where the cache was flushed, else of all
    /// together.
    ///
    /// # Errors
    /// It did not answer.
    pub fn times(&mut self) -> Result<Vec<f64>, RunnerFault> {
        match self.ask(Question::Times)?.0 {
            Answer::Times(times) => Ok(times),
            other => Err(unasked(&other)),
        }
    }

    fn done(&mut self, question: Question<'_>) -> Result<(), RunnerFault> {
        match self.ask(question)?.0 {
            Answer::Done(None) => Ok(()),
            other => Err(unasked(&other)),
        }
    }

    /// Why memory that it named cannot be read.
    pub fn fault_of(&self, error: &LayoutError) -> RunnerFault {
        RunnerFault::Forged(format!("it tells of a tensor that cannot be read: {error}"))
    }

    /// The same fault, or another one where the process has ended: its memory is gone then, whatever it said.
    pub fn explained(&self, fault: RunnerFault) -> RunnerFault {
        // It is stopped: only somebody else can have ended it.
        let ended =
            matches!(fault, RunnerFault::Forged(_)) && self.fork.gone_by(Instant::now() + ENDING);
        if ended { self.died() } else { fault }
    }

    /// Whether it has been stopped since it answered, so that what was read of it is what it had then.
    ///
    /// # Errors
    /// It ran, or has ended.
    pub fn still_stopped(&mut self) -> Result<(), RunnerFault> {
        if self.is_trusted() {
            return Ok(());
        }
        self.fork.still_stopped().map_err(|why| self.awake(why))
    }

    pub(crate) fn ask(&mut self, what: Question<'_>) -> Result<(Answer, Duration), RunnerFault> {
        self.ask_while(what, |_, _| ()).map(|((), answer, took)| (answer, took))
    }

    /// As [`Self::ask`], with something done once the runner goes on, before its answer is read.
    pub(crate) fn ask_while<T>(
        &mut self,
        what: Question<'_>,
        meanwhile: impl FnOnce(&Fork, Instant) -> T,
    ) -> Result<(T, Answer, Duration), RunnerFault> {
        let turn = self.secret.bits();
        let timed = matches!(what, Question::Call { .. } | Question::Nothing | Question::Run);
        // What nothing takes is deducted elsewhere: that is no longer than it is.
        let counts_late = matches!(what, Question::Call { .. } | Question::Run);
        if !timed {
            self.still_stopped()?;
            // A long question has to be read while it is asked.
            self.fork.go_on();
        }
        // Otherwise it finds the question when it goes on: the clock runs from there to the end of the
        // answer.
        let sent = send(&self.fork.session, &Asked { turn, what }, self.deadline);
        if timed {
            // The question itself must not have woken it.
            self.still_stopped()?;
        }
        let began = Instant::now();
        self.fork.go_on();
        let made = meanwhile(&self.fork, self.deadline);
        let heard = sent.and_then(|()| receive(&self.fork.session, self.deadline));
        let heard_at = Instant::now();
        self.fork.stop();
        let frame = heard.map_err(|error| self.silence(&error))?;
        let late = self.stopped(heard_at)?.saturating_sub(FREE);
        let took = heard_at - began + if counts_late { late } else { Duration::ZERO };
        let answered: Answered = serde_json::from_slice(&frame).map_err(|error| {
            RunnerFault::Forged(format!("what it said cannot be read: {error}"))
        })?;
        if answered.turn != turn {
            return Err(RunnerFault::Forged("it answered what it was not asked".to_owned()));
        }
        match answered.answer {
            Answer::Refused(refusal) => Err(RunnerFault::Refused(refusal)),
            answer => Ok((made, answer, took)),
        }
    }

    /// Waits until all threads are stopped; how long the last one ran on after the answer.
    fn stopped(&mut self, heard_at: Instant) -> Result<Duration, RunnerFault> {
        if self.is_trusted() {
            return Ok(Duration::ZERO);
        }
        let until = self.deadline.min(heard_at + STOPPING);
        self.fork.stopped(heard_at, until).map_err(|why| self.awake(why))
    }

    /// What it means that it does not count as stopped. It is ended.
    fn awake(&self, why: NotStopped) -> RunnerFault {
        match why {
            NotStopped::Ended => self.died(),
            NotStopped::Running(_) if Instant::now() >= self.deadline => {
                self.fork.end();
                RunnerFault::TimedOut
            }
            NotStopped::Unknown(_) => {
                self.fork.end();
                RunnerFault::NotObserved(why.to_string())
            }
            // What is about to end runs once more.
            NotStopped::Woken if self.fork.gone_by(Instant::now() + ENDING) => self.died(),
            NotStopped::Running(_) => {
                self.fork.end();
                RunnerFault::Running(why.to_string())
            }
            NotStopped::Woken => {
                self.fork.end();
                RunnerFault::Woken(why.to_string())
            }
        }
    }

    fn silence(&self, error: &io::Error) -> RunnerFault {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                self.fork.end();
                RunnerFault::TimedOut
            }
            io::ErrorKind::InvalidData => RunnerFault::Forged(format!("it said too much: {error}")),
            _ => self.died(),
        }
    }

    /// How it ended.
    fn died(&self) -> RunnerFault {
        match self.fork.end() {
            Some(end) => RunnerFault::Died(end.text()),
            None => RunnerFault::DiedWithParent,
        }
    }
}

pub(crate) fn unasked(answer: &Answer) -> RunnerFault {
    let kind = match answer {
        Answer::Loaded(_) => "loaded",
        Answer::Parameters(_) => "parameters",
        Answer::Made(_) => "made",
        Answer::Drawn(_) => "drawn",
        Answer::Suggested(_) => "suggested",
        Answer::Done(_) => "done",
        Answer::Ran(_) => "ran",
        Answer::Times(_) => "times",
        Answer::Traced(_) => "traced",
        Answer::Gate(_) => "gate",
        Answer::Refused(_) => "refused",
    };
    RunnerFault::Forged(format!("it answered `{kind}` where something else was asked"))
}
