//! Schedules the work on files. A file must be complete before the work on it begins, and only a
//! limited number of files is in work. The main function is [`watch`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::evaluator::Evaluator;
use crate::folder::{Folder, FolderError, failed};
use crate::intake::Version;
use crate::journal::{self, Entry};
use crate::kernel_file::kernel_type;
use crate::news::{self, Message};
use crate::work::{Bench, Done, How, Task};

/// Maximum number of messages that wait. If more arrive, the watcher scans the whole folder.
const INBOX: usize = 4096;

/// Maximum number of files that the watcher remembers. It finds further files once these are done.
const MAX_KNOWN: usize = 20_000;

/// Interval of additional scans of the folder, because notifications may be incomplete.
const LOOK_ANYHOW: Duration = Duration::from_secs(10);

/// Interval at which a folder without notifications is polled.
const POLL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// Maximum number of files in work at the same time.
    pub at_once: usize,
    /// Time for which a file must remain unchanged if no notification reports that it is complete.
    pub settle: Duration,
    /// Interval of polling in place of notifications; `None` uses notifications if they work.
    pub poll: Option<Duration>,
    /// Whether to stop once all files are done.
    pub once: bool,
    /// Whether to request the metrics that results contain, if a contract requests none.
    pub profile: bool,
    /// Whether results are named `NAME_result.json`.
    pub suffixed_results: bool,
}

/// An event that the watcher reports.
#[derive(Debug)]
pub enum WatchEvent<'t> {
    /// Watching has begun.
    Watching {
        /// Interval of polling, and the reason why notifications are not used.
        polling: Option<(Duration, String)>,
    },
    /// The watcher scanned the folder.
    Looked,
    /// A result was published.
    Result {
        /// Summary of the result.
        line: &'t str,
        path: &'t Path,
    },
    /// The work on a file waits for the service.
    Waiting { file: &'t str, why: &'t str },
    /// An operation on the folder failed; the watcher retries it.
    Trouble(&'t FolderError),
}

#[derive(Debug, Default)]
pub struct WatchStop {
    stopped: Mutex<(bool, Option<SyncSender<Message>>)>,
    told: Condvar,
}

impl WatchStop {
    /// Stops the watcher. It starts no more work, and does not wait for work in progress.
    pub fn stop(&self) {
        let mut state = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = true;
        if let Some(inbox) = &state.1 {
            // If the inbox is full, the watcher is awake and will notice the stop.
            let _ = inbox.try_send(Message::Stop);
        }
        self.told.notify_all();
    }

    /// Returns whether the watcher should stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until this time has passed or the watcher is stopped. Returns whether the watcher was
    /// stopped.
    pub fn wait(&self, time: Duration) -> bool {
        let state = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(state, time, |state| !state.0);
        waited.unwrap_or_else(PoisonError::into_inner).0.0
    }

    fn tell(&self, inbox: Option<SyncSender<Message>>) {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).1 = inbox;
    }
}

/// Watches a folder until it is stopped or, with [`WatchOptions::once`], until all files are done.
///
/// # Errors
/// The folder cannot be read, or entries of an earlier watcher cannot be completed.
pub fn watch(
    folder: &Folder,
    options: &WatchOptions,
    evaluator: &dyn Evaluator,
    stop: &WatchStop,
    told: &(dyn Fn(WatchEvent<'_>) + Sync),
) -> Result<(), FolderError> {
    let (inbox, messages) = mpsc::sync_channel(INBOX);
    stop.tell(Some(inbox.clone()));
    let missed = Arc::new(AtomicBool::new(false));
    let (poll, _subscription) = listen(folder, options, &inbox, &missed, told);
    let begun =
        journal::recover(folder)?.into_iter().map(|(key, entry)| (entry.name(), (key, entry)));
    let bench = Bench { folder, evaluator, stop, told, profile: options.profile };
    let at_once = options.at_once.max(1);
    let (tasks, waiting) = mpsc::sync_channel::<Task>(at_once);
    let waiting = Mutex::new(waiting);
    let outcome = std::thread::scope(|scope| {
        for _ in 0..at_once {
            let (inbox, waiting, bench) = (inbox.clone(), &waiting, &bench);
            scope.spawn(move || {
                loop {
                    let task = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(task) = task else { return };
                    if inbox.send(Message::Done(bench.work(task))).is_err() {
                        return;
                    }
                }
            });
        }
        let mut watcher = Watcher {
            folder,
            options,
            told,
            tasks,
            begun: begun.collect(),
            ready: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            busy: BTreeMap::new(),
            more: false,
            failed: None,
        };
        let outcome = watcher.run(&messages, poll, &missed, stop);
        drop(watcher);
        // If the inbox were full and had no reader, a worker that reports its end would block.
        drop(messages);
        outcome
    });
    stop.tell(None);
    outcome
}

/// Subscribes to notifications. Returns the interval of scans and, if there is one, the
/// subscription.
fn listen(
    folder: &Folder,
    options: &WatchOptions,
    inbox: &SyncSender<Message>,
    missed: &Arc<AtomicBool>,
    told: &(dyn Fn(WatchEvent<'_>) + Sync),
) -> (Duration, Option<notify::RecommendedWatcher>) {
    let kernels = folder.kernels();
    let polling = |every: Duration, why: String| {
        told(WatchEvent::Watching { polling: Some((every, why)) });
        (every, None)
    };
    if let Some(every) = options.poll {
        return polling(every, "as requested".to_owned());
    }
    if news::is_remote(&kernels) {
        let why = "it is on a network file system, which does not report changes by other machines"
            .to_owned();
        return polling(POLL, why);
    }
    match news::subscribe(&kernels, inbox.clone(), Arc::clone(missed)) {
        Ok(subscription) => {
            told(WatchEvent::Watching { polling: None });
            (LOOK_ANYHOW, Some(subscription))
        }
        Err(error) => polling(POLL, format!("the system cannot watch it for changes: {error}")),
    }
}

/// A file that may be incomplete.
#[derive(Debug)]
struct Unsettled {
    version: Option<Version>,
    since: Instant,
}

struct Watcher<'w> {
    folder: &'w Folder,
    options: &'w WatchOptions,
    told: &'w (dyn Fn(WatchEvent<'_>) + Sync),
    tasks: SyncSender<Task>,
    /// Entries of an earlier process, by the name of the file.
    begun: BTreeMap<OsString, (String, Entry)>,
    ready: BTreeSet<OsString>,
    unsettled: BTreeMap<OsString, Unsettled>,
    /// Files in work. The value is set if a notification about the file arrived in the meantime; it
    /// is true if the file was complete.
    busy: BTreeMap<OsString, Option<bool>>,
    /// Whether there may be files that the watcher does not know yet.
    more: bool,
    /// Error with a file, recorded if [`WatchOptions::once`] is set.
    failed: Option<FolderError>,
}

impl Watcher<'_> {
    fn run(
        &mut self,
        messages: &Receiver<Message>,
        poll: Duration,
        missed: &AtomicBool,
        stop: &WatchStop,
    ) -> Result<(), FolderError> {
        self.look()?;
        let mut looked = Instant::now();
        loop {
            self.hand_out();
            if self.options.once && self.is_idle() && !std::mem::take(&mut self.more) {
                return self.failed.take().map_or(Ok(()), Err);
            }
            let next_look = poll.saturating_sub(looked.elapsed());
            let wait =
                if self.unsettled.is_empty() { next_look } else { next_look.min(self.tick()) };
            match messages.recv_timeout(wait) {
                Ok(Message::Stop) => return Ok(()),
                Ok(Message::File { name, complete }) => self.heard(name, complete),
                Ok(Message::Done(done)) => self.done(done),
                Ok(Message::Look) => self.more = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if stop.is_stopped() {
                return Ok(());
            }
            let drained = self.ready.is_empty() && self.more;
            if missed.swap(false, Ordering::AcqRel) || drained || looked.elapsed() >= poll {
                self.look()?;
                looked = Instant::now();
            }
            self.settle();
        }
    }

    fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.unsettled.is_empty() && self.busy.is_empty()
    }

    /// Returns the interval at which files that may be incomplete are checked.
    fn tick(&self) -> Duration {
        (self.options.settle / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    fn hand_out(&mut self) {
        while self.busy.len() < self.options.at_once.max(1) {
            let Some(name) = self.ready.pop_first() else { return };
            let begun = self.begun.remove(&name);
            // The channel has capacity for all files that may be in work.
            if self.tasks.try_send(Task { name: name.clone(), begun }).is_ok() {
                self.busy.insert(name, None);
            }
        }
    }

    fn is_kernel(name: &OsStr) -> bool {
        kernel_type(&name.to_string_lossy()).is_some()
    }

    fn heard(&mut self, name: OsString, complete: bool) {
        if !Self::is_kernel(&name) {
            return;
        }
        if let Some(meanwhile) = self.busy.get_mut(&name) {
            *meanwhile = Some(complete);
        } else if complete {
            self.unsettled.remove(&name);
            self.add_ready(name);
        } else {
            self.ready.remove(&name);
            self.add_unsettled(name);
        }
    }

    fn add_ready(&mut self, name: OsString) {
        if self.has_room() {
            self.ready.insert(name);
        } else {
            self.more = true;
        }
    }

    fn add_unsettled(&mut self, name: OsString) {
        if self.has_room() {
            self.unsettled.insert(name, Unsettled { version: None, since: Instant::now() });
        } else {
            self.more = true;
        }
    }

    fn has_room(&self) -> bool {
        self.ready.len() + self.unsettled.len() < MAX_KNOWN
    }

    fn done(&mut self, done: Done) {
        let Done { name, how } = done;
        let meanwhile = self.busy.remove(&name).flatten();
        match how {
            How::Settled => {
                if let Some(complete) = meanwhile {
                    self.heard(name, complete);
                }
            }
            How::Changing => self.add_unsettled(name),
            How::Failed(error, begun) => {
                (self.told)(WatchEvent::Trouble(&error));
                if let Some(begun) = begun {
                    self.begun.insert(name, begun);
                }
                // The next scan finds the file and its entry; it is not urgent.
                self.more = false;
                self.failed = self.options.once.then_some(error);
            }
            How::Stopped => {}
        }
    }

    /// Scans the whole folder.
    fn look(&mut self) -> Result<(), FolderError> {
        (self.told)(WatchEvent::Looked);
        self.more = false;
        let kernels = self.folder.kernels();
        let entries = fs::read_dir(&kernels).map_err(failed("list", &kernels))?;
        for entry in entries {
            let entry = entry.map_err(failed("list", &kernels))?;
            let name = entry.file_name();
            let known = self.ready.contains(&name)
                || self.unsettled.contains_key(&name)
                || self.busy.contains_key(&name);
            if known || !Self::is_kernel(&name) || entry.file_type().is_ok_and(|kind| kind.is_dir())
            {
                continue;
            }
            if self.is_old(&name) {
                self.add_ready(name)
            } else {
                self.add_unsettled(name)
            }
            if self.more {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether the last write to a file is long enough ago that the file is complete.
    fn is_old(&self, name: &OsStr) -> bool {
        let metadata = fs::symlink_metadata(self.folder.kernels().join(name));
        let modified = metadata.ok().and_then(|metadata| metadata.modified().ok());
        let age = modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        age.is_some_and(|age| age >= self.options.settle)
    }

    /// Moves files that have not changed for long enough to `ready`.
    fn settle(&mut self) {
        let kernels = self.folder.kernels();
        let settle = self.options.settle;
        let mut complete = Vec::new();
        self.unsettled.retain(|name, unsettled| {
            let Some(version) = Version::at(&kernels.join(name)) else { return false };
            if unsettled.version != Some(version) {
                *unsettled = Unsettled { version: Some(version), since: Instant::now() };
            } else if unsettled.since.elapsed() >= settle {
                complete.push(name.clone());
                return false;
            }
            true
        });
        self.ready.extend(complete);
    }
}
