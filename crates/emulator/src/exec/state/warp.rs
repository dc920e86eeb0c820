//! Warps: frames, groups of lanes, and the choice of the next group.
//!
//! Lanes at the same instruction of the same frame run together as a *group*. At a divergent branch
//! the group splits; groups that meet again merge. The group with the deepest call nesting runs
//! first. Among groups of equal nesting, the one with the lowest instruction address does. This
//! order reunites lanes as early as possible. A group that has been in a loop for a long time
//! yields to the others. A lane that waits for another lane of its warp therefore does not wait
//! forever.

use super::stack::Stack;
use crate::exec::lanes::Regs;
use crate::ir::{Code, Row32};

/// Value of an index that refers to no frame.
pub(in crate::exec) const NONE: u32 = u32::MAX;
/// Maximum nesting of function calls.
pub(in crate::exec) const MAX_DEPTH: u32 = 2048;
/// Maximum local memory of a thread in addition to the kernel's own frame, bytes.
pub(in crate::exec) const STACK: u32 = 64 << 10;

/// Size of a row of local memory, bytes: one word for each lane.
const ROW: u64 = 128;

/// The registers of a function for the lanes that entered it from one call site.
pub(in crate::exec) struct Frame {
    pub(in crate::exec) regs: Regs,
    pub(in crate::exec) func: u32,
    pub(in crate::exec) parent: u32,
    /// Address of the call instruction in the calling function.
    pub(in crate::exec) call: u32,
    /// Lanes that have not returned from the function.
    pub(in crate::exec) lanes: u32,
    pub(in crate::exec) depth: u32,
    /// Start of the frame's local memory. The next field is its end, which `alloca` moves.
    pub(in crate::exec) local: u32,
    pub(in crate::exec) top: u32,
}

/// State of a group of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum State {
    Ready,
    /// The group waits at barrier `id`, which was in generation `since` on arrival.
    Barrier {
        id: u8,
        since: u32,
    },
    /// The group waits at an instruction for lanes that have not arrived.
    Sync,
}

/// Lanes that are at the same instruction of the same frame.
#[derive(Debug, Clone, Copy)]
pub(in crate::exec) struct Group {
    pub(in crate::exec) pc: u32,
    pub(in crate::exec) frame: u32,
    pub(in crate::exec) mask: u32,
    pub(in crate::exec) state: State,
    /// Whether the group has yielded to the others.
    pub(in crate::exec) yielded: bool,
    /// Whether the group executes its synchronising instruction without the lanes that cannot
    /// arrive.
    pub(in crate::exec) forced: bool,
}

/// A warp of 32 threads; the last warp of a block may have fewer.
pub(in crate::exec) struct Warp {
    pub(in crate::exec) id: u32,
    /// Lanes of the warp that have not exited.
    pub(in crate::exec) alive: u32,
    pub(in crate::exec) groups: Vec<Group>,
    pub(in crate::exec) frames: Vec<Frame>,
    free: Vec<u32>,
    /// Local memory. Row `n` holds word `n` of all lanes.
    pub(in crate::exec) local: Vec<Row32>,
    pub(in crate::exec) tid: [[u32; 32]; 3],
    /// Number of instructions that the warp has executed; serves as its clock.
    pub(in crate::exec) clock: u64,
    /// Memory that function calls use. Frames are kept for later calls.
    pub(in crate::exec) stack: Stack,
}

/// The next action of a warp.
pub(in crate::exec) enum Pick {
    /// Run the group at this index.
    Run(usize),
    /// Every group that could run has yielded to the others.
    Spinning,
    /// All groups of the warp wait at barriers.
    Blocked,
    /// All lanes of the warp have exited.
    Done,
}

impl Warp {
    pub(in crate::exec) fn new(id: u32, lanes: u32, tid: [[u32; 32]; 3], code: &Code) -> Self {
        let mut warp = Self {
            id,
            alive: 0,
            groups: Vec::with_capacity(4),
            frames: Vec::new(),
            free: Vec::new(),
            local: Vec::new(),
            tid,
            clock: 0,
            stack: Stack::default(),
        };
        warp.begin(lanes, code);
        warp
    }

    /// Places `lanes` at the start of the kernel, with cleared state.
    pub(in crate::exec) fn begin(&mut self, lanes: u32, code: &Code) {
        (self.alive, self.clock) = (lanes, 0);
        self.groups.clear();
        self.local.iter_mut().for_each(|r| r.0 = [0; 32]);
        self.frames.iter_mut().for_each(|f| f.regs.clear());
        self.free.clear();
        self.free.extend((0..self.frames.len() as u32).rev());
        let (frame, _) = self.new_frame(code, 0, NONE, 0, lanes);
        self.groups.push(Group {
            pc: code.funcs[0].entry,
            frame,
            mask: lanes,
            state: State::Ready,
            yielded: false,
            forced: false,
        });
    }

    /// Creates a frame for `func`, called at `call` of `parent`. Also returns the additional memory
    /// that it uses.
    pub(in crate::exec) fn new_frame(
        &mut self,
        code: &Code,
        func: u32,
        parent: u32,
        call: u32,
        lanes: u32,
    ) -> (u32, Stack) {
        let info = &code.funcs[func as usize];
        let (depth, local) = match self.frames.get(parent as usize) {
            Some(p) => (p.depth + 1, p.top),
            None => (0, 0),
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.frames.push(Frame {
                regs: Regs::default(),
                func: 0,
                parent: NONE,
                call: 0,
                lanes: 0,
                depth: 0,
                local: 0,
                top: 0,
            });
            self.frames.len() as u32 - 1
        });
        let f = &mut self.frames[index as usize];
        let before = f.regs.bytes() + self.local.capacity() as u64 * ROW;
        f.regs.resize(info.n32, info.n64, info.np);
        (f.func, f.parent, f.call, f.lanes) = (func, parent, call, lanes);
        (f.depth, f.local, f.top) = (depth, local, local + info.local);
        let rows = (f.top / 4) as usize;
        if self.local.len() < rows {
            self.local.resize(rows, Row32([0; 32]));
        }
        let after = f.regs.bytes() + self.local.capacity() as u64 * ROW;
        let all = if parent == NONE { 0 } else { after.saturating_sub(before) };
        let recursive = if all != 0 && self.is_in(func, parent) { all } else { 0 };
        let grown = Stack { all, recursive };
        self.stack += grown;
        (index, grown)
    }

    /// Returns whether `frame` is a frame of `func`, or was called from one directly or indirectly.
    pub(in crate::exec) fn is_in(&self, func: u32, mut frame: u32) -> bool {
        while frame != NONE && self.frames[frame as usize].func != func {
            frame = self.frames[frame as usize].parent;
        }
        frame != NONE
    }

    /// Returns the frame that other lanes have entered from the same call site.
    pub(in crate::exec) fn shared_frame(&self, parent: u32, call: u32, func: u32) -> Option<u32> {
        if self.groups.len() == 1 {
            return None;
        }
        let same =
            |f: &Frame| f.lanes != 0 && f.parent == parent && f.call == call && f.func == func;
        self.frames.iter().position(same).map(|i| i as u32)
    }

    /// Records that lanes leave a frame.
    pub(in crate::exec) fn leave(&mut self, frame: u32, lanes: u32) {
        let f = &mut self.frames[frame as usize];
        f.lanes &= !lanes;
        if f.lanes == 0 {
            self.free.push(frame);
        }
    }

    /// Records that lanes exit the kernel from a frame.
    pub(in crate::exec) fn exit(&mut self, mut frame: u32, lanes: u32) {
        self.alive &= !lanes;
        while frame != NONE {
            let parent = self.frames[frame as usize].parent;
            self.leave(frame, lanes);
            frame = parent;
        }
    }

    /// Merges groups that are at the same instruction of the same frame.
    fn merge(&mut self) {
        let mut i = 0;
        while i < self.groups.len() {
            let g = self.groups[i];
            if g.mask == 0 {
                self.groups.swap_remove(i);
                continue;
            }
            if !matches!(g.state, State::Barrier { .. }) {
                let mut j = i + 1;
                while j < self.groups.len() {
                    let h = self.groups[j];
                    let open = !matches!(h.state, State::Barrier { .. });
                    if open && h.pc == g.pc && h.frame == g.frame {
                        self.groups[i].mask |= h.mask;
                        self.groups[i].state = State::Ready;
                        self.groups[i].yielded &= h.yielded;
                        self.groups.swap_remove(j);
                    } else {
                        j += 1;
                    }
                }
            }
            i += 1;
        }
    }

    /// Returns the group to run now.
    pub(in crate::exec) fn pick(&mut self) -> Pick {
        if let [g] = &self.groups[..]
            && g.state == State::Ready
            && !g.yielded
            && g.mask != 0
        {
            return Pick::Run(0);
        }
        self.merge();
        let order = |g: &Group| (std::cmp::Reverse(self.frames[g.frame as usize].depth), g.pc);
        let ready = |g: &&(usize, &Group)| g.1.state == State::Ready && !g.1.yielded;
        let best = self.groups.iter().enumerate();
        let best = best.filter(|g| ready(&g)).min_by_key(|(_, g)| order(g)).map(|(i, _)| i);
        if let Some(i) = best {
            return Pick::Run(i);
        }
        if self.groups.iter().any(|g| g.state == State::Ready) {
            self.groups.iter_mut().for_each(|g| g.yielded = false);
            return Pick::Spinning;
        }
        // The lanes for which others wait cannot arrive, so the waiting group continues without
        // them.
        let waiting = self.groups.iter().enumerate().filter(|(_, g)| g.state == State::Sync);
        if let Some(i) = waiting.min_by_key(|(_, g)| order(g)).map(|(i, _)| i) {
            self.groups[i].state = State::Ready;
            self.groups[i].forced = true;
            return Pick::Run(i);
        }
        if self.groups.is_empty() { Pick::Done } else { Pick::Blocked }
    }

    /// Returns the address of the next instruction at which group `i` may meet another group.
    pub(in crate::exec) fn limit(&self, i: usize, pc: u32) -> u32 {
        if self.groups.len() == 1 {
            return u32::MAX;
        }
        let frame = self.groups[i].frame;
        let others = self.groups.iter().enumerate().filter(|(j, g)| {
            *j != i && g.frame == frame && g.pc > pc && !matches!(g.state, State::Barrier { .. })
        });
        others.map(|(_, g)| g.pc).min().unwrap_or(u32::MAX)
    }

    /// Returns the memory that the registers and the local memory of a warp use, bytes.
    pub(in crate::exec) fn estimate(code: &Code) -> usize {
        let f = &code.funcs[0];
        f.n32 as usize * 128 + f.n64 as usize * 256 + f.local as usize * 32
    }
}
