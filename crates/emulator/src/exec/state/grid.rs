//! A launch: the state that all of its workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::blocks::BlockRaces;
use super::launch::{FaultKind, LaunchConfig, LaunchFault, LaunchOptions, fault};
use super::stack::Stacks;
use super::within::Room;
use crate::counts::Traffic;
use crate::exec::lanes::product::Multiply;
use crate::exec::lanes::{self, Alu, Span};
use crate::ir::Code;
use crate::memory::{Heap, Memory, Table};

/// Number of the next launch, for `%gridid`.
static GRIDS: AtomicU64 = AtomicU64::new(1);

/// The state that all workers of a launch share.
pub(in crate::exec) struct Grid<'a> {
    pub(in crate::exec) code: &'a Code,
    pub(in crate::exec) kernel: &'a str,
    pub(in crate::exec) files: &'a [(u32, String)],
    pub(in crate::exec) cfg: LaunchConfig,
    pub(in crate::exec) opts: &'a LaunchOptions<'a>,
    pub(in crate::exec) params: &'a [u8],
    pub(in crate::exec) heap: &'a Heap,
    pub(in crate::exec) table: Arc<Table>,
    pub(in crate::exec) shared_bytes: u32,
    /// Maps the functions that the module declares to functions of the code.
    pub(in crate::exec) index: &'a [(usize, u32)],
    pub(in crate::exec) id: u64,
    /// Address of the grid barrier's memory in a cooperative launch; 0 in any other launch.
    pub(in crate::exec) workspace: u64,
    pub(in crate::exec) begin: Instant,
    pub(in crate::exec) alu: Alu,
    pub(in crate::exec) span: Span,
    pub(in crate::exec) multiply: Multiply,
    pub(in crate::exec) traffic: Traffic,
    /// Accesses to global memory, if races between blocks are detected.
    pub(in crate::exec) block_races: Option<BlockRaces>,
    /// Space for the blocks' race records on global memory.
    pub(in crate::exec) room: Room,
    stop: AtomicBool,
    pub(in crate::exec) stacks: Stacks,
}

impl Grid<'_> {
    /// Returns the offset at which the shared memory reserved by the system begins. Here it follows
    /// the shared memory of the block; on a GPU it precedes it.
    pub(in crate::exec) fn reserved_at(&self) -> u32 {
        self.shared_bytes.next_multiple_of(16)
    }

    /// Returns the shared memory that a block uses, including the reserved part, bytes.
    pub(in crate::exec) fn shared_room(&self) -> u32 {
        match self.code.shared_reserved {
            0 => self.shared_bytes,
            reserved => self.reserved_at().saturating_add(reserved),
        }
    }

    /// Returns the coordinates of block `index`.
    pub(in crate::exec) fn place(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.cfg.grid.map(u64::from);
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    /// Makes all workers stop when they next check the time.
    pub(in crate::exec) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns a fault if the launch must stop: it was stopped or cancelled, or its deadline has
    /// passed.
    pub(in crate::exec) fn check_time(&self) -> Result<(), Box<LaunchFault>> {
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

impl<'a> Grid<'a> {
    /// Creates a launch of `code` that has not begun.
    #[expect(clippy::too_many_arguments, reason = "the one place that puts a launch together")]
    pub(in crate::exec) fn new(
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
        let (alu, span, multiply) = lanes::select();
        let table = memory.snapshot();
        let traffic = Traffic::new(opts.count, &table);
        let blocks = cfg.grid.iter().map(|n| u64::from(*n)).product();
        let block_races = if opts.sanitize { BlockRaces::new(&table, blocks) } else { None };
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
            multiply,
            traffic,
            block_races,
            room: Room::default(),
            stop: AtomicBool::new(false),
            stacks: Stacks::default(),
        }
    }
}
