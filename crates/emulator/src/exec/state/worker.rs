//! A thread that runs blocks, and what it has counted and found.

use std::sync::Arc;

use super::fault::Findings;
use super::grid::Grid;
use crate::counts::{Counts, Executed};
use crate::exec::lanes::product::Tiles;
use crate::memory::Region;

/// What one worker has.
pub(in crate::exec) struct Worker<'a> {
    pub(in crate::exec) grid: &'a Grid<'a>,
    /// Regions that were accessed a short while ago.
    pub(in crate::exec) recent: [Option<Arc<Region>>; 4],
    pub(in crate::exec) victim: usize,
    /// Warp instructions so far.
    pub(in crate::exec) executed: u64,
    /// How often each instruction ran.
    pub(in crate::exec) profile: Vec<Executed>,
    pub(in crate::exec) counts: Counts,
    pub(in crate::exec) findings: Findings,
    /// For products of matrices.
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
            findings: Findings::default(),
            tiles: Box::default(),
        }
    }

    /// The region that holds `from..to`.
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
