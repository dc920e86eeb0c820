//! The only writer in a process. It groups waiting writes into one transaction. The main type is
//! [`Writer`].
//!
//! A commit costs far more than a row. So writes that arrive during a transaction, or while the
//! next one begins, share that next transaction. A write that is rejected (a quota, a lost lease)
//! has changed nothing, and the others proceed. If the database fails a write, the whole
//! transaction fails. Each write of the group is then retried separately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::{AnyConnection, Connection, Executor};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use super::StoreError;
use super::database::{Backend, Database};
use super::error::lost_connection;
use super::log::{LogKeeper, Written};
use super::submit::Group;
use super::tally::Tally;

/// Maximum number of writes of one transaction.
const MAX_GROUP: usize = 256;

/// Maximum number of callers with a queued write. Additional callers wait for a permit.
const MAX_WAITING: usize = 4_096;

/// Maximum number of attempts at a group while other processes lock the database or the connection
/// is lost.
const TRIES: u32 = 6;

/// PostgreSQL channel that announces work to the other processes.
pub(super) const CHANNEL: &str = "warpgauge_jobs";

/// Leases of this process: job id to epoch.
pub(super) type Held = Arc<Mutex<HashMap<String, i64>>>;

/// Locks the map of leases, even after a panic.
pub(super) fn locked(held: &Held) -> MutexGuard<'_, HashMap<String, i64>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Access to the open transaction, for a write.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a mut AnyConnection,
    pub(super) context: &'a Context,
    pub(super) tally: &'a mut Tally,
    /// Leases to record (`Some`) or remove (`None`) after the commit.
    pub(super) leases: &'a mut Vec<(String, Option<i64>)>,
}

impl Batch<'_> {
    /// Classifies an error of the database.
    pub(super) fn failed(
        &self,
        operation: &'static str,
    ) -> impl Fn(sqlx::Error) -> StoreError + use<> {
        let place = self.context.database.place.clone();
        move |source| StoreError::database(operation, &place, source)
    }

    /// Returns whether this is PostgreSQL, where other processes write at the same time.
    pub(super) fn is_postgres(&self) -> bool {
        self.context.database.backend == Backend::Postgres
    }
}

/// State that all writes of the store share.
pub(super) struct Context {
    pub(super) database: Database,
    pub(super) instance: String,
    pub(super) quotas: super::Quotas,
    pub(super) held: Held,
    /// Capabilities of this process, which decide the jobs that it may take.
    pub(super) offered: super::offer::Offered,
    /// Counts committed writes.
    pub(super) written: Arc<Written>,
    /// Notified when a job becomes available.
    pub(super) work: Arc<Notify>,
    /// Notified when a webhook is stored.
    pub(super) bell: Arc<super::deliveries::Bell>,
}

/// A write. Its transaction may be retried, so `run` must not consume it.
pub(super) trait Write: Send + 'static {
    /// Result that the caller receives.
    type Out: Send + 'static;

    /// Runs the write. If it fails, it must do so before its first change.
    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Self::Out, StoreError>>;
}

/// A write of any type, with its caller's reply channel.
pub(super) trait AnyWrite: Send {
    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>>;
    /// Sends the result of `run`, or the failure of the transaction, to the caller.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
    /// Returns the parts that can be retried separately.
    fn split(self: Box<Self>) -> Vec<Box<dyn AnyWrite>>;
    /// Returns the number of written jobs, which is a measure of the log's growth.
    fn weight(&self) -> usize {
        1
    }
}

struct Waiting<W: Write> {
    write: W,
    out: Option<Result<W::Out, StoreError>>,
    reply: Option<oneshot::Sender<Result<W::Out, StoreError>>>,
}

impl<W: Write> AnyWrite for Waiting<W> {
    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            match self.write.run(batch).await {
                Err(error) if !error.is_refusal() => Err(error),
                outcome => {
                    self.out = Some(outcome);
                    Ok(())
                }
            }
        })
    }

    fn split(self: Box<Self>) -> Vec<Box<dyn AnyWrite>> {
        vec![self]
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let outcome = match failure {
            Some(error) => Err(error),
            None => self.out.unwrap_or(Err(StoreError::Closed)),
        };
        match self.reply {
            // If the caller has left, the result is dropped; a dropped lease requeues its job.
            Some(reply) => drop(reply.send(outcome)),
            None => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "a write in the background was rejected");
                }
            }
        }
    }
}

/// A request to the writer.
pub(super) enum Message {
    /// Accepts jobs. All waiting submissions are inserted together.
    Submit(Group),
    /// Claims the next job.
    Claim(super::claim::Claiming),
    /// Any other write, in the order of arrival.
    Other(Box<dyn AnyWrite>),
    /// Performs all queued writes, then ends.
    Close(oneshot::Sender<()>),
}

/// A handle through which callers send writes to the writer.
#[derive(Clone)]
pub(super) struct Writer {
    sender: mpsc::UnboundedSender<Message>,
    /// Limits the number of queued messages: callers wait for a permit. Writes of dropped leases
    /// need no permit, because the number of leases is limited.
    places: Arc<Semaphore>,
    /// Dropped leases whose jobs are not requeued in the database yet.
    pub(super) dropped: Held,
}

impl Writer {
    /// Starts the writer on a connection.
    pub(super) fn start(
        connection: AnyConnection,
        context: Arc<Context>,
        log: Option<LogKeeper>,
    ) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let task = Task { connection: Some(connection), context, log };
        tokio::spawn(task.run(receiver));
        let places = Arc::new(Semaphore::new(MAX_WAITING));
        Self { sender, places, dropped: Held::default() }
    }

    /// Runs a write, and waits until it is committed.
    pub(super) async fn write<W: Write>(&self, write: W) -> Result<W::Out, StoreError> {
        self.ask(|reply| Message::Other(Box::new(Waiting { write, out: None, reply: Some(reply) })))
            .await
    }

    /// Queues a write after all earlier ones. No caller waits for it.
    pub(super) fn write_behind<W: Write>(&self, write: W) {
        let waiting = Waiting { write, out: None, reply: None };
        // The writer ends only after `close`. Recovery finds the leases that remain.
        let _ = self.sender.send(Message::Other(Box::new(waiting)));
    }

    /// Sends a message, and waits for the reply.
    pub(super) async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Message,
    ) -> Result<T, StoreError> {
        let _place = self.places.acquire().await.map_err(|_| StoreError::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.sender.send(message(reply)).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Performs all queued writes, then ends the writer.
    pub(super) async fn close(&self) {
        let (done, ended) = oneshot::channel();
        if self.sender.send(Message::Close(done)).is_ok() {
            let _ = ended.await;
        }
    }
}

struct Task {
    connection: Option<AnyConnection>,
    context: Arc<Context>,
    /// Log keeper, only for SQLite.
    log: Option<LogKeeper>,
}

/// Messages that are handled together.
#[derive(Default)]
struct Round<'a> {
    /// The first message, and the channel of the others, until `gather` reads them.
    arriving: Option<(Message, &'a mut mpsc::UnboundedReceiver<Message>)>,
    /// Writes of one transaction.
    writes: Vec<Box<dyn AnyWrite>>,
    /// Claims. If there are writes, the claims get a separate transaction, because they lock rows
    /// of jobs after rows of owners.
    claims: Vec<super::claim::Claiming>,
    close: Option<oneshot::Sender<()>>,
}

impl Round<'_> {
    fn of(write: Box<dyn AnyWrite>) -> Self {
        Self { writes: vec![write], ..Self::default() }
    }

    /// Reads all messages that have arrived by now into the round.
    fn gather(&mut self) {
        let Some((first, receiver)) = self.arriving.take() else { return };
        let mut submits = Vec::new();
        let arrived = std::iter::from_fn(|| receiver.try_recv().ok());
        for message in std::iter::once(first).chain(arrived).take(MAX_GROUP) {
            match message {
                Message::Submit(submit) => submits.push(submit),
                Message::Claim(claim) => self.claims.push(claim),
                Message::Other(other) => self.writes.push(other),
                Message::Close(done) => self.close = Some(done),
            }
        }
        if !submits.is_empty() {
            self.writes.insert(0, Box::new(super::submit::Submits::new(submits)));
        }
        if self.writes.is_empty() {
            let claims = self.claims();
            self.writes.extend(claims);
        }
    }

    /// Combines the claims into one write.
    fn claims(&mut self) -> Option<Box<dyn AnyWrite>> {
        let claims = std::mem::take(&mut self.claims);
        (!claims.is_empty()).then(|| Box::new(super::claim::Claims::new(claims)) as _)
    }
}

impl Task {
    async fn run(mut self, mut receiver: mpsc::UnboundedReceiver<Message>) {
        while let Some(first) = receiver.recv().await {
            let Some(done) = self.serve(first, &mut receiver).await else { continue };
            if let Some(log) = self.log.take() {
                log.end().await;
            }
            if let Some(connection) = self.connection.take() {
                // SQLite checkpoints its log when the last connection closes.
                let _ = connection.close().await;
            }
            let _ = done.send(());
            return;
        }
    }

    /// Handles a message, and the messages that arrive while its transaction begins. Returns `Some`
    /// if one of them is `Close`.
    async fn serve(
        &mut self,
        first: Message,
        receiver: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Option<oneshot::Sender<()>> {
        let closes = matches!(first, Message::Close(_));
        let mut round = Round { arriving: Some((first, receiver)), ..Round::default() };
        if closes {
            // A `Close` alone needs no transaction.
            round.gather();
        }
        if !closes || !round.writes.is_empty() {
            self.write_all(&mut round).await;
        }
        if let Some(claims) = round.claims() {
            self.write_all(&mut Round::of(claims)).await;
        }
        round.close
    }

    /// Performs a round in one transaction. If that fails, performs each part in a separate
    /// transaction.
    async fn write_all(&mut self, round: &mut Round<'_>) {
        let outcome = self.persistently(round).await;
        // If no transaction began, the messages are not gathered yet.
        round.gather();
        let writes = std::mem::take(&mut round.writes);
        let Err(error) = outcome else {
            writes.into_iter().for_each(|write| write.answer(None));
            return;
        };
        let mut parts: Vec<_> = writes.into_iter().flat_map(AnyWrite::split).collect();
        if parts.len() == 1 {
            parts.into_iter().take(1).zip([error]).for_each(|(one, error)| one.answer(Some(error)));
            return;
        }
        for part in parts.drain(..) {
            let mut alone = Round::of(part);
            let failure = self.persistently(&mut alone).await.err();
            alone
                .writes
                .into_iter()
                .zip([failure])
                .for_each(|(part, failure)| part.answer(failure));
        }
    }

    /// Runs the round. Makes up to [`TRIES`] attempts while other processes lock the database, or
    /// while it cannot be reached.
    async fn persistently(&mut self, round: &mut Round<'_>) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            match self.once(round).await {
                Err(error) if error.is_transient() && tries < TRIES => {
                    tracing::warn!(error = %super::error::chain(&error), tries, "a write is retried");
                    tokio::time::sleep(Duration::from_millis(20 << tries)).await;
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn once(&mut self, round: &mut Round<'_>) -> Result<(), StoreError> {
        self.context.database.check()?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.context.database.connect().await?,
        };
        let mut leases = Vec::new();
        let (outcome, usable) = transact(&mut connection, &self.context, round, &mut leases).await;
        if usable {
            self.connection = Some(connection);
        }
        let woke = outcome?;
        // A write to a file that was replaced or deleted is lost.
        self.context.database.check()?;
        self.context.written.add(round.writes.iter().map(|write| write.weight()).sum());
        let mut held = locked(&self.context.held);
        for (job, epoch) in leases {
            match epoch {
                Some(epoch) => held.insert(job, epoch),
                None => held.remove(&job),
            };
        }
        drop(held);
        self.context.bell.committed();
        if woke {
            self.context.work.notify_one();
        }
        Ok(())
    }
}

/// Runs one transaction. Returns whether jobs became available, and whether the connection is
/// usable.
async fn transact(
    connection: &mut AnyConnection,
    context: &Context,
    round: &mut Round<'_>,
    leases: &mut Vec<(String, Option<i64>)>,
) -> (Result<bool, StoreError>, bool) {
    let failed = |source| StoreError::database("write", &context.database.place, source);
    let mut transaction = match connection.begin_with(context.database.begin()).await {
        Ok(transaction) => transaction,
        Err(source) => {
            let usable = !lost_connection(&source);
            return (Err(failed(source)), usable);
        }
    };
    // More messages may have arrived while the transaction began.
    round.gather();
    let mut tally = Tally::default();
    let outcome = fill(&mut transaction, context, &mut round.writes, leases, &mut tally).await;
    match outcome {
        Ok(woke) => match transaction.commit().await {
            Ok(()) => (Ok(woke), true),
            // Neither the commit's result nor the state of the connection is known.
            Err(source) => (Err(failed(source)), false),
        },
        Err(error) => {
            let usable = transaction.rollback().await.is_ok();
            (Err(error), usable)
        }
    }
}

async fn fill(
    connection: &mut AnyConnection,
    context: &Context,
    writes: &mut [Box<dyn AnyWrite>],
    leases: &mut Vec<(String, Option<i64>)>,
    tally: &mut Tally,
) -> Result<bool, StoreError> {
    for write in writes {
        let connection = &mut *connection;
        write.run(&mut Batch { connection, context, tally, leases }).await?;
    }
    let failed = |source| StoreError::database("write", &context.database.place, source);
    tally.flush(context.database.backend, connection).await.map_err(failed)?;
    let woke = tally.woke();
    if woke && context.database.backend == Backend::Postgres {
        let notify = sqlx::query("SELECT CAST(pg_notify($1, '') AS TEXT)").bind(CHANNEL);
        connection.execute(notify).await.map_err(failed)?;
    }
    Ok(woke)
}
