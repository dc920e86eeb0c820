//! A stream's work: a bounded FIFO queue with its own thread.
//!
//! Every task gets a ticket, counted from 1. A dependency on a stream is a dependency on one of its
//! tickets. Events, `cuStreamWaitEvent`, the legacy default stream and synchronisation therefore
//! all use the same operation: waiting until a queue has completed a ticket. A task can wait only
//! for tickets that were issued before its own, so there are no cycles.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::context::Core;
use super::task::Task;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{lock, message};

/// Maximum number of tasks waiting in a stream. Beyond it the submitting thread waits, as with a
/// driver whose launch buffer is full.
const CAPACITY: usize = 1024;

/// The queue of a stream, which holds the tasks that have not started.
pub struct Queue {
    pub core: Arc<Core>,
    state: Mutex<State>,
    /// Signalled when a task arrives or the queue closes.
    work: Condvar,
    /// Signalled when a task is complete.
    done: Condvar,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// Number of tickets issued. The next field counts tickets completed.
    issued: u64,
    completed: u64,
    /// Whether the thread exists. It starts with the first task, because many streams never receive
    /// one.
    started: bool,
    closed: bool,
}

/// A position in the work of a stream.
#[derive(Clone)]
pub struct Point {
    pub queue: Arc<Queue>,
    pub ticket: u64,
}

impl Point {
    pub fn reached(&self) -> bool {
        lock(&self.queue.state).completed >= self.ticket
    }

    /// Blocks until all work up to this point is complete.
    pub fn wait(&self) {
        let mut state = lock(&self.queue.state);
        while state.completed < self.ticket {
            state = self.queue.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Queue {
    pub fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Queue {
            core,
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
        })
    }

    /// Returns the point after everything submitted so far.
    pub fn now(self: &Arc<Self>) -> Point {
        Point { queue: self.clone(), ticket: lock(&self.state).issued }
    }

    /// Returns whether all submitted work is complete.
    pub fn idle(&self) -> bool {
        let state = lock(&self.state);
        state.completed == state.issued
    }

    /// Waits until the queue has space. Other threads may use the space first, so the bound can be
    /// exceeded by the number of submitting threads. It limits memory and is not an exact count.
    pub fn wait_for_room(&self) {
        let mut state = lock(&self.state);
        while state.tasks.len() >= CAPACITY {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Appends a task to the queue. Returns the point at which the task is complete.
    pub fn push(self: &Arc<Self>, task: Task) -> Res<Point> {
        let mut state = lock(&self.state);
        if !state.started {
            let own = self.clone();
            std::thread::Builder::new()
                .name("wg-stream".into())
                .spawn(move || own.serve())
                .map_err(|_| Code::OPERATING_SYSTEM)?;
            state.started = true;
        }
        state.tasks.push_back(task);
        state.issued += 1;
        let ticket = state.issued;
        drop(state);
        self.work.notify_one();
        Ok(Point { queue: self.clone(), ticket })
    }

    /// Closes the queue: no more tasks will follow, and the thread ends after its remaining tasks.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.work.notify_one();
    }

    fn serve(&self) {
        while let Some(task) = self.next() {
            self.run(task);
            lock(&self.state).completed += 1;
            self.done.notify_all();
        }
    }

    fn next(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            if state.closed {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs a task. In a context that has failed, only tasks that others depend on are executed.
    fn run(&self, task: Task) {
        if self.core.failed().is_some() && !task.survives() {
            return;
        }
        let result = catch_unwind(AssertUnwindSafe(|| task.run(&self.core)));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(code)) => self.core.fail(code),
            Err(panic) => {
                let text = message(&panic);
                eprintln!("warpgauge emulator: internal error in {}: {text}", task.what());
                self.core.fail(Code::LAUNCH_FAILED);
            }
        }
    }
}
