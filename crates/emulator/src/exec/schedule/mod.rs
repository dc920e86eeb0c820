//! Assigns blocks to threads.
//!
//! Each core has a worker, which takes blocks in an order that the launch determines (`order`). A
//! block that waits for another block (at a barrier of the whole grid, for a predecessor's result,
//! or for a lock) is suspended, and the worker continues with others. Every block that has begun
//! runs again eventually. The launching thread is itself a worker, so that every launch makes
//! progress, regardless of the number of concurrent launches.

mod block;
mod order;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::block::{Block, Slice};
use self::order::{Order, WINDOW};
use super::state::blocks::BlockRaces;
use super::state::{
    FaultKind, Findings, Grid, LaunchFault, LaunchReport, Warp, Worker, copies, fault, race,
};
use crate::counts::{Accesses, Counts, Executed, of_instructions};

/// Maximum memory for the state of blocks that have begun, bytes.
const RESIDENT_BYTES: usize = 1 << 30;
/// Time after which a helper thread leaves a launch if another launch is running.
const TURN: Duration = Duration::from_millis(5);

/// Number of launches that are running in this process.
static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
/// Blocks that wait for a worker, and the results so far.
struct Queue {
    order: Order,
    /// Number of plain loads from global memory that the most recently completed block executed.
    loads: u32,
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
    accesses: Vec<Accesses>,
}

impl Queue {
    /// Returns a queue in which no block has begun.
    fn new(order: Order) -> Self {
        Self {
            order,
            loads: 0,
            paused: VecDeque::new(),
            next: 0,
            begun: 0,
            finished: 0,
            working: 0,
            take_new: true,
            fault: None,
            counts: Counts::default(),
            findings: Findings::default(),
            profile: Vec::new(),
            accesses: Vec::new(),
        }
    }
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

    /// Returns a block to run: a suspended block, or the index of a new one. The two alternate.
    fn take(&self, q: &mut Queue) -> Option<Result<Box<Block>, u64>> {
        if q.fault.is_some() {
            return None;
        }
        let new = q.next < self.total && q.begun < self.resident;
        if new && (q.take_new || q.paused.is_empty()) {
            q.take_new = false;
            q.begun += 1;
            q.next += 1;
            let n = q.next - 1;
            return Some(Err(q.order.index(n)));
        }
        q.take_new = true;
        q.paused.pop_front().map(Ok)
    }

    /// Runs blocks until none is left. If `polite` is set, also returns after [`TURN`] while another
    /// launch is running.
    fn work(&self, polite: bool) {
        let mut worker = Worker::new(self.grid);
        let begin = Instant::now();
        let mut spare: Option<Box<Block>> = None;
        self.lock().working += 1;
        loop {
            let mut q = self.lock();
            let Some(item) = self.take(&mut q) else { break };
            let hold = item.as_ref().err().map_or(0, |index| q.order.hold(*index, q.loads));
            drop(q);
            let mut block = match item {
                Ok(block) => block,
                Err(index) => {
                    let mut block = match spare.take() {
                        Some(mut block) => {
                            block.renew(self.grid, index);
                            block
                        }
                        None => Box::new(Block::new(self.grid, index)),
                    };
                    block.hold(hold);
                    block
                }
            };
            let result = block.run(&mut worker);
            let mut q = self.lock();
            match result {
                Ok(Slice::Done) => {
                    q.loads = block.loads();
                    q.finished += 1;
                    q.begun -= 1;
                    release(self.grid, spare.replace(block));
                }
                Ok(Slice::Spinning | Slice::Expired) => q.paused.push_back(block),
                Ok(Slice::Held) => {
                    q.take_new = true;
                    q.paused.push_back(block);
                }
                Err(fault) => {
                    self.grid.stop();
                    q.fault.get_or_insert(fault);
                }
            }
            drop(q);
            self.wake.notify_all();
            if polite && LAUNCHES.load(Ordering::Relaxed) > 1 && begin.elapsed() > TURN {
                break;
            }
        }
        release(self.grid, spare);
        let mut q = self.lock();
        q.working -= 1;
        q.counts.add(&worker.counts);
        q.findings.absorb(worker.findings);
        if q.profile.is_empty() {
            (q.profile, q.accesses) = (worker.profile, worker.accesses);
        } else {
            for (sum, own) in q.profile.iter_mut().zip(worker.profile) {
                sum.add(own);
            }
            for (sum, own) in q.accesses.iter_mut().zip(&worker.accesses) {
                sum.add(own);
            }
        }
        drop(q);
        self.wake.notify_all();
    }
}

/// Releases the resources of a block.
fn release(grid: &Grid<'_>, block: Option<Box<Block>>) {
    if let Some(block) = block {
        grid.stacks.give_back(block.stack());
        grid.room.give_back(block.pages());
    }
}

/// Runs all blocks of the grid. Returns the sums of the counts of all workers.
pub(super) fn run(grid: &Grid<'_>) -> Result<LaunchReport, Box<LaunchFault>> {
    let [x, y, z] = grid.cfg.grid.map(u64::from);
    let [bx, by, bz] = grid.cfg.block;
    let warps = (bx * by * bz).div_ceil(32) as usize;
    let per_byte =
        1 + if grid.opts.sanitize { race::BYTES_PER_BYTE + copies::BYTES_PER_BYTE } else { 0 };
    let shared = grid.shared_room() as usize * per_byte;
    let bytes = warps * (Warp::estimate(grid.code) + 1024) + shared + 4096;
    let total = x * y * z;
    let hold = usize::try_from(total).unwrap_or(usize::MAX);
    let most = if grid.cfg.cooperative {
        hold
    } else {
        (grid.opts.sm_count as usize * 32).max(WINDOW as usize)
    };
    let shared = Shared {
        grid,
        queue: Mutex::new(Queue::new(Order::new(grid.opts.order, total))),
        wake: Condvar::new(),
        total,
        resident: most.min(hold).min((RESIDENT_BYTES / bytes).max(WINDOW as usize)),
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
                // The other workers complete their blocks or put them back into the queue.
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
    let missed = grid.block_races.as_ref().is_some_and(BlockRaces::missed);
    let unwatched = missed || grid.room.missed();
    let instructions = of_instructions(grid.code, &q.profile, &q.accesses);
    Ok(LaunchReport { counts, instructions, findings: q.findings.into_vec(), unwatched })
}
