//! A launch: which blocks run when, on which threads.
//!
//! Blocks are taken in order by a worker for each core. A block that waits for another one — at
//! a barrier of the whole grid, for the result of a predecessor, for a lock — is put aside, and
//! the worker goes on with others; no block that has begun is left out for ever. The thread that
//! launches is itself a worker, so that every launch goes on, however many run at the same time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::alu::{self, Alu, Span};
use super::block::{Block, Slice};
use super::fault::{Findings, fault};
use super::race;
use super::warp::Warp;
use super::{FaultKind, LaunchConfig, LaunchFault, LaunchOptions, LaunchReport};
use crate::counts::{Counts, Executed, Traffic};
use crate::ir::Code;
use crate::memory::{Memory, Region, Table};

/// Most memory for the state of blocks that have begun, in bytes.
const RESIDENT_BYTES: usize = 1 << 30;
/// How long a helper keeps its thread while another launch waits for one.
const TURN: Duration = Duration::from_millis(5);

/// Launches that run now.
static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
/// Numbers of launches, for `%gridid`.
static GRIDS: AtomicU64 = AtomicU64::new(1);

/// What all workers of a launch know.
pub(super) struct Grid<'a> {
    pub(super) code: &'a Code,
    pub(super) kernel: &'a str,
    pub(super) files: &'a [(u32, String)],
    pub(super) cfg: LaunchConfig,
    pub(super) opts: &'a LaunchOptions<'a>,
    pub(super) params: &'a [u8],
    pub(super) heap: &'a crate::memory::Heap,
    pub(super) table: Arc<Table>,
    pub(super) shared_bytes: u32,
    /// Function of the module to function of the code.
    pub(super) index: &'a [(usize, u32)],
    pub(super) id: u64,
    /// Memory for the barrier of the grid, of a cooperative launch; else 0.
    pub(super) workspace: u64,
    pub(super) begin: Instant,
    pub(super) alu: Alu,
    pub(super) span: Span,
    pub(super) traffic: Traffic,
    stop: AtomicBool,
    /// Memory for calls of all threads, in bytes.
    stacks: AtomicU64,
}

impl Grid<'_> {
    /// Notes that calls have taken so many bytes more; how many they have now.
    pub(super) fn grow(&self, bytes: u64) -> u64 {
        self.stacks.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Where the shared memory begins that the system keeps to itself: behind that of the block. On a
    /// GPU it is in front of it.
    pub(super) fn reserved_at(&self) -> u32 {
        self.shared_bytes.next_multiple_of(16)
    }

    /// Shared memory that a block takes, in bytes.
    pub(super) fn shared_room(&self) -> u32 {
        match self.code.shared_reserved {
            0 => self.shared_bytes,
            reserved => self.reserved_at().saturating_add(reserved),
        }
    }

    /// A block that is not needed any more gives back what its calls have taken.
    fn release(&self, block: Option<Box<Block>>) {
        if let Some(block) = block {
            self.stacks.fetch_sub(block.stack(), Ordering::Relaxed);
        }
    }

    /// Whether to go on.
    pub(super) fn check_time(&self) -> Result<(), Box<LaunchFault>> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(fault(FaultKind::Timeout, "the launch has been stopped".into()));
        }
        if self.opts.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            let message = format!("{}: the launch was cancelled", self.kernel);
            return Err(fault(FaultKind::Timeout, message));
        }
        if self.opts.deadline.is_some_and(|d| Instant::now() >= d) {
            let ms = self.begin.elapsed().as_millis();
            let message = format!("{}: not finished at its deadline, after {ms} ms", self.kernel);
            return Err(fault(FaultKind::Timeout, message));
        }
        Ok(())
    }
}

/// What one worker has.
pub(super) struct Worker<'a> {
    pub(super) grid: &'a Grid<'a>,
    /// Regions that were accessed a short while ago.
    pub(super) recent: [Option<Arc<Region>>; 4],
    pub(super) victim: usize,
    /// Warp instructions so far.
    pub(super) executed: u64,
    /// How often each instruction ran.
    pub(super) profile: Vec<Executed>,
    pub(super) counts: Counts,
    pub(super) findings: Findings,
}

impl<'a> Worker<'a> {
    fn new(grid: &'a Grid<'a>) -> Self {
        Self {
            grid,
            recent: [const { None }; 4],
            victim: 0,
            executed: 0,
            profile: vec![Executed::default(); grid.code.insts.len()],
            counts: Counts::default(),
            findings: Findings::default(),
        }
    }

    /// The region that holds `from..to`.
    #[inline]
    pub(super) fn region(&mut self, from: u64, to: u64) -> Option<&Region> {
        let hit =
            |r: &Option<Arc<Region>>| r.as_ref().is_some_and(|r| r.base <= from && to <= r.end());
        if let Some(i) = self.recent.iter().position(hit) {
            return self.recent[i].as_deref();
        }
        let region = self.grid.table.find(from).filter(|r| to <= r.end())?.clone();
        self.victim = (self.victim + 1) % 4;
        self.recent[self.victim] = Some(region);
        self.recent[self.victim].as_deref()
    }
}

/// Blocks that wait for a worker, and what has come out so far.
#[derive(Default)]
struct Queue {
    paused: VecDeque<Box<Block>>,
    next: u64,
    begun: usize,
    finished: u64,
    working: usize,
    take_new: bool,
    fault: Option<Box<LaunchFault>>,
    counts: Counts,
    findings: Findings,
    profile: Vec<Executed>,
}

struct Shared<'a> {
    grid: &'a Grid<'a>,
    queue: Mutex<Queue>,
    wake: Condvar,
    total: u64,
    resident: usize,
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self, q: &Queue) -> bool {
        q.fault.is_some() || q.finished == self.total
    }

    /// A block to run: new ones and paused ones by turns.
    fn take(&self, q: &mut Queue) -> Option<Result<Box<Block>, u64>> {
        if q.fault.is_some() {
            return None;
        }
        let new = q.next < self.total && q.begun < self.resident;
        if new && (q.take_new || q.paused.is_empty()) {
            q.take_new = false;
            q.begun += 1;
            q.next += 1;
            return Some(Err(q.next - 1));
        }
        q.take_new = true;
        q.paused.pop_front().map(Ok)
    }

    /// Works until there is nothing to take, or, if `polite`, until others want the thread.
    fn work(&self, polite: bool) {
        let mut worker = Worker::new(self.grid);
        let begin = Instant::now();
        let mut spare: Option<Box<Block>> = None;
        self.lock().working += 1;
        loop {
            let mut q = self.lock();
            let Some(item) = self.take(&mut q) else { break };
            drop(q);
            let mut block = match item {
                Ok(block) => block,
                Err(index) => match spare.take() {
                    Some(mut block) => {
                        block.renew(self.grid, index);
                        block
                    }
                    None => Box::new(Block::new(self.grid, index)),
                },
            };
            let result = block.run(&mut worker);
            let mut q = self.lock();
            match result {
                Ok(Slice::Done) => {
                    q.finished += 1;
                    q.begun -= 1;
                    self.grid.release(spare.replace(block));
                }
                Ok(Slice::Spinning | Slice::Expired) => q.paused.push_back(block),
                Err(fault) => {
                    self.grid.stop.store(true, Ordering::Relaxed);
                    q.fault.get_or_insert(fault);
                }
            }
            drop(q);
            self.wake.notify_all();
            if polite && LAUNCHES.load(Ordering::Relaxed) > 1 && begin.elapsed() > TURN {
                break;
            }
        }
        self.grid.release(spare);
        let mut q = self.lock();
        q.working -= 1;
        q.counts.add(&worker.counts);
        q.findings.absorb(worker.findings);
        if q.profile.is_empty() {
            q.profile = worker.profile;
        } else {
            for (sum, own) in q.profile.iter_mut().zip(worker.profile) {
                sum.add(own);
            }
        }
        drop(q);
        self.wake.notify_all();
    }
}

/// Runs all blocks; the sums over all workers.
pub(super) fn run(grid: &Grid<'_>) -> Result<LaunchReport, Box<LaunchFault>> {
    let [x, y, z] = grid.cfg.grid.map(u64::from);
    let [bx, by, bz] = grid.cfg.block;
    let warps = (bx * by * bz).div_ceil(32) as usize;
    let per_byte = 1 + if grid.opts.sanitize { race::BYTES_PER_BYTE } else { 0 };
    let shared = grid.shared_room() as usize * per_byte;
    let bytes = warps * (Warp::estimate(grid.code) + 1024) + shared + 4096;
    let total = x * y * z;
    let hold = usize::try_from(total).unwrap_or(usize::MAX);
    let most = if grid.cfg.cooperative { hold } else { (grid.opts.sm_count as usize * 32).max(64) };
    let shared = Shared {
        grid,
        queue: Mutex::new(Queue { take_new: true, ..Queue::default() }),
        wake: Condvar::new(),
        total,
        resident: most.min(hold).min((RESIDENT_BYTES / bytes).max(64)),
    };
    if grid.cfg.cooperative && shared.resident < hold {
        let message = format!(
            "{}: a cooperative launch of {total} blocks needs more than the {} that can be \
             resident",
            grid.kernel, shared.resident
        );
        return Err(fault(FaultKind::Unsupported, message));
    }
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let helpers = rayon::current_num_threads().saturating_sub(1).min(hold.saturating_sub(1));
    rayon::in_place_scope(|scope| {
        let shared = &shared;
        loop {
            let idle = {
                let q = shared.lock();
                let more = q.paused.len() as u64 + (total - q.next);
                helpers.saturating_sub(q.working).min(usize::try_from(more).unwrap_or(usize::MAX))
            };
            for _ in 0..idle {
                scope.spawn(move |_| shared.work(true));
            }
            shared.work(false);
            let mut q = shared.lock();
            while !shared.over(&q) && q.paused.is_empty() && q.next == total {
                // The others finish what they have, or give it back.
                q = shared.wake.wait(q).unwrap_or_else(PoisonError::into_inner);
            }
            if shared.over(&q) {
                break;
            }
        }
    });
    LAUNCHES.fetch_sub(1, Ordering::Relaxed);
    let q = shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(fault) = q.fault {
        return Err(fault);
    }
    let mut counts = q.counts;
    counts.fold(grid.code, &q.profile);
    counts.finish(&grid.traffic);
    Ok(LaunchReport { counts, findings: q.findings.into_vec() })
}

impl<'a> Grid<'a> {
    /// A launch of `code` that has not begun.
    #[expect(clippy::too_many_arguments, reason = "the one place that puts a launch together")]
    pub(super) fn new(
        code: &'a Code,
        kernel: &'a str,
        files: &'a [(u32, String)],
        index: &'a [(usize, u32)],
        cfg: LaunchConfig,
        opts: &'a LaunchOptions<'a>,
        params: &'a [u8],
        memory: &'a Memory,
        workspace: u64,
    ) -> Self {
        let id = GRIDS.fetch_add(1, Ordering::Relaxed);
        let (alu, span) = alu::select();
        let table = memory.snapshot();
        let traffic = Traffic::new(opts.count, &table);
        Self {
            code,
            kernel,
            files,
            cfg,
            opts,
            params,
            heap: memory.heap(),
            table,
            shared_bytes: code.shared_static.saturating_add(cfg.dynamic_shared_bytes),
            index,
            id,
            workspace,
            begin: Instant::now(),
            alu,
            span,
            traffic,
            stop: AtomicBool::new(false),
            stacks: AtomicU64::new(0),
        }
    }
}
