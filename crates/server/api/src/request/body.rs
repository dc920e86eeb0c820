//! Reads request bodies into memory, at once or piece by piece, within limits: [`BodyLimits`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use poem::http::StatusCode;
use poem::{Body, Request};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::connection::deadlines::Deadlines;
use crate::connection::graceful_close::{LINGER, LINGER_BYTES, LINGER_LATE, drain};
use crate::connection::table::ConnectionState;
use crate::error::ApiError;

use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_service::Caller;
use warpgauge_turns::{Owner, Pool, PoolBounds, PoolFull, PoolPermit};

/// Maximum growth of a buffer in one step, even if `Content-Length` announces more. The system
/// enlarges a large allocation by remapping its pages, without copying bytes.
const GROWTH_BYTES: usize = 16 << 20;

/// Maximum size of a body that does not count against the budget for all bodies.
const SMALL_BYTES: usize = 1 << 20;

/// Bytes per unit of the budget.
const UNIT_BYTES: usize = 64 << 10;

/// Budgets, as multiples of the largest body: for all bodies in memory, and for all uploads on
/// disk.
const BUDGET_BODIES: u64 = 4;
const BUDGET_UPLOADS: u64 = 2;

/// Limits on the size of a body, and on the size of all bodies together.
#[derive(Debug, Clone)]
pub(crate) struct BodyLimits {
    pub(crate) limit_bytes: u64,
    /// Name of the setting for this limit, and advice for larger bodies.
    setting: &'static str,
    advice: &'static str,
    budget: Pool,
    /// Number of further bytes of a rejected body that the server reads and discards.
    linger_bytes: usize,
    /// Maximum size of files that are written to disk as they arrive, bytes.
    upload_bytes: u64,
    upload_budget: Pool,
    /// Owner of the body.
    owner: Owner,
    deadlines: Deadlines,
}

impl BodyLimits {
    /// Creates the limits. `shared` indicates whether there may be several callers with keys. If
    /// so, each may use a share of the memory and of the disk, but at least enough for one body.
    pub(crate) fn new(
        limit_bytes: u64,
        upload_bytes: u64,
        shared: bool,
        deadlines: Deadlines,
    ) -> Self {
        Self {
            limit_bytes,
            setting: "server.body_limit_bytes",
            advice: "compress tensor data (`compress: zstd`) or generate it (`init`)",
            budget: budget(limit_bytes, BUDGET_BODIES, shared),
            linger_bytes: LINGER_BYTES,
            upload_bytes,
            upload_budget: budget(upload_bytes, BUDGET_UPLOADS, shared),
            owner: Owner::SERVER,
            deadlines,
        }
    }

    /// Returns the limits for files that are written to disk.
    pub(crate) fn of_uploads(&self) -> Self {
        Self {
            limit_bytes: self.upload_bytes,
            setting: "server.upload_limit_bytes",
            advice: "the operator can raise that",
            linger_bytes: usize::MAX,
            budget: self.upload_budget.clone(),
            ..self.clone()
        }
    }

    /// Returns the limits for a body from this caller.
    pub(crate) fn of(&self, caller: &Caller) -> Self {
        Self { owner: Owner::named(&caller.owner), ..self.clone() }
    }

    /// Returns the limits for bodies of at most this size. `setting` and `advice` describe the limit
    /// if it is lower than the configured one.
    pub(crate) fn at_most(
        &self,
        limit_bytes: u64,
        setting: &'static str,
        advice: &'static str,
    ) -> Self {
        match limit_bytes < self.limit_bytes {
            true => Self { limit_bytes, setting, advice, ..self.clone() },
            false => self.clone(),
        }
    }
}

/// Returns a pool for this number of bodies of the maximum size.
fn budget(limit_bytes: u64, bodies: u64, shared: bool) -> Pool {
    let one = limit_bytes.max(GROWTH_BYTES as u64).div_ceil(UNIT_BYTES as u64);
    let units = |units: u64| usize::try_from(units).unwrap_or(usize::MAX);
    let (places, least) = (units(one.saturating_mul(bodies)), units(one));
    Pool::new(PoolBounds { places, extra: 0, waiting: 0, shared, least })
}

/// Returns the limits for a request's body with its owner, and the connection of the request.
pub(crate) fn bounds(request: &Request) -> Result<(BodyLimits, &Arc<ConnectionState>), ApiError> {
    let missing = || ApiError::internal("body-limits", "no body limits are set");
    let (limits, connection) = request
        .data::<BodyLimits>()
        .zip(request.data::<Arc<ConnectionState>>())
        .ok_or_else(missing)?;
    let limits = request.data::<Caller>().map_or_else(|| limits.clone(), |by| limits.of(by));
    Ok((limits, connection))
}

/// A reservation of memory, or of disk space, from the budget for all bodies. It is released when
/// it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    turns: Vec<PoolPermit>,
    bytes: usize,
}

impl Share {
    /// Enlarges the reservation to `needed` bytes.
    pub(crate) fn cover(&mut self, needed: usize, limits: &BodyLimits) -> Result<(), ApiError> {
        if needed <= self.bytes.max(SMALL_BYTES) {
            return Ok(());
        }
        let units = (needed - self.bytes).div_ceil(UNIT_BYTES);
        let turn = limits.budget.try_take(limits.owner, units).map_err(|full| {
            let text = match full {
                PoolFull::All(_) => "the memory for large bodies is in use; try again in 1 s",
                PoolFull::Share(_) => {
                    "the share of this key of the memory for large bodies is in use; try \
                     again in 1 s"
                }
            };
            let code = ErrorCode::TooManyLargeBodies;
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, text).retry_after(1)
        })?;
        self.turns.push(turn);
        self.bytes += units * UNIT_BYTES;
        Ok(())
    }
}

/// Reads a body of at most `limits.limit_bytes` within the deadlines. `declared` is the
/// `Content-Length`, if any.
pub(crate) async fn read(
    body: Body,
    declared: Option<u64>,
    limits: &BodyLimits,
    connection: &ConnectionState,
) -> Result<(Vec<u8>, Share), ApiError> {
    let mut pieces = Pieces::new(body, declared, limits, connection)?;
    let mut buffer = Vec::new();
    let mut share = Share::default();
    while let Some(piece) = pieces.next().await? {
        let needed = buffer.len() + piece.len();
        share.cover(needed, limits)?;
        grow(&mut buffer, needed, pieces.declared)?;
        buffer.extend_from_slice(&piece);
    }
    Ok((buffer, share))
}

/// Pieces of a body, in the order in which they arrive. The deadlines and the limit on the length
/// apply.
///
/// If the value is dropped early, the rest of the body is read and discarded.
pub(crate) struct Pieces<'a> {
    stream: Option<BoxStream<'static, std::io::Result<Bytes>>>,
    declared: usize,
    limits: &'a BodyLimits,
    connection: &'a ConnectionState,
    started: Instant,
    read: usize,
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        self.refuse();
    }
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(
        body: Body,
        declared: Option<u64>,
        limits: &'a BodyLimits,
        connection: &'a ConnectionState,
    ) -> Result<Self, ApiError> {
        if declared.is_some_and(|length| length > limits.limit_bytes) {
            return Err(too_large(limits, declared));
        }
        Ok(Self {
            stream: Some(body.into_bytes_stream().boxed()),
            declared: declared.unwrap_or(0) as usize,
            limits,
            connection,
            started: Instant::now(),
            read: 0,
        })
    }

    /// Returns the number of bytes that have arrived.
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    /// Returns the next piece, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        self.connection.receiving(self.started, self.read);
        let deadlines = &self.limits.deadlines;
        let patience = deadlines.next_piece(self.started, Instant::now(), self.read);
        // `timeout` would return a piece that has already arrived, even after the deadline.
        let next = match patience.is_zero() {
            false => timeout(patience, stream.next()).await.ok(),
            true => None,
        };
        match next {
            Some(Some(Ok(piece))) => {
                self.read += piece.len();
                if self.read as u64 > self.limits.limit_bytes {
                    return Err(too_large(self.limits, None));
                }
                Ok(Some(piece))
            }
            Some(None) => {
                self.stream = None;
                self.connection.received();
                Ok(None)
            }
            Some(Some(Err(error))) => {
                self.stream = None;
                Err(truncated(self.read, self.declared, &error))
            }
            None => {
                if let Some(stream) = self.stream.take() {
                    tokio::spawn(drain(stream, LINGER_LATE, LINGER_BYTES));
                }
                Err(late(self.read, self.started.elapsed(), deadlines))
            }
        }
    }

    /// Discards the rest of the body.
    fn refuse(&mut self) {
        if let (Some(stream), Ok(runtime)) = (self.stream.take(), Handle::try_current()) {
            self.connection.received();
            runtime.spawn(drain(stream, LINGER, self.limits.linger_bytes));
        }
    }
}

/// Reserves memory for `needed` bytes. The first step reserves as much as `Content-Length`
/// announces, up to `GROWTH_BYTES`.
fn grow(buffer: &mut Vec<u8>, needed: usize, declared: usize) -> Result<(), ApiError> {
    if needed <= buffer.capacity() {
        return Ok(());
    }
    let step = buffer.len() + GROWTH_BYTES;
    let doubled = needed.max(2 * buffer.capacity());
    let target = if declared >= needed { declared } else { doubled };
    let target = target.min(step).max(needed);
    buffer.try_reserve_exact(target - buffer.len()).map_err(|_| {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::OutOfMemory,
            format!("the server does not have enough memory for a body of {needed} bytes"),
        )
    })
}

fn too_large(limits: &BodyLimits, declared: Option<u64>) -> ApiError {
    let limit = limits.limit_bytes;
    let came = match declared {
        Some(length) => format!("this one has {length} bytes"),
        None => "this one has more".to_owned(),
    };
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::BodyTooLarge,
        format!(
            "a body may have at most {limit} bytes ({}); {came}; {}",
            limits.setting, limits.advice
        ),
    )
}

fn truncated(read: usize, declared: usize, error: &std::io::Error) -> ApiError {
    tracing::debug!(read, declared, %error, "body cut off");
    let of = if declared > 0 { format!(" of {declared}") } else { String::new() };
    ApiError::new(
        StatusCode::BAD_REQUEST,
        FailureCode::TruncatedBody.into(),
        format!("the body ended after {read}{of} bytes; send it again"),
    )
}

fn late(read: usize, spent: Duration, deadlines: &Deadlines) -> ApiError {
    let Deadlines { body, stall, min_bytes_per_s, .. } = deadlines;
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        ErrorCode::BodyTimeout,
        format!(
            "{read} bytes of the body came in {:.1} s: it may pause for {} s \
             (server.stall_timeout_s), must then have come at {min_bytes_per_s} bytes/s on average \
             (server.min_bytes_per_s), and within {} s (server.body_timeout_s); send it again, over a \
             faster connection or compressed",
            spent.as_secs_f64(),
            stall.as_secs_f64(),
            body.as_secs_f64(),
        ),
    )
}
