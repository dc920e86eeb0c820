//! Register allocation: liveness analysis over the control flow, then linear scan.
//!
//! Compilers use a new register name for every value, thousands in an unrolled kernel. Storage for
//! 32 lanes of each would not fit in a cache. Lanes that diverge share the storage of a register.
//! Each lane follows the control flow, so a value that is dead along every path is dead in every
//! lane.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::func::Draft;
use crate::ir::{Class, K, NO_GUARD, Op, Role};

/// Maximum product of the numbers of basic blocks and registers. Above it, registers do not share
/// slots.
const MAX_BITS: usize = 1 << 28;
/// Maximum number of words examined in the search for a fixed point, which takes a few seconds.
/// Above it, registers do not share slots.
const MAX_WORDS: usize = 1 << 32;

fn file(class: Class) -> usize {
    match class {
        Class::W32 => 0,
        Class::W64 => 1,
        Class::P => 2,
    }
}

/// Calls `f(register, is_def)` for every register of a draft: first for those that it reads, then
/// for those that it writes.
fn each(draft: &Draft, lists: &[Vec<u32>], base: &[u32; 3], mut f: impl FnMut(u32, bool)) {
    let i = &draft.inst;
    let fields = [i.d, i.e, i.a, i.b, i.c, i.s];
    if i.guard != NO_GUARD {
        f(base[2] + i.guard / 2, false);
    }
    for def in [false, true] {
        for (n, role) in fields.iter().zip(draft.roles) {
            match role {
                Role::Def(c) if def => f(base[file(c)] + n, true),
                Role::Use(c) if !def && n & K == 0 => f(base[file(c)] + n, false),
                _ => {}
            }
        }
        for (list, role) in &draft.lists {
            for n in &lists[*list as usize] {
                match role {
                    Role::Def(c) if def => f(base[file(*c)] + n, true),
                    Role::Use(c) if !def && n & K == 0 => f(base[file(*c)] + n, false),
                    _ => {}
                }
            }
        }
    }
}

/// Basic blocks as ranges of drafts, with the successors of each block.
struct Blocks {
    ranges: Vec<(usize, usize)>,
    next: Vec<Vec<usize>>,
}

fn blocks(drafts: &[Draft], lists: &[Vec<u32>]) -> Blocks {
    let mut leader = vec![false; drafts.len() + 1];
    leader[0] = true;
    for (i, d) in drafts.iter().enumerate() {
        match d.inst.op {
            Op::Bra => leader[d.inst.imm as usize] = true,
            Op::BrxIdx => {
                lists[d.inst.imm as usize].iter().for_each(|t| leader[*t as usize] = true);
            }
            Op::Ret | Op::Exit | Op::Trap => {}
            _ => continue,
        }
        leader[i + 1] = true;
    }
    let starts: Vec<usize> = (0..drafts.len()).filter(|i| leader[*i]).collect();
    let mut of = vec![0; drafts.len() + 1];
    for (b, s) in starts.iter().enumerate() {
        let end = starts.get(b + 1).copied().unwrap_or(drafts.len());
        of[*s..end].fill(b);
    }
    let mut result = Blocks { ranges: Vec::new(), next: Vec::new() };
    for (b, s) in starts.iter().enumerate() {
        let end = starts.get(b + 1).copied().unwrap_or(drafts.len());
        let last = &drafts[end - 1].inst;
        let mut next = Vec::new();
        match last.op {
            Op::Bra => next.push(of[last.imm as usize]),
            Op::BrxIdx => next.extend(lists[last.imm as usize].iter().map(|t| of[*t as usize])),
            _ => {}
        }
        let ends = matches!(last.op, Op::Bra | Op::BrxIdx | Op::Ret | Op::Exit | Op::Trap);
        if (!ends || last.guard != NO_GUARD) && end < drafts.len() {
            next.push(of[end]);
        }
        result.ranges.push((*s, end));
        result.next.push(next);
    }
    result
}

/// Returns the first and last draft at which each register holds a value on any path.
fn intervals(drafts: &[Draft], lists: &[Vec<u32>], base: &[u32; 3], n: usize) -> Vec<(u32, u32)> {
    let mut spans = vec![(u32::MAX, 0u32); n];
    let extend = |s: &mut (u32, u32), at: usize| {
        s.0 = s.0.min(at as u32);
        s.1 = s.1.max(at as u32);
    };
    for (i, d) in drafts.iter().enumerate() {
        each(d, lists, base, |r, _| extend(&mut spans[r as usize], i));
    }
    let graph = blocks(drafts, lists);
    let (count, words) = (graph.ranges.len(), n.div_ceil(64));
    let everywhere = |mut spans: Vec<(u32, u32)>| {
        spans.iter_mut().filter(|s| s.0 != u32::MAX).for_each(|s| *s = (0, drafts.len() as u32));
        spans
    };
    if count.saturating_mul(n) > MAX_BITS {
        return everywhere(spans);
    }
    let mut live_in = vec![0u64; count * words];
    let mut kill = vec![0u64; count * words];
    for (b, (from, to)) in graph.ranges.iter().enumerate() {
        for d in &drafts[*from..*to] {
            let whole = d.inst.guard == NO_GUARD;
            each(d, lists, base, |r, def| {
                let (w, bit) = (b * words + r as usize / 64, 1u64 << (r % 64));
                if !def && kill[w] & bit == 0 {
                    live_in[w] |= bit;
                } else if def && whole {
                    kill[w] |= bit;
                }
            });
        }
    }
    let edges: usize = graph.next.iter().map(Vec::len).sum();
    let (mut changed, mut looked) = (true, 0usize);
    while changed {
        changed = false;
        looked = looked.saturating_add(edges.saturating_mul(words));
        if looked > MAX_WORDS {
            return everywhere(spans);
        }
        for b in (0..count).rev() {
            for s in &graph.next[b] {
                for w in 0..words {
                    let new = live_in[s * words + w] & !kill[b * words + w];
                    let slot = &mut live_in[b * words + w];
                    changed |= new & !*slot != 0;
                    *slot |= new;
                }
            }
        }
    }
    for (b, (from, to)) in graph.ranges.iter().enumerate() {
        let mut cover = |block: usize, at: usize| {
            for w in 0..words {
                let mut bits = live_in[block * words + w];
                while bits != 0 {
                    extend(&mut spans[w * 64 + bits.trailing_zeros() as usize], at);
                    bits &= bits - 1;
                }
            }
        };
        cover(b, *from);
        graph.next[b].iter().for_each(|s| cover(*s, to - 1));
    }
    spans
}

/// Converts atomics whose old value is never read to reductions, as `ptxas` does.
pub(super) fn drop_unread(drafts: &mut [Draft], lists: &[Vec<u32>], counts: [u32; 3]) {
    let base = [0, counts[0], counts[0] + counts[1]];
    let mut read = vec![false; (base[2] + counts[2]) as usize];
    for draft in drafts.iter() {
        each(draft, lists, &base, |r, def| read[r as usize] |= !def);
    }
    for draft in drafts {
        let Role::Def(class) = draft.roles[0] else { continue };
        let d = (base[file(class)] + draft.inst.d) as usize;
        if let Op::Atom { rmw, result, .. } = &mut draft.inst.op
            && rmw.reduces()
            && !read[d]
        {
            *result = false;
            draft.roles[0] = Role::None;
        }
    }
}

/// Replaces register names by slots in the three register files. Returns the number of slots in
/// each file.
pub(super) fn allocate(drafts: &mut [Draft], lists: &mut [Vec<u32>], counts: [u32; 3]) -> [u32; 3] {
    let base = [0, counts[0], counts[0] + counts[1]];
    let total = (base[2] + counts[2]) as usize;
    let spans = intervals(drafts, lists, &base, total);
    let mut place = vec![0u32; total];
    let mut used = [0u32; 3];
    for f in 0..3 {
        let from = base[f] as usize;
        let mut order: Vec<usize> =
            (from..from + counts[f] as usize).filter(|r| spans[*r].0 != u32::MAX).collect();
        order.sort_by_key(|r| spans[*r]);
        let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
        let mut busy: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        for r in order {
            let (begin, end) = spans[r];
            // A register that is last read where another is first written could pass its slot on.
            // It does not, because the members of a vector are written one after another.
            while busy.peek().is_some_and(|Reverse((e, _))| *e < begin) {
                if let Some(Reverse((_, p))) = busy.pop() {
                    free.push(Reverse(p));
                }
            }
            let p = free.pop().map_or_else(
                || {
                    used[f] += 1;
                    used[f] - 1
                },
                |Reverse(p)| p,
            );
            place[r] = p;
            busy.push(Reverse((end, p)));
        }
    }
    for d in drafts {
        let i = &mut d.inst;
        if i.guard != NO_GUARD {
            i.guard = place[(base[2] + i.guard / 2) as usize] * 2 + i.guard % 2;
        }
        let fields = [&mut i.d, &mut i.e, &mut i.a, &mut i.b, &mut i.c, &mut i.s];
        for (n, role) in fields.into_iter().zip(d.roles) {
            if let Role::Def(c) | Role::Use(c) = role
                && *n & K == 0
            {
                *n = place[(base[file(c)] + *n) as usize];
            }
        }
        for (list, role) in &d.lists {
            let (Role::Def(c) | Role::Use(c)) = role else {
                continue;
            };
            for n in lists[*list as usize].iter_mut().filter(|n| **n & K == 0) {
                *n = place[(base[file(*c)] + *n) as usize];
            }
        }
    }
    used
}
