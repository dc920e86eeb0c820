//! The order in which blocks start.

/// Number of blocks within which the order is shuffled. A launch holds at least this many
/// unfinished blocks at a time, or all of them. Some kernels wait for blocks with a lower index,
/// for example to look back at a predecessor's result. Such a block therefore waits for one that
/// has started or will start.
pub(super) const WINDOW: u64 = 64;

/// The order of a launch's blocks. It is shuffled within each window, with the seed of the launch.
pub(super) struct Order {
    seed: u64,
    total: u64,
    /// Indices of the blocks within the current window.
    window: [u8; WINDOW as usize],
}

/// Of the blocks with indices below this number, about every second one is held.
const OFTEN: u64 = 32;
/// Of the blocks with higher indices, about one in this many is held.
const SELDOM: u64 = 64;

/// Returns a pseudo-random number derived from `v`.
fn mix(mut v: u64) -> u64 {
    v = v.wrapping_add(0x9e37_79b9_7f4a_7c15);
    v = (v ^ v >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    v = (v ^ v >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ v >> 31
}

impl Order {
    /// Returns the order for `total` blocks. With a seed of 0 it is the order of their indices.
    pub(super) fn new(seed: u64, total: u64) -> Self {
        Self { seed, total, window: [0; WINDOW as usize] }
    }

    /// Returns the index of the `n`th block to start. Must be called with ascending `n`.
    pub(super) fn index(&mut self, n: u64) -> u64 {
        if self.seed == 0 {
            return n;
        }
        let (begin, at) = (n - n % WINDOW, n % WINDOW);
        if at == 0 {
            let count = WINDOW.min(self.total - begin);
            (0..WINDOW as u8).zip(&mut self.window).for_each(|(i, w)| *w = i);
            let mut random = mix(self.seed ^ mix(begin));
            for last in (1..count).rev() {
                random = mix(random);
                self.window.swap(last as usize, (random % (last + 1)) as usize);
            }
        }
        begin + u64::from(self.window[at as usize])
    }

    /// Returns the number of the plain load after which block `index` lets others run, if blocks
    /// execute `loads` plain loads; 0 means never. A kernel that adds to a number without an atomic
    /// can then lose another block's update.
    pub(super) fn hold(&self, index: u64, loads: u32) -> u32 {
        let random = mix(self.seed ^ mix(!index));
        let every = if index < OFTEN { 2 } else { SELDOM };
        if self.seed == 0 || loads == 0 || !random.is_multiple_of(every) {
            return 0;
        }
        1 + (random / every % u64::from(loads)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64, total: u64) -> Vec<u64> {
        let mut order = Order::new(seed, total);
        assert!((0..total).all(|i| order.hold(i, 5) <= if seed == 0 { 0 } else { 5 }));
        (0..total).map(|n| order.index(n)).collect()
    }

    #[test]
    fn every_block_begins_once_and_in_its_window() {
        for total in [1, 2, 63, 64, 65, 1000] {
            assert!(order(0, total).into_iter().eq(0..total));
            let other = order(7, total);
            assert!(other.iter().enumerate().all(|(n, i)| n as u64 / WINDOW == i / WINDOW));
            let mut sorted = other.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..total));
            assert_eq!(other, order(7, total));
        }
        assert_ne!(order(7, 64), order(8, 64));
        assert_ne!(order(7, 64), order(0, 64));
        assert_ne!(
            order(7, 128)[..64],
            order(7, 128)[64..].iter().map(|i| i - 64).collect::<Vec<_>>()
        );
    }
}
