//! Reads the memory of a kernel at the generic addresses that one of its threads uses.

use super::memory::global_get;
use super::special::space_of;
use crate::exec::state::{Cta, Warp, Worker};
use crate::ir::window::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::ptx::Space;

/// Maximum length of a format or of a `%s` text, bytes.
const MAX_TEXT: usize = 64 << 10;

/// Reads bytes at generic addresses as one thread sees them.
pub(super) struct View<'v, 'w> {
    pub(super) worker: &'v mut Worker<'w>,
    pub(super) cta: &'v Cta,
    pub(super) warp: &'v Warp,
    pub(super) lane: usize,
}

impl View<'_, '_> {
    /// Returns the byte at `va`, or `None` if it cannot be read.
    fn byte(&mut self, va: u64) -> Option<u8> {
        match space_of(va) {
            Space::Shared => {
                let at = va - SHARED_WINDOW;
                let word = *self.cta.shared.get((at / 4) as usize)?;
                Some((word >> (at % 4 * 8)) as u8)
            }
            Space::Local => {
                let at = va - LOCAL_WINDOW;
                let word = self.warp.local.get((at / 4) as usize)?.0[self.lane];
                Some((word >> (at % 4 * 8)) as u8)
            }
            Space::Param => None,
            _ => {
                self.worker.region(va, va.checked_add(1)?)?;
                // SAFETY: the byte is in a mapped region.
                Some(unsafe { global_get(va, 1) } as u8)
            }
        }
    }

    /// Reads `n` bytes as a little-endian number.
    pub(super) fn number(&mut self, va: u64, n: u64) -> Option<u64> {
        (0..n).try_fold(0, |v, i| Some(v | u64::from(self.byte(va.checked_add(i)?)?) << (8 * i)))
    }

    /// Reads the bytes from `va` up to a zero byte, or at most [`MAX_TEXT`] bytes.
    pub(super) fn text(&mut self, va: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < MAX_TEXT {
            match self.byte(va.checked_add(out.len() as u64)?)? {
                0 => return Some(out),
                b => out.push(b),
            }
        }
        Some(out)
    }
}
