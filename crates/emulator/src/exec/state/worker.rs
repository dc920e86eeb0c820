//! A worker thread that runs blocks, and the counts and findings that it collects.

use std::sync::Arc;

use super::fault::Findings;
use super::grid::Grid;
use crate::counts::{Accesses, Counts, Executed};
use crate::exec::lanes::product::Tiles;
use crate::memory::Region;

/// State of one worker thread.
pub(in crate::exec) struct Worker<'a> {
    pub(in crate::exec) grid: &'a Grid<'a>,
    /// Recently accessed regions of memory, which are searched first.
    pub(in crate::exec) recent: [Option<Arc<Region>>; 4],
    pub(in crate::exec) victim: usize,
    /// Number of warp instructions executed so far.
    pub(in crate::exec) executed: u64,
    /// Number of executions of each instruction.
    pub(in crate::exec) profile: Vec<Executed>,
    pub(in crate::exec) counts: Counts,
    /// Memory accesses of each instruction; empty unless they are counted.
    pub(in crate::exec) accesses: Vec<Accesses>,
    /// Index of the instruction that was executed last, of those that are not arithmetic.
    pub(in crate::exec) pc: u32,
    pub(in crate::exec) findings: Findings,
    /// Scratch storage for matrix products.
    pub(in crate::exec) tiles: Box<Tiles>,
}

impl<'a> Worker<'a> {
    pub(in crate::exec) fn new(grid: &'a Grid<'a>) -> Self {
        Self {
            grid,
            recent: [const { None }; 4],
            victim: 0,
            executed: 0,
            profile: vec![Executed::default(); grid.code.insts.len()],
            counts: Counts::default(),
            accesses: if grid.opts.by_instruction {
                vec![Accesses::default(); grid.code.insts.len()]
            } else {
                Vec::new()
            },
            pc: 0,
            findings: Findings::default(),
            tiles: Box::default(),
        }
    }

    /// Returns the region that contains `from..to`, or `None` if no region does.
    #[inline]
    pub(in crate::exec) fn region(&mut self, from: u64, to: u64) -> Option<&Region> {
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
