//! Order between the warps of a block: each warp has a vector clock.
//!
//! A warp that arrives at a synchronisation object *releases* its clock to it. A warp that has
//! waited for the object *acquires* the object's clock.

use std::collections::HashMap;

/// An object that orders the accesses of warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::exec) enum Object {
    /// A barrier of the block.
    Barrier(u8),
    /// A word of shared memory, given by its index.
    Word(u32),
    /// All words beyond the first [`MOST_OBJECTS`] objects, which share one clock.
    Rest,
    /// All words of global memory, and fences, which share one clock.
    Global,
}

/// Maximum number of objects of a block with separate clocks.
const MOST_OBJECTS: usize = 4096;
/// The clocks of a synchronisation object.
struct Sync {
    /// For each warp, the latest time of the arrivals at the object so far.
    open: Box<[u32]>,
    /// The value of `open` when all warps for which the object last waited had arrived.
    done: Box<[u32]>,
}

/// The clocks of a block's warps and of the synchronisation objects.
pub(in crate::exec) struct Clocks {
    warps: usize,
    /// Row `w` holds the time of warp `w`. For every other warp, it holds the time up to which that
    /// warp's accesses are ordered before those of warp `w`.
    rows: Vec<u32>,
    objects: HashMap<Object, Sync>,
}

fn join(to: &mut [u32], from: &[u32]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t = (*t).max(*f));
}

impl Clocks {
    pub(super) fn new(warps: usize) -> Self {
        let mut rows = vec![0; warps * warps];
        // Each warp's own time begins at 1. No warp is ordered after another.
        (0..warps).for_each(|w| rows[w * warps + w] = 1);
        Self { warps, rows, objects: HashMap::new() }
    }

    fn object(&mut self, object: Object) -> &mut Sync {
        let full = self.objects.len() >= MOST_OBJECTS && !self.objects.contains_key(&object);
        let zeros = || vec![0; self.warps].into_boxed_slice();
        let key = if full { Object::Rest } else { object };
        self.objects.entry(key).or_insert_with(|| Sync { open: zeros(), done: zeros() })
    }

    /// Records that `warp` arrives at the object. Warps that wait for the object are then ordered
    /// after it.
    pub(super) fn release(&mut self, object: Object, warp: u32) {
        let (n, w) = (self.warps, warp as usize);
        let mut rows = std::mem::take(&mut self.rows);
        join(&mut self.object(object).open, &rows[w * n..(w + 1) * n]);
        rows[w * n + w] += 1;
        self.rows = rows;
    }

    /// Records that all warps for which the object waited have arrived.
    pub(super) fn publish(&mut self, object: Object) {
        let sync = self.object(object);
        sync.done.copy_from_slice(&sync.open);
    }

    /// Records that `warp` has waited for the object.
    pub(super) fn acquire(&mut self, object: Object, warp: u32) {
        let (n, w) = (self.warps, warp as usize);
        let mut rows = std::mem::take(&mut self.rows);
        join(&mut rows[w * n..(w + 1) * n], &self.object(object).done);
        self.rows = rows;
    }

    /// Records that `warp` is ordered after everything that any warp has done so far.
    pub(super) fn learn_all(&mut self, warp: u32) {
        let n = self.warps;
        for other in (0..n).filter(|&other| other != warp as usize) {
            self.rows[warp as usize * n + other] = self.rows[other * n + other];
            self.rows[other * n + other] += 1;
        }
    }

    /// Returns the time of `warp` on its clock.
    pub(super) fn time(&self, warp: u32) -> u32 {
        self.rows[warp as usize * (self.warps + 1)]
    }

    /// Returns whether `warp` is not ordered after the access that warp `other` made at time `when`
    /// of its clock.
    pub(super) fn are_apart(&self, warp: u32, (other, when): (u32, u32)) -> bool {
        other != warp && when > self.rows[warp as usize * self.warps + other as usize]
    }
}
