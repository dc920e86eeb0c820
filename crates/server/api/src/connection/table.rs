//! The table of connections. [`Connections`] limits their number, and enforces the deadlines of
//! each.
//!
//! A client that opens connections without using them must not keep others away. So when the limit
//! is reached, a new connection replaces the existing connection with the lowest [`Rank`]. A
//! connection is never closed for another while the server works on its request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Notify;

use super::deadlines::Deadlines;

/// Interval at which the table searches for a connection that can be closed, because a request may
/// have ended in the meantime.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Number of open files that are reserved for other uses: database, children, tensors.
const OTHER_FILES: u64 = 512;

/// Bytes and seconds that are added to a body's progress. Without them, the newest body would
/// appear to be the slowest.
const HEAD_START: (f64, f64) = (65_536.0, 1.0);

/// The connections of all clients.
pub(crate) struct Connections {
    most: usize,
    deadlines: Deadlines,
    table: Mutex<OpenConnections>,
    freed: Notify,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    open: HashMap<u64, Arc<ConnectionState>>,
    /// Number of connections that were asked to end and have not ended yet.
    ending: usize,
}

/// A connection and the activity of its client.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    activity: Mutex<Activity>,
    told_to_end: Notify,
}

#[derive(Debug)]
struct Activity {
    turn: Turn,
    /// Time since which the client has not read.
    blocked_since: Option<Instant>,
    /// Total time for which the client did not read since the current request began.
    blocked: Duration,
    /// Bytes sent since the current request began.
    sent: u64,
    ending: bool,
}

#[derive(Debug, Clone, Copy)]
enum Turn {
    /// No request is in progress. `since`: when this state began; `head`: when the first byte of a
    /// request's head arrived.
    Listening { since: Instant, head: Option<Instant> },
    /// A body is arriving. `since`: when it began; `bytes`: its size so far.
    Receiving { since: Instant, bytes: u64 },
    /// The server is working on the request or sending its answer.
    Answering,
}

/// Rank of connections without a request in progress.
const IDLE: u8 = 0;

/// Rank of connections whose clients are not reading their answers.
const BLOCKED: u8 = 2;

/// Minimum time for which a client has not read, seconds, before its connection may be closed
/// together with others.
const BLOCKED_FOR_S: f64 = 0.25;

/// Divisor of the number of connections; the quotient is the maximum number closed at once.
const SHARE_AT_ONCE: usize = 16;

/// Order in which connections are closed to make room: by rank, then by the number within a rank,
/// both ascending.
type Rank = (u8, f64);

impl Activity {
    fn blocked_for(&self, now: Instant) -> Duration {
        let present = self.blocked_since.map(|since| now.saturating_duration_since(since));
        self.blocked + present.unwrap_or_default()
    }

    /// Returns the rank of the connection, or `None` if it must stay open.
    fn rank(&self, now: Instant) -> Option<Rank> {
        let seconds = |since: Instant| now.saturating_duration_since(since).as_secs_f64();
        match self.turn {
            Turn::Listening { since, .. } => Some((IDLE, -seconds(since))),
            Turn::Receiving { since, bytes } => {
                let (head_start, moment) = HEAD_START;
                Some((1, (bytes as f64 + head_start) / (seconds(since) + moment)))
            }
            Turn::Answering => self.blocked_since.map(|since| (BLOCKED, -seconds(since))),
        }
    }

    /// Returns a description of the deadline that the client has missed. Bodies have separate
    /// deadlines, after which the server sends an error.
    fn missed(&self, now: Instant, deadlines: &Deadlines) -> Option<&'static str> {
        let over = |since: Instant, limit| now.saturating_duration_since(since) > limit;
        if self.blocked_for(now) > deadlines.taking(self.sent) {
            return Some("the client reads the answer too slowly");
        }
        match self.turn {
            Turn::Listening { head: Some(since), .. } if over(since, deadlines.head) => {
                Some("the head of a request did not end")
            }
            Turn::Listening { since, .. } if over(since, deadlines.idle) => Some("it was idle"),
            _ => None,
        }
    }
}

impl ConnectionState {
    fn new(now: Instant) -> Self {
        let turn = Turn::Listening { since: now, head: None };
        let activity =
            Activity { turn, blocked_since: None, blocked: Duration::ZERO, sent: 0, ending: false };
        Self { activity: Mutex::new(activity), told_to_end: Notify::new() }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that bytes arrived from the client.
    pub(crate) fn read(&self) {
        if let Turn::Listening { head: head @ None, .. } = &mut self.activity().turn {
            *head = Some(Instant::now());
        }
    }

    /// Records that the client read this number of bytes.
    pub(crate) fn wrote(&self, bytes: usize) {
        let mut activity = self.activity();
        activity.sent = activity.sent.saturating_add(bytes as u64);
        if let Some(since) = activity.blocked_since.take() {
            activity.blocked += since.elapsed();
        }
    }

    /// Records that the client is not reading.
    pub(crate) fn blocked(&self) {
        self.activity().blocked_since.get_or_insert_with(Instant::now);
    }

    /// Records that a request arrived. The request is in progress until the returned value is
    /// dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> RequestInProgress {
        let mut activity = self.activity();
        activity.turn = Turn::Answering;
        (activity.blocked, activity.sent) = (Duration::ZERO, 0);
        drop(activity);
        RequestInProgress(Arc::clone(self))
    }

    /// Records the size of a body that began to arrive at `since`.
    pub(crate) fn receiving(&self, since: Instant, bytes: usize) {
        self.activity().turn = Turn::Receiving { since, bytes: bytes as u64 };
    }

    /// Records that the body has arrived.
    pub(crate) fn received(&self) {
        self.activity().turn = Turn::Answering;
    }

    /// Resolves when the connection must end.
    pub(crate) async fn told_to_end(&self) {
        self.told_to_end.notified().await;
    }
}

/// A request in progress on a connection.
pub(crate) struct RequestInProgress(Arc<ConnectionState>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.activity().turn = Turn::Listening { since: Instant::now(), head: None };
    }
}

/// A slot in the table of connections. It becomes free when it is dropped.
pub(crate) struct ConnectionSlot {
    connections: Arc<Connections>,
    id: u64,
    pub(crate) connection: Arc<ConnectionState>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        table.open.remove(&self.id);
        table.ending -= usize::from(self.connection.activity().ending);
        drop(table);
        self.connections.freed.notify_one();
    }
}

impl Connections {
    /// Creates a table for at most `most` connections, or fewer if the limit on open files demands
    /// that.
    pub(crate) fn new(most: usize, deadlines: Deadlines) -> Arc<Self> {
        let most = most.min(open_files_for(most));
        Arc::new(Self { most, deadlines, table: Mutex::default(), freed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a slot for a new connection. If necessary, an existing connection is closed. The
    /// future waits while every connection has a request in progress.
    pub(crate) async fn slot(self: &Arc<Self>) -> ConnectionSlot {
        loop {
            if let Some(slot) = self.try_slot() {
                return slot;
            }
            self.make_room();
            // A notification is kept even if no connection waits for it yet.
            let _ = tokio::time::timeout(LOOK_AGAIN, self.freed.notified()).await;
        }
    }

    fn try_slot(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut table = self.lock();
        if table.open.len() >= self.most {
            return None;
        }
        let id = table.next;
        table.next += 1;
        let connection = Arc::new(ConnectionState::new(Instant::now()));
        table.open.insert(id, Arc::clone(&connection));
        Some(ConnectionSlot { connections: Arc::clone(self), id, connection })
    }

    /// Ends the connection with the lowest rank. Other connections that are idle, or whose clients
    /// do not read, may end with it, so that many new clients need not wait for each other. While
    /// connections are ending, the call has no effect.
    pub(crate) fn make_room(&self) {
        let mut table = self.lock();
        if table.ending > 0 {
            return;
        }
        let now = Instant::now();
        let ranked = table
            .open
            .values()
            .filter_map(|connection| Some((connection.activity().rank(now)?, connection)));
        let mut ranked: Vec<(Rank, &Arc<ConnectionState>)> = ranked.collect();
        ranked.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let class = ranked.first().map_or(IDLE, |(rank, _)| rank.0);
        let alike = |rank: &Rank| match class {
            IDLE => rank.0 == IDLE,
            _ => rank.0 == BLOCKED && class == BLOCKED && -rank.1 >= BLOCKED_FOR_S,
        };
        let alike = ranked.iter().take_while(|(rank, _)| alike(rank)).count();
        let count = alike.min(self.most / SHARE_AT_ONCE).max(1);
        let least: Vec<Arc<ConnectionState>> =
            ranked.into_iter().take(count).map(|(_, connection)| Arc::clone(connection)).collect();
        for connection in &least {
            end(connection, &mut table.ending);
        }
        tracing::debug!(closed = least.len(), "connections are closed to make room for others");
    }

    /// Ends every connection whose client misses a deadline. The future runs until it is dropped.
    pub(crate) async fn keep_deadlines(&self) {
        let mut ticks = tokio::time::interval(self.deadlines.tick());
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let mut table = self.lock();
            let OpenConnections { open, ending, .. } = &mut *table;
            for connection in open.values() {
                let missed = connection.activity().missed(now, &self.deadlines);
                if let Some(why) = missed
                    && end(connection, ending)
                {
                    tracing::debug!(why, "a connection is closed");
                }
            }
        }
    }
}

/// Requests the end of a connection. Returns whether this is the first request.
fn end(connection: &ConnectionState, ending: &mut usize) -> bool {
    let mut activity = connection.activity();
    let first = !std::mem::replace(&mut activity.ending, true);
    if first {
        *ending += 1;
        connection.told_to_end.notify_one();
    }
    first
}

/// Raises the limit on open files as far as possible. Returns the number of connections that the
/// limit allows. Many systems start a process with a limit of 1024 and permit far more.
fn open_files_for(connections: usize) -> usize {
    let wanted = (connections as u64).saturating_add(OTHER_FILES);
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current else { return usize::MAX };
    let mut allowed = current;
    if current < wanted {
        let raised = limit.maximum.map_or(wanted, |maximum| wanted.min(maximum));
        if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok() {
            allowed = raised;
        }
    }
    let room = allowed.saturating_sub(OTHER_FILES).max(allowed / 2).max(8);
    if allowed < wanted {
        tracing::warn!(
            allowed,
            connections = room,
            "the limit on open files is too low for server.max_connections; raise it (ulimit -n)"
        );
    }
    usize::try_from(room).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadlines() -> Deadlines {
        let second = Duration::from_secs(1);
        Deadlines {
            idle: 60 * second,
            head: 10 * second,
            body: 3_600 * second,
            stall: 30 * second,
            min_bytes_per_s: 10_000.0,
        }
    }

    fn activity(turn: Turn) -> Activity {
        Activity { turn, blocked_since: None, blocked: Duration::ZERO, sent: 0, ending: false }
    }

    #[tokio::test]
    async fn the_one_that_lies_idle_for_longest_makes_room() {
        let connections = Connections::new(3, deadlines());
        let first = connections.slot().await;
        let second = connections.slot().await;
        let third = connections.slot().await;
        let _busy = first.connection.begin();
        let connection = Arc::clone(&second.connection);
        let ends = tokio::spawn(async move {
            connection.told_to_end().await;
            drop(second);
        });
        let fourth = connections.slot().await;
        ends.await.unwrap();
        // The third connection is next, and the connection with a request is never closed.
        let connection = Arc::clone(&third.connection);
        connections.make_room();
        connection.told_to_end().await;
        connections.make_room();
        assert!(!fourth.connection.activity().ending, "one at a time");
        drop(third);
        connections.make_room();
        assert!(fourth.connection.activity().ending);
        assert!(!first.connection.activity().ending);
        drop(fourth);
        connections.make_room();
        assert!(!first.connection.activity().ending);
    }

    #[tokio::test]
    async fn a_crowd_that_takes_nothing_makes_room_together() {
        let connections = Connections::new(64, deadlines());
        let mut slots = Vec::new();
        for _ in 0..64 {
            slots.push(connections.slot().await);
        }
        let answered: Vec<_> = slots.iter().map(|slot| slot.connection.begin()).collect();
        let since = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        for slot in &slots[..60] {
            slot.connection.activity().blocked_since = Some(since);
        }
        connections.make_room();
        let ending = |slots: &[ConnectionSlot]| {
            slots.iter().filter(|it| it.connection.activity().ending).count()
        };
        assert_eq!(ending(&slots), 64 / SHARE_AT_ONCE);
        assert_eq!(ending(&slots[60..]), 0, "those that are worked on stay");
        drop(answered);
    }

    #[test]
    fn idle_ones_go_before_slow_bodies_and_these_before_slow_readers() {
        let start = Instant::now();
        let now = start + Duration::from_secs(100);
        let listening = |since| activity(Turn::Listening { since, head: None }).rank(now).unwrap();
        let receiving =
            |since, bytes| activity(Turn::Receiving { since, bytes }).rank(now).unwrap();
        assert!(listening(start) < listening(now));
        assert!(listening(now) < receiving(start, 100));
        // A slow body has less speed than a new body, and than a fast body.
        assert!(receiving(start, 100) < receiving(now, 0));
        assert!(receiving(start, 100) < receiving(start, 100 << 20));
        let mut reader = activity(Turn::Answering);
        assert_eq!(reader.rank(now), None);
        reader.blocked_since = Some(start);
        assert!(receiving(start, 1 << 30) < reader.rank(now).unwrap());
    }

    #[test]
    fn every_wait_for_the_client_has_an_end() {
        let start = Instant::now();
        let missed = |activity: &Activity, seconds: u64| {
            activity.missed(start + Duration::from_secs(seconds), &deadlines())
        };
        let idle = activity(Turn::Listening { since: start, head: None });
        assert!(missed(&idle, 59).is_none() && missed(&idle, 61).is_some());
        let head = activity(Turn::Listening { since: start, head: Some(start) });
        assert!(missed(&head, 9).is_none() && missed(&head, 11).is_some());
        // A client that reads a silent stream of events is not blocked.
        let mut reader = activity(Turn::Answering);
        assert!(missed(&reader, 1_000_000).is_none());
        reader.blocked_since = Some(start);
        assert!(missed(&reader, 29).is_none() && missed(&reader, 31).is_some());
        // A client that has read a megabyte may have been late by a hundred seconds more.
        reader.sent = 1_000_000;
        assert!(missed(&reader, 129).is_none() && missed(&reader, 131).is_some());
        // A client that reads a byte now and then does not get the time anew.
        reader.blocked = Duration::from_secs(120);
        assert!(missed(&reader, 11).is_some());
    }
}
