//! Sums the changes that the writes of a transaction make to the counts of owners. The sums are
//! written at the end in a fixed order, so that two processes never deadlock. The main type is
//! [`Tally`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use sqlx::{AnyConnection, Executor};

use super::JobState;
use super::database::Backend;
use super::rows::Statements;
use super::state::index;

/// Sums of the changes that one transaction makes to each owner's counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    owners: BTreeMap<String, Change>,
    /// Minimum device time that is recorded for owners that return after a time without jobs.
    floor: i64,
    virtual_time: Option<i64>,
}

#[derive(Debug, Default)]
struct Change {
    waiting: i64,
    running: i64,
    served: i64,
    bytes: i64,
    states: [i64; 9],
}

/// State of a job, and whether a process holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) state: JobState,
    pub(super) held: bool,
}

impl Place {
    pub(super) fn waiting(state: JobState) -> Self {
        Self { state, held: false }
    }

    pub(super) fn held(state: JobState) -> Self {
        Self { state, held: true }
    }
}

impl Tally {
    /// Records that a job of `owner` changed its state. `None` means that the job did not exist
    /// before, or no longer exists.
    pub(super) fn moved(&mut self, owner: &str, from: Option<Place>, to: Option<Place>) {
        let change = self.of(owner);
        for (place, sign) in [(from, -1), (to, 1)] {
            let Some(place) = place else { continue };
            change.states[index(place.state)] += sign;
            if place.held {
                change.running += sign;
            } else if !super::state::has_ended(place.state) {
                change.waiting += sign;
            }
        }
    }

    /// Adds to the device time that `owner` has used, microseconds. A negative number corrects an
    /// earlier estimate.
    pub(super) fn served(&mut self, owner: &str, micros: i64) {
        let change = self.of(owner);
        change.served = change.served.saturating_add(micros);
    }

    /// Adds to the number of bytes that `owner` stores.
    pub(super) fn weighs(&mut self, owner: &str, bytes: i64) {
        self.of(owner).bytes += bytes;
    }

    /// Records that an owner returned after a time without jobs. Its device time becomes at least
    /// `virtual_time`, so it keeps no credit.
    pub(super) fn returns(&mut self, virtual_time: i64) {
        self.floor = self.floor.max(virtual_time);
    }

    /// Advances the virtual time to at least this value.
    pub(super) fn advance_to(&mut self, virtual_time: i64) {
        self.virtual_time = self.virtual_time.max(Some(virtual_time));
    }

    /// Returns whether jobs became available.
    pub(super) fn woke(&self) -> bool {
        self.owners.values().any(|change| change.waiting > 0)
    }

    /// Writes the sums to the database.
    pub(super) async fn flush(
        &self,
        backend: Backend,
        connection: &mut AnyConnection,
    ) -> Result<(), sqlx::Error> {
        let owners: Vec<(&String, &Change)> = self.owners.iter().collect();
        for (sql, piece) in UPSERT.exactly(backend, &owners) {
            let mut query = sqlx::query(sql);
            for (owner, change) in piece {
                query = query
                    .bind(owner.as_str())
                    .bind(change.waiting)
                    .bind(change.running)
                    .bind(self.floor.saturating_add(change.served))
                    .bind(change.bytes);
                for count in change.states {
                    query = query.bind(count);
                }
            }
            (&mut *connection).execute(query.bind(self.floor)).await?;
        }
        if let Some(time) = self.virtual_time {
            let query = sqlx::query(
                "UPDATE numbers SET value = $1 WHERE name = 'virtual_time' AND value < $1",
            );
            connection.execute(query.bind(time)).await?;
        }
        Ok(())
    }

    fn of(&mut self, owner: &str) -> &mut Change {
        self.owners.entry(owner.to_owned()).or_default()
    }
}

/// `$1` is the minimum device time. A new row starts with it, and a row whose owner had no jobs is
/// raised to it. So `served` of a proposed row includes it, and it is subtracted for an existing
/// row.
static UPSERT: LazyLock<Statements> = LazyLock::new(|| {
    let head = "\
        INSERT INTO owners (owner, waiting, running, served, bytes, n_submitted, n_queued, \
            n_compiling, n_validating, n_profiling, n_completed, n_failed, n_cancelled, \
            n_timed_out) VALUES ";
    let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let tail = "\
        \x20ON CONFLICT (owner) DO UPDATE SET \
            waiting = owners.waiting + excluded.waiting, \
            running = owners.running + excluded.running, \
            served = (CASE WHEN owners.waiting + owners.running <= 0 AND owners.served < $1 \
                THEN $1 ELSE owners.served END) + (excluded.served - $1), \
            bytes = owners.bytes + excluded.bytes, \
            n_submitted = owners.n_submitted + excluded.n_submitted, \
            n_queued = owners.n_queued + excluded.n_queued, \
            n_compiling = owners.n_compiling + excluded.n_compiling, \
            n_validating = owners.n_validating + excluded.n_validating, \
            n_profiling = owners.n_profiling + excluded.n_profiling, \
            n_completed = owners.n_completed + excluded.n_completed, \
            n_failed = owners.n_failed + excluded.n_failed, \
            n_cancelled = owners.n_cancelled + excluded.n_cancelled, \
            n_timed_out = owners.n_timed_out + excluded.n_timed_out";
    Statements::exact(head, row, tail)
});
