//! Jobs: what is to be done, by whom it was asked for, and what came of it.
//!
//! The store has every job, from its acceptance to its report. What this process carries out is
//! `live` as well: there its progress is, its watchers, and the way to stop it. `accept` enters jobs
//! that somebody waits for, `dispatch` claims those that wait in the store, `carry_out` takes both to
//! their end, `views` answers questions, from the live table where it knows more than the store, and
//! `watcher` follows a job for those who want its news.
//!
//! - A job ends in the store before its caller is answered, by a write that only the holder of its
//!   lease can make. So what was answered is what is kept, and no job ends twice.
//! - Stages on the way are written later, by one task (`upkeep`), and only those that last: they are
//!   for other processes to see.

mod accept;
mod accepted;
mod carry_out;
mod codec;
mod dispatch;
pub(super) mod kinds;
mod live;
mod outcome;
mod requirements;
mod upkeep;
mod views;
mod watcher;

pub(super) use accept::{refused, visibility};
pub(super) use dispatch::Dispatcher;
pub(super) use live::{LiveJob, LiveJobs};
pub(super) use requirements::Taking;
pub(super) use upkeep::keep as keep_up;
pub(super) use views::gate_job;
