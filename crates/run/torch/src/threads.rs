//! The threads of a fork, observed from outside: whether all are stopped, and whether any ran
//! afterwards.
//!
//! SIGSTOP is delivered to one thread, which stops the others when it leaves the kernel. While that
//! thread is in a long system call (`madvise`, for example) the others continue to run. Sending the
//! signal thus proves nothing. The judge therefore reads the state of each thread from `/proc`, and
//! how often the scheduler has run it. A thread that was stopped, woken and stopped again has a
//! higher count.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, RawDir, SeekFrom, openat, seek};

use super::awaited::awaited;

/// Maximum number of threads whose files stay open between two observations. If there are more
/// threads, files are opened for each observation.
const KEPT: usize = 128;

/// Maximum total time for which threads may run after they were observed to be stopped. The kernel
/// marks a thread as stopped shortly before the thread gives up its processor. If the kernel
/// preempts the thread in between, it runs once more, for some microseconds.
const TAIL: Duration = Duration::from_micros(100);

/// Number of observations without a pause, and number of observations after which pauses begin.
/// Between the two the processor is yielded; later pauses grow.
const EAGER: u32 = 4;
const YIELDING: u32 = 8;
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Number of bytes to read of a thread's `stat` and `schedstat`, and number of fields in `stat`
/// between the state and the number of threads.
const READ: usize = 512;
const NUM_THREADS: usize = 16;

/// Reason why a fork is not considered stopped.
#[derive(Debug)]
pub(crate) enum NotStopped {
    /// The process has ended.
    Ended,
    /// A thread was in this state, as in `proc(5)`, at the deadline.
    Running(char),
    /// A thread ran after it was observed to be stopped.
    Woken,
    /// The system does not show the state of the threads.
    Unknown(io::Error),
}

impl std::fmt::Display for NotStopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended => f.write_str("its process has ended"),
            Self::Running(state) => write!(
                f,
                "one of its threads does not stop (state {state} in /proc), which happens in a long system \
                 call"
            ),
            Self::Woken => f.write_str(
                "one of its threads ran while all were stopped: something woke the process before its turn",
            ),
            Self::Unknown(error) => write!(f, "the state of its threads cannot be observed: {error}"),
        }
    }
}

impl From<io::Error> for NotStopped {
    fn from(error: io::Error) -> Self {
        Self::Unknown(error)
    }
}

/// The threads of one process, observed from outside.
#[derive(Debug)]
pub(crate) struct Threads {
    /// The directory `/proc/PID/task`.
    directory: OwnedFd,
    observed: Vec<Thread>,
    /// Number of threads, from the first on, that the current observation found to be stopped.
    stopped: usize,
}

/// Result of observing the threads of a process.
enum Observed {
    Stopped,
    /// A thread was in this state, as in `proc(5)`, at this time.
    Running(char, Instant),
    /// The process's threads differ from the list.
    OtherThreads,
}

#[derive(Debug)]
struct Thread {
    number: u32,
    files: Option<Files>,
    state: char,
    /// Number of threads of the process when this thread was observed.
    beside: usize,
    runs: Runs,
}

/// Files of a thread below `/proc/PID/task/TID`.
#[derive(Debug)]
struct Files {
    stat: File,
    schedstat: File,
}

/// Number of times that a thread got a processor, and its total time on a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Runs {
    times: u64,
    spent: Duration,
}

impl Threads {
    /// Opens the directory of a process's threads. The holder of the directory can observe the
    /// threads, unless it has no access to `/proc`.
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub(crate) fn directory_of(process: i32) -> io::Result<OwnedFd> {
        Ok(File::open(format!("/proc/{process}/task"))?.into())
    }

    /// Wraps a directory that [`Self::directory_of`] has opened; no thread is observed yet.
    pub(crate) fn of(directory: OwnedFd) -> Self {
        Self { directory, observed: Vec::new(), stopped: 0 }
    }

    /// Waits until all threads are stopped. `ended`: a handle of the process; `signalled`: the time
    /// when SIGSTOP was sent. Returns the time from the signal to the last observation of a running
    /// thread. Blocks.
    ///
    /// # Errors
    /// Returns any [`NotStopped`] except `Woken`; [`NotStopped::Running`] at the deadline.
    pub(crate) fn stopped(
        &mut self,
        ended: impl AsFd,
        signalled: Instant,
        deadline: Instant,
    ) -> Result<Duration, NotStopped> {
        let (mut running, mut attempt) = (signalled, 0);
        loop {
            let looked = Instant::now();
            let state = match self.observe_rest()? {
                Observed::Stopped => return Ok(running - signalled),
                Observed::Running(state, looked) => {
                    running = looked;
                    state
                }
                Observed::OtherThreads => {
                    self.list()?;
                    '?'
                }
            };
            if looked >= deadline {
                return Err(NotStopped::Running(state));
            }
            if has_ended_after_pause(&ended, attempt) {
                return Err(NotStopped::Ended);
            }
            attempt += 1;
        }
    }

    /// Checks that no thread has run since all were observed to be stopped.
    ///
    /// # Errors
    /// Returns [`NotStopped::Woken`], or an error if the system does not show the state.
    pub(crate) fn still_stopped(&mut self) -> Result<(), NotStopped> {
        let keep = self.observed.len() <= KEPT;
        let mut tail = Duration::ZERO;
        for thread in self.observed.iter_mut().filter(|thread| !thread.is_dead()) {
            let before = thread.runs;
            if !thread.observe(&self.directory, keep)? || !thread.is_stopped() {
                return Err(NotStopped::Woken);
            }
            match thread.runs.times - before.times {
                0 => {}
                1 => tail += thread.runs.spent.saturating_sub(before.spent),
                _ => return Err(NotStopped::Woken),
            }
        }
        if tail > TAIL { Err(NotStopped::Woken) } else { Ok(()) }
    }

    /// Observes the threads that were not stopped at the last observation.
    fn observe_rest(&mut self) -> Result<Observed, NotStopped> {
        let keep = self.observed.len() <= KEPT;
        for thread in self.observed[self.stopped..].iter_mut() {
            let looked = Instant::now();
            if !thread.observe(&self.directory, keep)? {
                return Ok(Observed::OtherThreads);
            }
            if !thread.is_stopped() {
                return Ok(Observed::Running(thread.state, looked));
            }
            self.stopped += 1;
        }
        // When the last thread was observed, none of the others could start a thread any more.
        let Some(last) = self.observed.last() else { return Ok(Observed::OtherThreads) };
        if last.beside != self.observed.len() {
            return Ok(Observed::OtherThreads);
        }
        // The next observation covers all threads again.
        self.stopped = 0;
        let dead = self.observed.iter().all(Thread::is_dead);
        if dead { Err(NotStopped::Ended) } else { Ok(Observed::Stopped) }
    }

    /// Updates the list of threads. All of them must be observed again.
    fn list(&mut self) -> Result<(), NotStopped> {
        let numbers = self.numbers()?;
        if numbers.is_empty() {
            return Err(NotStopped::Ended);
        }
        let mut known = std::mem::take(&mut self.observed).into_iter().peekable();
        for number in numbers {
            // Both lists are sorted.
            while known.next_if(|thread| thread.number < number).is_some() {}
            let thread = known.next_if(|thread| thread.number == number);
            self.observed.push(thread.unwrap_or_else(|| Thread::new(number)));
        }
        self.stopped = 0;
        Ok(())
    }

    /// Returns the thread numbers, sorted.
    fn numbers(&self) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::with_capacity(self.observed.len());
        seek(&self.directory, SeekFrom::Start(0))?;
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(&self.directory, &mut space);
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) => {
                    let name = entry.file_name().to_str().ok();
                    numbers.extend(name.and_then(|name| name.parse::<u32>().ok()));
                }
                Err(error) if is_gone(&error.into()) => break,
                Err(error) => return Err(error.into()),
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

impl Thread {
    fn new(number: u32) -> Self {
        Self { number, files: None, state: 'R', beside: 0, runs: Runs::default() }
    }

    /// Returns whether the thread is stopped by a signal or a tracer, or dead.
    fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't') || self.is_dead()
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Reads how often the thread has run, and then its state. Returns whether the thread exists.
    /// With `keep`, the files stay open.
    fn observe(&mut self, directory: &OwnedFd, keep: bool) -> io::Result<bool> {
        let files = match self.files.take() {
            Some(files) => files,
            None => match Files::of(directory, self.number)? {
                Some(files) => files,
                None => return Ok(false),
            },
        };
        let (Some(runs), Some((state, beside))) = (files.runs()?, files.state()?) else {
            return Ok(false);
        };
        (self.runs, self.state, self.beside) = (runs, state, beside);
        self.files = keep.then_some(files);
        Ok(true)
    }
}

impl Files {
    fn of(directory: &OwnedFd, number: u32) -> io::Result<Option<Self>> {
        let open = |name: &str| {
            let path = format!("{number}/{name}");
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            openat(directory, path, flags, Mode::empty()).map(File::from).map_err(io::Error::from)
        };
        match open("stat") {
            Ok(stat) => match open("schedstat") {
                Ok(schedstat) => Ok(Some(Self { stat, schedstat })),
                // A thread that has ended in the meantime has no `stat` either.
                Err(error) if is_gone(&error) && text(&stat)?.is_some() => Err(uncounted()),
                Err(error) if is_gone(&error) => Ok(None),
                Err(error) => Err(error),
            },
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the state, as in `proc(5)`, and the number of threads of the process.
    fn state(&self) -> io::Result<Option<(char, usize)>> {
        text(&self.stat)?.map(|text| state_of(&text).ok_or_else(unreadable)).transpose()
    }

    fn runs(&self) -> io::Result<Option<Runs>> {
        text(&self.schedstat)?.map(|text| runs_of(&text)).transpose()
    }
}

/// Parses `stat`: the state, and the number of threads.
fn state_of(text: &str) -> Option<(char, usize)> {
    // The name before the state may contain parentheses too.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(NUM_THREADS)?.parse().ok()?))
}

/// Parses `schedstat`: nanoseconds on a processor, nanoseconds of waiting for a processor, and the
/// number of times that the thread got one.
fn runs_of(text: &str) -> io::Result<Runs> {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
    let (spent, times) = (numbers.next().flatten(), numbers.nth(1).flatten());
    let (Some(spent), Some(times)) = (spent, times) else { return Err(unreadable()) };
    // Every thread has run once before it can be stopped.
    if times == 0 {
        Err(uncounted())
    } else {
        Ok(Runs { times, spent: Duration::from_nanos(spent) })
    }
}

/// Returns the beginning of a file, or `None` if its thread has ended.
fn text(file: &File) -> io::Result<Option<String>> {
    let mut bytes = [0; READ];
    match file.read_at(&mut bytes, 0) {
        Ok(0) => Ok(None),
        Ok(count) => Ok(Some(String::from_utf8_lossy(&bytes[..count]).into_owned())),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    let no_process = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(no_process)
}

fn unreadable() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the files of threads in /proc have an unknown format",
    )
}

fn uncounted() -> io::Error {
    let why = "the kernel does not count how often threads run; use a kernel with \
               CONFIG_SCHEDSTATS or CONFIG_TASK_DELAY_ACCT";
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Pauses before the next observation. Returns whether the process has ended.
fn has_ended_after_pause(ended: impl AsFd, attempt: u32) -> bool {
    if attempt < YIELDING {
        if attempt >= EAGER {
            std::thread::yield_now();
        }
        return false;
    }
    let pause = SHORTEST_PAUSE * (1 << (attempt - YIELDING).min(10));
    !awaited(ended, Instant::now() + pause.min(LONGEST_PAUSE)).is_empty()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::sync::{Arc, Mutex, mpsc};

    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

    use super::*;

    /// A child process under observation.
    struct Process {
        child: Child,
        handle: OwnedFd,
        threads: Threads,
    }

    impl Process {
        /// Starts a shell with this script.
        fn shell(script: &str) -> Self {
            let mut shell = Command::new("sh");
            let child = shell.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
            let pid = Pid::from_child(&child);
            let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
            let directory = Threads::directory_of(pid.as_raw_nonzero().get()).unwrap();
            Self { child, handle, threads: Threads::of(directory) }
        }

        fn send(&self, signal: Signal) {
            kill_process(Pid::from_child(&self.child), signal).unwrap();
        }

        fn stopped_within(&mut self, limit: Duration) -> Result<Duration, NotStopped> {
            let now = Instant::now();
            self.threads.stopped(&self.handle, now, now + limit)
        }

        fn stop(&mut self) {
            self.send(Signal::STOP);
            self.stopped_within(LONG).unwrap();
        }

        /// Continues the process until its main thread has run for this time, according to the
        /// system.
        fn run_for(&mut self, time: Duration) {
            let before = self.threads.observed[0].runs.spent;
            self.send(Signal::CONT);
            let until = Instant::now() + LONG;
            let spent = |threads: &Threads| {
                threads.observed[0].files.as_ref().unwrap().runs().unwrap().unwrap().spent
            };
            while spent(&self.threads) < before + time {
                assert!(Instant::now() < until, "it does not go on");
                std::thread::yield_now();
            }
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }

    const LONG: Duration = Duration::from_secs(60);
    const ENDLESS: &str = "while :; do :; done";

    #[test]
    fn a_process_that_runs_is_not_stopped() {
        let mut endless = Process::shell(ENDLESS);
        let running = endless.stopped_within(Duration::from_millis(50)).unwrap_err();
        assert!(matches!(running, NotStopped::Running(_)), "{running}");
        endless.stop();
        endless.threads.still_stopped().unwrap();
        endless.threads.still_stopped().unwrap();
    }

    #[test]
    fn a_process_that_was_woken_and_stopped_again_is_noticed() {
        let mut endless = Process::shell(ENDLESS);
        endless.stop();
        endless.run_for(Duration::from_millis(5));
        assert!(matches!(endless.threads.still_stopped(), Err(NotStopped::Woken)), "it runs");
        let seen = endless.threads.observed[0].runs;
        endless.stop();
        // Pretend that nothing has been observed since.
        endless.threads.observed[0].runs = Runs { times: seen.times - 1, ..seen };
        endless.threads.observed[0].runs.spent -= 2 * TAIL;
        assert!(matches!(endless.threads.still_stopped(), Err(NotStopped::Woken)), "it ran");
        endless.stopped_within(LONG).unwrap();
        endless.threads.still_stopped().unwrap();
    }

    #[test]
    fn a_process_that_has_ended_is_not_stopped() {
        let mut waits = Process::shell("read line");
        waits.stop();
        waits.child.kill().unwrap();
        let until = Instant::now() + LONG;
        assert!(!awaited(&waits.handle, until).is_empty());
        assert!(matches!(waits.stopped_within(LONG), Err(NotStopped::Ended)));
        waits.child.wait().unwrap();
        assert!(matches!(waits.stopped_within(LONG), Err(NotStopped::Ended)));
    }

    #[test]
    fn all_threads_count() {
        // The threads of this process are never all stopped.
        let own = rustix::process::getpid();
        let handle = pidfd_open(own, PidfdFlags::empty()).unwrap();
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let waiting = std::iter::repeat_with(|| {
            let wait = Arc::clone(&wait);
            std::thread::spawn(move || wait.lock().unwrap().recv().is_err())
        });
        let waiting: Vec<_> = waiting.take(2 * KEPT).collect();
        let directory = Threads::directory_of(own.as_raw_nonzero().get()).unwrap();
        let mut threads = Threads::of(directory);
        let now = Instant::now();
        let running = threads.stopped(&handle, now, now + Duration::from_millis(20)).unwrap_err();
        assert!(matches!(running, NotStopped::Running(_)), "{running}");
        assert!(threads.observed.len() > 2 * KEPT, "{}", threads.observed.len());
        drop(go);
        assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
    }

    #[test]
    fn what_the_kernel_does_not_count_is_an_error() {
        assert_eq!(
            runs_of("2500 17 3\n").unwrap(),
            Runs { times: 3, spent: Duration::from_nanos(2500) }
        );
        let error = runs_of("0 0 0\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("CONFIG_SCHEDSTATS"), "{error}");
        assert_eq!(runs_of("1 2").unwrap_err().kind(), io::ErrorKind::InvalidData);
        let stat = "71 (a) R (b) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 42 0 99\n";
        assert_eq!(state_of(stat), Some(('T', 42)));
        assert_eq!(state_of("71 (a) T 1 2"), None);
    }
}
