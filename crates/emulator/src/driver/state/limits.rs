//! The limits of a context.

use std::ffi::c_uint;

use crate::driver::c::code::{Code, Res};

/// The `CUlimit` values of a context, in bytes.
pub struct Limits {
    stack: usize,
    pub printf_bytes: usize,
    heap: usize,
    l2_fetch: usize,
    persisting_l2: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { stack: 1024, printf_bytes: 1 << 20, heap: 8 << 20, l2_fetch: 64, persisting_l2: 0 }
    }
}

/// Maximum stack size of a thread, bytes (compute capability 7.5 and later).
const MAX_STACK: usize = 512 << 10;
/// Maximum size of the printf buffer, bytes. The buffer is in host memory.
const MAX_PRINTF: usize = 1 << 30;

impl Limits {
    pub fn slot(&mut self, limit: c_uint) -> Res<&mut usize> {
        Ok(match limit {
            0 => &mut self.stack,
            1 => &mut self.printf_bytes,
            2 => &mut self.heap,
            5 => &mut self.l2_fetch,
            6 => &mut self.persisting_l2,
            // Limits of device-side launches (3, 4) and of other interfaces (7, …).
            3 | 4 | 7..=9 => return Err(Code::UNSUPPORTED_LIMIT),
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    pub fn set(&mut self, limit: c_uint, value: usize) -> Res {
        let most = match limit {
            0 => MAX_STACK,
            1 => MAX_PRINTF,
            5 => 128,
            // No cache is emulated, so no part of it can be set aside.
            6 => 0,
            _ => usize::MAX,
        };
        let slot = self.slot(limit)?;
        if limit == 6 {
            *slot = value.min(most);
            return Ok(());
        }
        if value > most {
            return Err(Code::INVALID_VALUE);
        }
        *slot = value;
        Ok(())
    }
}
