//! A session of the judge with one submission in its runner. The runner receives one question at a
//! time until it fails or is dropped.

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

/// Type, shape and strides of a tensor to allocate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorLayout {
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// Distance in elements from one index to the next, by dimension. `None` means that the tensor
    /// is contiguous, in C order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<u64>>,
}

impl TensorLayout {
    /// Returns the layout of a tensor in C order.
    pub fn in_order(dtype: Dtype, shape: Vec<u64>) -> Self {
        Self { dtype, shape, strides: None }
    }

    /// Returns the layout of a copy of a tensor.
    pub fn of_copy(tensor: &TensorAt) -> Self {
        let strides = tensor.kept_strides();
        Self { dtype: tensor.dtype, shape: tensor.shape.clone(), strides }
    }
}

/// A tensor in memory that the judge shares with the runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LentTensor {
    /// Offset of the first byte in the memory of the batch's first call.
    pub offset: u64,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// Distance in elements from one index to the next, by dimension. `None` means that the tensor
    /// is contiguous, in C order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<u64>>,
}

impl LentTensor {
    /// Returns a contiguous tensor with the type and shape of `like`.
    pub fn in_order(offset: u64, like: &TensorAt) -> Self {
        Self { offset, dtype: like.dtype, shape: like.shape.clone(), strides: None }
    }
}

/// Batch of calls that the runner makes one after another.
#[derive(Debug, Clone)]
pub struct CallBatch<'a> {
    /// Arguments of the first call in the batch.
    pub arguments: &'a TreeOf<LentTensor>,
    /// Distance in bytes from the arguments of one call to those of the next.
    pub stride: u64,
    /// Number of calls in the batch.
    pub count: u32,
    /// Seed of the random number generators, before the first call.
    pub seed: u64,
    /// Number of bytes that are written before each call to flush the cache; 0 means that the cache
    /// is not flushed.
    pub flush: u64,
    /// Gate and hash settings, if the arguments are encrypted.
    pub locked: Option<LockedOrder>,
}

/// Result of a batch of calls.
#[derive(Debug)]
pub struct CompletedBatch {
    /// Return value of each call.
    pub returned: Vec<Tree>,
    /// Time from the start signal until the runner reported that the device had finished. If a
    /// thread ran on after that, the time beyond `FREE` until it stopped is added.
    pub took: Duration,
}

/// A submission of PyTorch code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TorchSubmission {
    /// Python source of the submission.
    pub source: String,
    /// The function or class of the source to call.
    pub entry: EntryPoint,
    /// Preferred classes, best first. One of them is called if the contract names no class.
    pub preferred: Vec<String>,
    /// Arguments of the accompanying device kernel, to which the parameters are bound. Empty if the
    /// submission has separate arguments.
    pub given: Vec<GivenArgument>,
}

/// An argument of a device kernel that the submission's Python code may receive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GivenArgument {
    pub name: String,
    pub is_tensor: bool,
    /// Whether the kernel writes the argument.
    pub is_written: bool,
}

/// Result of one call of a submission.
#[derive(Debug)]
pub struct CompletedCall {
    pub returned: Tree,
    /// Time from the start signal until the runner reported completion, by the clock of this
    /// process. If a thread ran on after that, the time beyond `FREE` until it stopped is added.
    pub took: Duration,
}

/// A runner with one submission. It is stopped, except while it answers a question.
#[derive(Debug)]
pub struct RunnerSession {
    fork: Fork,
    secret: Secret,
    deadline: Instant,
    /// Whether the session verifies that the runner is stopped; otherwise it trusts the signal.
    observed: bool,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Maximum time that threads may take to stop. A thread in a system call stops when the call
/// returns.
const STOPPING: Duration = Duration::from_secs(2);

/// Part of the stopping time that is not counted for the call, because the signal must reach all
/// threads.
const FREE: Duration = Duration::from_micros(100);

/// Maximum wait for the end of a fork that seems to be ending.
const ENDING: Duration = Duration::from_millis(100);

/// Why a runner could not begin. The submission is not at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotBegun {
    /// Whether the zygote ended too, so that a runner of a new zygote may work.
    pub with_parent: bool,
    pub what: String,
}

/// Waits until a runner has confined itself, and sends it SIGSTOP.
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
        Ok(_) => Err(failed("it reports that it is not confined".to_owned())),
        Err(error) => {
            let end = fork.end();
            let with_parent = end.is_none();
            let how = end.map_or(error, |end| end.text());
            Err(NotBegun { with_parent, what: format!("{how}: {}", fork.printed().trim()) })
        }
    }
}

/// Starts to limit the number of the runner's threads, before the runner receives a question.
fn supervised(fork: &Fork, deadline: Instant) -> io::Result<()> {
    let within = deadline.saturating_duration_since(Instant::now());
    match warpgauge_sandbox::threads::received(&fork.session, within)? {
        Some(asking) => asking.supervise(warpgauge_sandbox::threads::most()),
        None => Ok(()),
    }
}

impl RunnerSession {
    /// Begins a session with a fresh runner. The session must end by the deadline.
    ///
    /// # Errors
    /// Fails if the runner could not be confined or stopped.
    pub fn begin(runner: Runner, deadline: Instant) -> Result<Self, NotBegun> {
        let mut fork = confined(runner, deadline)?;
        // No submitted code is in the process yet.
        match fork.stopped(Instant::now(), deadline) {
            Ok(_) => Ok(Self { fork, secret: Secret::default(), deadline, observed: true }),
            Err(why) => {
                let with_parent = fork.end().is_none() && matches!(why, NotStopped::Ended);
                Err(NotBegun { with_parent, what: format!("it cannot be stopped: {why}") })
            }
        }
    }

    /// Moves the deadline for answers to an earlier time by this duration.
    #[must_use]
    pub fn earlier(self, by: Duration) -> Self {
        let deadline = self.deadline.checked_sub(by).unwrap_or_else(Instant::now);
        Self { deadline, ..self }
    }

    /// Extends the deadline by this duration.
    pub fn extend(&mut self, by: Duration) {
        self.deadline += by;
    }

    /// Makes the session assume that the signal stops the runner. Suitable for submissions that
    /// gain nothing if they continue to run.
    #[must_use]
    pub fn unobserved(self) -> Self {
        Self { observed: false, ..self }
    }

    fn is_trusted(&self) -> bool {
        !self.observed
    }

    /// Returns the memory that holds the submission's tensors. It does not change between two
    /// questions, which [`Self::ask`] and [`Self::still_stopped`] verify.
    pub fn memory(&self) -> &ProcessMemory {
        &self.fork.memory
    }

    /// Kills the process and waits for its end. Its output can still be read.
    pub fn stop_for_good(&self) {
        self.fork.end();
    }

    /// Kills the process without waiting for its end, which takes the driver 0.1 s. Returns the
    /// output that was not returned before.
    pub fn end(self) -> String {
        self.fork.kill();
        self.fork.printed_so_far()
    }

    /// Measures the duration of an empty question.
    ///
    /// # Errors
    /// Fails if the runner did not answer.
    pub fn idle(&mut self) -> Result<Duration, RunnerFault> {
        match self.ask(Question::Nothing)? {
            (Answer::Done(_), took) => Ok(took),
            (other, _) => Err(unasked(&other)),
        }
    }

    /// Runs the module and creates its object. This must be the first question, and only once.
    /// `init`: arguments of the constructor that replace the module's own.
    ///
    /// # Errors
    /// Fails if the submission is wrong.
    pub fn load(
        &mut self,
        submission: &TorchSubmission,
        init: Option<&TreeOf<()>>,
        seed: u64,
    ) -> Result<LoadedModule, RunnerFault> {
        let TorchSubmission { source, entry, preferred, given } = submission;
        match self.ask(Question::Load { source, entry, preferred, given, init, seed })?.0 {
            Answer::Loaded(loaded) => Ok(loaded),
            other => Err(unasked(&other)),
        }
    }

    /// Returns the current locations of the module's parameters and buffers.
    ///
    /// # Errors
    /// Fails if the runner did not answer.
    pub fn parameters(&mut self) -> Result<Vec<ModuleParameter>, RunnerFault> {
        match self.ask(Question::Parameters)?.0 {
            Answer::Parameters(parameters) => Ok(parameters),
            other => Err(unasked(&other)),
        }
    }

    /// Allocates the arguments of the next call, and returns their locations. The answer is checked
    /// against the request, except for addresses.
    ///
    /// # Errors
    /// Fails if the runner allocated nothing or other arguments.
    pub fn allocate(&mut self, arguments: &TreeOf<TensorLayout>) -> Result<Tree, RunnerFault> {
        let made = match self.ask(Question::Allocate { arguments })?.0 {
            Answer::Made(made) => made,
            other => return Err(unasked(&other)),
        };
        if !made.map(&mut TensorLayout::of_copy).is_alike(arguments) {
            return Err(RunnerFault::Forged(
                "it allocated other arguments than requested".to_owned(),
            ));
        }
        Ok(made)
    }

    /// Lets the submission create its own arguments, and returns their locations.
    ///
    /// # Errors
    /// Fails if the submission created no valid arguments.
    pub fn make_inputs(&mut self, seed: u64) -> Result<Tree, RunnerFault> {
        match self.ask(Question::MakeInputs { seed })?.0 {
            Answer::Made(made) => Ok(made),
            other => Err(unasked(&other)),
        }
    }

    /// Lets the submission create arguments for the seeds, in order. It may create fewer sets than
    /// there are seeds, but must create at least one.
    ///
    /// # Errors
    /// Fails if the submission created no valid arguments.
    pub fn draw_inputs(&mut self, seeds: &[u64]) -> Result<Vec<Tree>, RunnerFault> {
        match self.ask(Question::Draw { seeds })?.0 {
            Answer::Drawn(drawn) if (1..=seeds.len()).contains(&drawn.len()) => Ok(drawn),
            Answer::Drawn(drawn) => {
                let text = format!(
                    "it made {} sets of inputs, and {} were requested",
                    drawn.len(),
                    seeds.len()
                );
                Err(RunnerFault::Forged(text))
            }
            other => Err(unasked(&other)),
        }
    }

    /// Searches for inputs that the function accepts.
    ///
    /// # Errors
    /// Fails if the function accepts none of the inputs that were tried.
    pub fn suggest(&mut self) -> Result<SuggestedInputs, RunnerFault> {
        match self.ask(Question::Suggest)?.0 {
            Answer::Suggested(suggestion) => Ok(suggestion),
            other => Err(unasked(&other)),
        }
    }

    /// Returns the result of a call of a copy of the object. The object and its random-number
    /// generators do not change. `arguments`: layouts of the arguments, which are filled with
    /// zeros; `None` means the submission's own arguments.
    ///
    /// # Errors
    /// Fails if the call raised an exception.
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

    /// Makes the runner use a fresh copy of the object for the following calls, and discard the
    /// state of the copy. With `begin: false`, the runner uses the object itself again.
    ///
    /// # Errors
    /// Fails if the object cannot be copied.
    pub fn aside(&mut self, begin: bool) -> Result<(), RunnerFault> {
        self.done(Question::Aside { begin, watch: false })
    }

    /// Makes the runner use a fresh copy of the object for the following calls, and record the
    /// types of the tensors that the copy computes.
    ///
    /// # Errors
    /// Fails if the object cannot be copied.
    pub fn watch_aside(&mut self) -> Result<(), RunnerFault> {
        self.done(Question::Aside { begin: true, watch: true })
    }

    /// Returns the 16-bit types in which the watched copy computed.
    ///
    /// # Errors
    /// Fails if the runner did not answer the question.
    pub fn shorter_types(&mut self) -> Result<Vec<Dtype>, RunnerFault> {
        match self.ask(Question::ShorterTypes)?.0 {
            Answer::ShorterTypes(types) => Ok(types),
            other => Err(unasked(&other)),
        }
    }

    /// Makes the runner compute gradients in each following call.
    ///
    /// # Errors
    /// Fails if the runner did not answer.
    pub fn backward(&mut self, upstream: &[GradientInput]) -> Result<(), RunnerFault> {
        self.done(Question::Backward { upstream })
    }

    /// Calls the function once.
    ///
    /// # Errors
    /// Fails if the call raised an exception, or the process ended or did not return in time.
    pub fn call(&mut self, seed: u64) -> Result<CompletedCall, RunnerFault> {
        match self.ask(Question::Call { seed })? {
            (Answer::Done(Some(returned)), took) => Ok(CompletedCall { returned, took }),
            (other, _) => Err(unasked(&other)),
        }
    }

    /// Opens device memory that the judge shares. `handle` is its handle, base64.
    ///
    /// # Errors
    /// Fails if the runner cannot open the memory.
    pub fn open(&mut self, handle: &str, bytes: u64) -> Result<(), RunnerFault> {
        self.done(Question::Open { handle, bytes })
    }

    /// Frees the device memory that the runner does not use, and holds `padding` bytes until the
    /// next call of this function. Later calls then allocate at other addresses of the device. The
    /// last argument describes memory that the runner opens in place of its open memory: the
    /// handle, and the size in bytes.
    ///
    /// # Errors
    /// Fails if the runner cannot allocate or open the memory.
    pub fn relocate(
        &mut self,
        padding: u64,
        (handle, bytes): (&str, u64),
    ) -> Result<(), RunnerFault> {
        self.done(Question::Relocate { padding, handle, bytes })
    }

    /// Prepares a batch of calls. The content of the arguments may be written afterwards.
    ///
    /// # Errors
    /// Fails if the runner cannot prepare the batch.
    pub fn prepare(&mut self, batch: &CallBatch<'_>) -> Result<(), RunnerFault> {
        let CallBatch { arguments, stride, count, seed, flush, ref locked } = *batch;
        self.done(Question::Prepare { arguments, stride, count, seed, flush, locked })
    }

    /// Makes the prepared calls. Does not check that the answer has one result per call.
    ///
    /// # Errors
    /// Fails if a call raised an exception, or the process ended or did not return in time.
    pub fn run(&mut self) -> Result<CompletedBatch, RunnerFault> {
        match self.ask(Question::Run)? {
            (Answer::Ran(returned), took) => Ok(CompletedBatch { returned, took }),
            (other, _) => Err(unasked(&other)),
        }
    }

    /// Makes the prepared calls, and returns a trace of the device. The runner may take at most
    /// `within` for this, because no verdict depends on a trace.
    ///
    /// # Errors
    /// Fails if the runner could not trace, or did not return in time.
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

    /// Makes the prepared calls while the tool around the runner profiles them.
    ///
    /// # Errors
    /// Fails if a call raised an exception, or the process ended or did not return in time.
    pub fn count(&mut self) -> Result<(), RunnerFault> {
        self.done(Question::Count)
    }

    /// Returns the times of the calls according to the device's events, milliseconds: one for each
    /// call if the cache was flushed, otherwise one for the whole batch.
    ///
    /// # Errors
    /// Fails if the runner did not answer.
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

    /// Returns the fault of a runner that described a tensor that cannot be read. A tensor that is
    /// too large is not a forgery.
    pub fn fault_of(&self, error: &LayoutError) -> RunnerFault {
        match error {
            LayoutError::TooLarge { .. } => RunnerFault::unusable(format!(
                "a tensor on the host {error}: make it smaller or keep it on a GPU"
            )),
            LayoutError::Invalid(_) | LayoutError::Memory(_) => RunnerFault::Forged(format!(
                "its process reports a tensor that cannot be read: {error}"
            )),
        }
    }

    /// Returns `fault`, or the fault of an ended process if the runner has ended: its memory is
    /// then inaccessible, regardless of its answer.
    pub fn explained(&self, fault: RunnerFault) -> RunnerFault {
        // The runner is stopped, so only another process can have killed it.
        let ended =
            matches!(fault, RunnerFault::Forged(_)) && self.fork.gone_by(Instant::now() + ENDING);
        if ended { self.died() } else { fault }
    }

    /// Checks that the runner has been stopped since its answer, so that the content read from its
    /// memory has not changed.
    ///
    /// # Errors
    /// Fails if the runner ran or has ended.
    pub fn still_stopped(&mut self) -> Result<(), RunnerFault> {
        if self.is_trusted() {
            return Ok(());
        }
        self.fork.still_stopped().map_err(|why| self.awake(why))
    }

    pub(crate) fn ask(&mut self, what: Question<'_>) -> Result<(Answer, Duration), RunnerFault> {
        self.ask_while(what, |_, _| ()).map(|((), answer, took)| (answer, took))
    }

    /// Like [`Self::ask`], but calls `meanwhile` after the runner continues, before its answer is
    /// read.
    pub(crate) fn ask_while<T>(
        &mut self,
        what: Question<'_>,
        meanwhile: impl FnOnce(&Fork, Instant) -> T,
    ) -> Result<(T, Answer, Duration), RunnerFault> {
        let turn = self.secret.bits();
        let timed = matches!(what, Question::Call { .. } | Question::Nothing | Question::Run);
        // The time of an empty question is subtracted from other times, so it must not be too long.
        let counts_late = matches!(what, Question::Call { .. } | Question::Run);
        if !timed {
            self.still_stopped()?;
            // The runner must read a long question while it is sent.
            self.fork.go_on();
        }
        // A timed question is sent first, and the runner receives it when it continues. The
        // measured time begins there and ends with the answer.
        let sent = send(&self.fork.session, &Asked { turn, what }, self.deadline);
        if timed {
            // The question must not have woken the runner.
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
        let answered: Answered = serde_json::from_slice(&frame)
            .map_err(|error| RunnerFault::Forged(format!("its message cannot be read: {error}")))?;
        if answered.turn != turn {
            return Err(RunnerFault::Forged(
                "it answered a question that it was not asked".to_owned(),
            ));
        }
        match answered.answer {
            Answer::Refused(refusal) => Err(RunnerFault::Refused(refusal)),
            answer => Ok((made, answer, took)),
        }
    }

    /// Waits until all threads are stopped. Returns how long the last one ran on after the answer.
    fn stopped(&mut self, heard_at: Instant) -> Result<Duration, RunnerFault> {
        if self.is_trusted() {
            return Ok(Duration::ZERO);
        }
        let until = self.deadline.min(heard_at + STOPPING);
        self.fork.stopped(heard_at, until).map_err(|why| self.awake(why))
    }

    /// Kills a runner that could not be verified as stopped, and returns its fault.
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
            // A process that is about to end runs once more.
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
            io::ErrorKind::InvalidData => {
                RunnerFault::Forged(format!("its message is too long: {error}"))
            }
            _ => self.died(),
        }
    }

    /// Returns the fault of a runner that has ended.
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
        Answer::ShorterTypes(_) => "shorter_types",
        Answer::Ran(_) => "ran",
        Answer::Times(_) => "times",
        Answer::Traced(_) => "traced",
        Answer::Gate(_) => "gate",
        Answer::Refused(_) => "refused",
    };
    RunnerFault::Forged(format!("it answered `{kind}` to a different question"))
}
