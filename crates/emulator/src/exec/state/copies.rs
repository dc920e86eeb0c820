//! Pending `cp.async` copies, and arrivals at `mbarrier` objects that wait for them.
//!
//! The PTX ISA lets a copy read and write at any time between the instruction and the wait that
//! covers it. Here both happen at that wait, so that a kernel which waits for too few copies finds
//! the old data. Among the copies that one wait covers, the newest completes first, because nothing
//! orders them. Groups are counted separately for each lane, as the ISA does for threads.

use std::collections::VecDeque;

/// Maximum number of pending copies of a warp. Beyond that the oldest completes, as the ISA allows
/// at any time.
const MOST: usize = 256;
/// Maximum number of pending arrivals of a block.
const MOST_ARRIVALS: usize = 4096;
/// Size of the record for one byte of shared memory when the sanitiser is on, bytes.
pub(in crate::exec) const BYTES_PER_BYTE: usize = size_of::<u32>();

/// A `cp.async` instruction of a warp.
#[derive(Debug, Clone, Copy)]
pub(in crate::exec) struct Transfer {
    /// Lanes whose copy is pending.
    pub(in crate::exec) lanes: u32,
    /// Number of bytes that each lane writes.
    pub(in crate::exec) bytes: u8,
    /// Number of bytes that each lane reads; the remaining bytes are written as zeros.
    pub(in crate::exec) size: [u8; 32],
    /// Destination of each lane: offset in shared memory.
    pub(in crate::exec) to: [u32; 32],
    /// Source of each lane: address in global memory, valid where `size` is not 0.
    pub(in crate::exec) from: [u64; 32],
    /// The copy's group in each lane.
    group: [u32; 32],
    /// Number of copies that the block issued before this one.
    number: u64,
}

/// Lanes that arrive at an `mbarrier` when all their earlier copies have completed.
#[derive(Debug, Clone, Copy)]
pub(in crate::exec) struct Arrival {
    /// Offset of the object in shared memory.
    pub(in crate::exec) object: u64,
    pub(in crate::exec) warp: u32,
    /// The lanes that arrive. All of them refer to the same object.
    pub(in crate::exec) lanes: u32,
    /// The arrival waits for the copies of its lanes whose numbers are lower than this one.
    number: u64,
}

/// Pending copies of one warp.
#[derive(Default)]
struct Queue {
    /// Pending copies, oldest first.
    copies: VecDeque<Transfer>,
    /// Number of groups that each lane has committed.
    committed: [u32; 32],
}

/// Pending copies and arrivals of a block.
#[derive(Default)]
pub(in crate::exec) struct Copies {
    queues: Vec<Queue>,
    arrivals: Vec<Arrival>,
    issued: u64,
    /// For each byte of shared memory, 1 + the thread whose pending copy will write it. Empty if no
    /// copy was issued or the sanitiser is off.
    marks: Vec<u32>,
}

impl Copies {
    /// Removes all copies and arrivals at the end of the block.
    pub(in crate::exec) fn clear(&mut self) {
        *self = Self::default();
    }

    fn queue(&mut self, warp: u32) -> &mut Queue {
        let n = warp as usize;
        if self.queues.len() <= n {
            self.queues.resize_with(n + 1, Queue::default);
        }
        &mut self.queues[n]
    }

    /// Records a copy. Returns a copy that must complete now because too many are pending. `marked`
    /// is the size of the shared memory for which pending writes are recorded, or 0.
    pub(in crate::exec) fn issue(
        &mut self,
        warp: u32,
        lanes: u32,
        bytes: u8,
        (to, from): (&[u64; 32], &[u64; 32]),
        size: [u8; 32],
        marked: u32,
    ) -> Option<Transfer> {
        let number = self.issued;
        self.issued += 1;
        let queue = self.queue(warp);
        let to = to.map(|v| v as u32);
        let copy = Transfer { lanes, bytes, size, to, from: *from, group: queue.committed, number };
        let oldest = if queue.copies.len() < MOST { None } else { queue.copies.pop_front() };
        queue.copies.push_back(copy);
        if marked != 0 {
            self.marks.resize(marked as usize, 0);
            self.mark(&copy, |lane| warp * 32 + lane + 1);
            oldest.iter().for_each(|copy| self.mark(copy, |_| 0));
        }
        oldest
    }

    /// Records which thread will write the bytes of a copy.
    fn mark(&mut self, copy: &Transfer, mark: impl Fn(u32) -> u32) {
        for lane in (0..32).filter(|l| copy.lanes >> l & 1 == 1) {
            let from = copy.to[lane as usize] as usize;
            if let Some(marks) = self.marks.get_mut(from..from + usize::from(copy.bytes)) {
                marks.fill(mark(lane));
            }
        }
    }

    /// Returns the thread that has a pending copy to some of these bytes.
    pub(in crate::exec) fn in_flight(&self, at: u64, bytes: u32) -> Option<u32> {
        let marks = self.marks.get(at as usize..at as usize + bytes as usize)?;
        marks.iter().find(|m| **m != 0).map(|m| m - 1)
    }

    /// Closes the current group of `lanes`.
    pub(in crate::exec) fn commit(&mut self, warp: u32, lanes: u32) {
        let committed = &mut self.queue(warp).committed;
        for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
            committed[lane] = committed[lane].wrapping_add(1);
        }
    }

    /// Removes and returns the copies of `lanes` that must complete so that at most `keep` of their
    /// groups stay pending. If `keep` is `None`, all copies must complete. The newest comes first.
    pub(in crate::exec) fn wait(
        &mut self,
        warp: u32,
        lanes: u32,
        keep: Option<u32>,
    ) -> Vec<Transfer> {
        let committed = self.queue(warp).committed;
        self.take(warp, lanes, |copy, lane| {
            let groups = committed[lane].wrapping_sub(copy.group[lane]);
            keep.is_none_or(|keep| groups > keep)
        })
    }

    /// Records that `lanes` arrive at the object when their copies issued so far have completed.
    /// Returns an arrival that must happen now because too many are pending.
    pub(in crate::exec) fn arrive(
        &mut self,
        object: u64,
        warp: u32,
        lanes: u32,
    ) -> Option<Arrival> {
        let oldest = (self.arrivals.len() >= MOST_ARRIVALS).then(|| self.arrivals.remove(0));
        self.arrivals.push(Arrival { object, warp, lanes, number: self.issued });
        oldest
    }

    /// Removes and returns the pending arrivals at an object, oldest first.
    pub(in crate::exec) fn due(&mut self, object: u64) -> Vec<Arrival> {
        if self.arrivals.is_empty() {
            return Vec::new();
        }
        let (now, later) = self.arrivals.drain(..).partition(|a| a.object == object);
        self.arrivals = later;
        now
    }

    /// Removes and returns the copies that an arrival waits for, newest first.
    pub(in crate::exec) fn before(&mut self, arrival: &Arrival) -> Vec<Transfer> {
        self.take(arrival.warp, arrival.lanes, |copy, _| copy.number < arrival.number)
    }

    /// Removes and returns all pending copies, newest first.
    pub(in crate::exec) fn all(&mut self) -> Vec<Transfer> {
        let warps = 0..self.queues.len() as u32;
        let mut out: Vec<_> = warps.flat_map(|w| self.take(w, u32::MAX, |_, _| true)).collect();
        out.sort_by_key(|copy| std::cmp::Reverse(copy.number));
        out
    }

    /// Removes and returns the copies of `lanes` for which `lands` is true, newest first.
    fn take(
        &mut self,
        warp: u32,
        lanes: u32,
        lands: impl Fn(&Transfer, usize) -> bool,
    ) -> Vec<Transfer> {
        let mut out = Vec::new();
        self.queue(warp).copies.retain_mut(|copy| {
            let mut now = 0;
            for lane in (0..32).filter(|l| copy.lanes & lanes & 1 << l != 0) {
                now |= u32::from(lands(copy, lane)) << lane;
            }
            if now != 0 {
                out.push(Transfer { lanes: now, ..*copy });
            }
            copy.lanes &= !now;
            copy.lanes != 0
        });
        if !self.marks.is_empty() {
            out.iter().for_each(|copy| self.mark(copy, |_| 0));
        }
        out.reverse();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue(copies: &mut Copies, lanes: u32, to: u64) {
        let to = std::array::from_fn(|l| to + 4 * l as u64);
        assert!(copies.issue(1, lanes, 4, (&to, &[0; 32]), [4; 32], 1024).is_none());
    }

    fn landed(copies: &[Transfer]) -> Vec<(u32, u32)> {
        copies.iter().map(|c| (c.to[0], c.lanes)).collect()
    }

    #[test]
    fn a_wait_covers_the_groups_before_those_that_it_keeps() {
        let mut c = Copies::default();
        for stage in 0..3 {
            issue(&mut c, 0xff, stage * 256);
            issue(&mut c, 0xff, stage * 256 + 128);
            c.commit(1, 0xff);
        }
        // A copy outside any group is not waited for by number.
        issue(&mut c, 0xff, 768);
        assert_eq!(landed(&c.wait(1, 0xff, Some(3))), []);
        assert_eq!(landed(&c.wait(1, 0x0f, Some(2))), [(128, 0x0f), (0, 0x0f)]);
        assert_eq!((c.in_flight(4, 4), c.in_flight(20, 4)), (None, Some(32 + 5)));
        let rest = [(384, 0xff), (256, 0xff), (128, 0xf0), (0, 0xf0)];
        assert_eq!(landed(&c.wait(1, 0xff, Some(1))), rest);
        assert_eq!(landed(&c.wait(0, 0xff, None)), []);
        assert_eq!(landed(&c.wait(1, 0xff, None)), [(768, 0xff), (640, 0xff), (512, 0xff)]);
        assert_eq!(c.in_flight(0, 1024), None);
    }

    #[test]
    fn an_arrival_waits_for_what_was_issued_before_it() {
        let mut c = Copies::default();
        issue(&mut c, 0xff, 0);
        assert!(c.arrive(512, 1, 0x0f).is_none());
        issue(&mut c, 0xff, 128);
        assert!(c.due(520).is_empty());
        let [arrival] = c.due(512)[..] else { panic!() };
        assert_eq!(landed(&c.before(&arrival)), [(0, 0x0f)]);
        assert_eq!(landed(&c.all()), [(128, 0xff), (0, 0xf0)]);
    }

    #[test]
    fn what_is_on_its_way_is_bounded() {
        let mut c = Copies::default();
        let issue = |c: &mut Copies| c.issue(0, 1, 16, (&[0; 32], &[7; 32]), [16; 32], 0);
        assert!((0..MOST).all(|_| issue(&mut c).is_none()));
        assert_eq!(issue(&mut c).map(|c| c.number), Some(0));
        assert!((0..MOST_ARRIVALS).all(|_| c.arrive(0, 0, 1).is_none()));
        assert_eq!(c.arrive(8, 0, 1).map(|a| a.object), Some(0));
    }
}
