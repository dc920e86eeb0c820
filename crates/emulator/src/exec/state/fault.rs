//! Reports of invalid accesses: the thread, the source position, and the number of occurrences.

use super::grid::Grid;
use super::warp::Warp;
use crate::check::Finding;
use crate::ir::SourceLine;

/// Maximum number of distinct findings of a launch.
const MAX_FINDINGS: usize = 256;

/// Thread and source position that a message mentions.
pub(in crate::exec) struct Where {
    pub(in crate::exec) block: [u32; 3],
    pub(in crate::exec) thread: [u32; 3],
    pub(in crate::exec) source: Option<(String, u32)>,
    pub(in crate::exec) ptx_line: u32,
}

impl Where {
    pub(in crate::exec) fn new(
        grid: &Grid<'_>,
        block: [u32; 3],
        warp: &Warp,
        lane: u32,
        pc: u32,
    ) -> Self {
        let l = lane as usize % 32;
        let (ptx_line, at, _) = grid.code.lines[pc as usize];
        Self {
            block,
            thread: [warp.tid[0][l], warp.tid[1][l], warp.tid[2][l]],
            source: source(grid, at),
            ptx_line,
        }
    }

    /// Returns the thread as text: "by block (0,0,0) thread (5,0,0)".
    pub(in crate::exec) fn who(&self) -> String {
        let ([x, y, z], [a, b, c]) = (self.block, self.thread);
        format!("by block ({x},{y},{z}) thread ({a},{b},{c})")
    }

    /// Returns the source position as text: "; foo.cu:12", or the line in the PTX.
    pub(in crate::exec) fn place(&self) -> String {
        match &self.source {
            Some((file, line)) => format!("; {file}:{line}"),
            None => format!("; PTX line {}", self.ptx_line),
        }
    }
}

fn source(grid: &Grid<'_>, at: SourceLine) -> Option<(String, u32)> {
    if at.line == 0 {
        return None;
    }
    let file = grid.files.iter().find(|(n, _)| *n == at.file)?;
    Some((file.1.clone(), at.line))
}

/// Findings by instruction and check: the first occurrence of each, with the number of occurrences.
#[derive(Default)]
pub(in crate::exec) struct Findings {
    list: Vec<(u32, Finding)>,
}

impl Findings {
    /// Counts another occurrence. Returns false for a new finding, which the caller must add.
    pub(in crate::exec) fn again(&mut self, pc: u32, check: &'static str) -> bool {
        match self.list.iter_mut().find(|(p, f)| *p == pc && f.check == check) {
            Some((_, f)) => {
                f.count += 1;
                true
            }
            None => self.list.len() >= MAX_FINDINGS,
        }
    }

    /// Adds the first occurrence of a finding.
    pub(in crate::exec) fn add(&mut self, pc: u32, first: Finding) {
        self.list.push((pc, first));
    }

    pub(in crate::exec) fn absorb(&mut self, other: Findings) {
        for (pc, f) in other.list {
            let room = self.list.len() < MAX_FINDINGS;
            match self.list.iter_mut().find(|(p, g)| *p == pc && g.check == f.check) {
                Some((_, g)) => {
                    let count = g.count + f.count;
                    // The lowest block and thread is reported, regardless of which worker found it
                    // first.
                    if (f.block, f.thread) < (g.block, g.thread) {
                        *g = f;
                    }
                    g.count = count;
                }
                None if room => self.list.push((pc, f)),
                None => {}
            }
        }
    }

    /// Returns the findings in program order.
    pub(in crate::exec) fn into_vec(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|(pc, f)| (*pc, f.check));
        self.list.into_iter().map(|(_, f)| f).collect()
    }
}
