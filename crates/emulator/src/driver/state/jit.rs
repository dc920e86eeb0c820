//! Options of the functions that load modules. Only the log options and the option for the wall
//! time have an effect.

use std::ffi::{c_char, c_uint};
use std::time::Instant;

use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, write_text};

/// Values of `CUjit_option`: the wall time, and the buffers of both logs with their sizes in bytes.
const WALL_TIME: c_uint = 2;
const INFO_LOG: c_uint = 3;
const INFO_LOG_BYTES: c_uint = 4;
const ERROR_LOG: c_uint = 5;
const ERROR_LOG_BYTES: c_uint = 6;
/// Number of options in this version of the API.
const OPTION_COUNT: c_uint = 35;

/// A log buffer of the caller, and the pointer to its size.
#[derive(Clone, Copy)]
struct Log {
    buffer: Out<c_char>,
    room: usize,
    size: Out<usize>,
}

impl Log {
    /// Writes the text to the buffer. Stores its length including the NUL, or 0 if the text is
    /// empty.
    fn write(&self, text: &str) {
        let kept = text.len().min(self.room.saturating_sub(1));
        if write_text(self.buffer, self.room, &text.as_bytes()[..kept]).is_ok() {
            self.size.set_if_asked(if kept == 0 { 0 } else { kept + 1 });
        }
    }
}

/// The options of a call that loads a module.
pub struct Jit {
    info: Option<Log>,
    error: Option<Log>,
    wall: Option<Out<f32>>,
    begin: Instant,
}

impl Jit {
    /// Returns an empty set of options.
    pub fn none() -> Self {
        Jit { info: None, error: None, wall: None, begin: Instant::now() }
    }

    /// Reads the arrays of options and values. Each value is a number or an address, depending on
    /// the option.
    pub fn read(count: c_uint, options: In<c_uint>, values: Out<usize>) -> Res<Self> {
        let options = options.list(count as usize)?;
        let mut jit = Self::none();
        if options.iter().any(|&option| option >= OPTION_COUNT) {
            return Err(Code::INVALID_VALUE);
        }
        if count > 0 {
            values.required()?;
        }
        let place = |wanted: c_uint| {
            options.iter().position(|&option| option == wanted).map(|index| values.at(index))
        };
        let log = |buffer: c_uint, bytes: c_uint| -> Res<Option<Log>> {
            let (Some(buffer), Some(size)) = (place(buffer), place(bytes)) else {
                return Ok(None);
            };
            // The value is an `unsigned int` in the low half of the pointer-sized slot.
            let room = size.get()? as u32 as usize;
            // SAFETY: by the contract of the option, the value is the buffer's address.
            let buffer = unsafe { Out::from_address(buffer.get()?) };
            Ok(Some(Log { buffer, room, size }))
        };
        jit.info = log(INFO_LOG, INFO_LOG_BYTES)?;
        jit.error = log(ERROR_LOG, ERROR_LOG_BYTES)?;
        if let Some(slot) = place(WALL_TIME) {
            // SAFETY: the slot belongs to the caller and is pointer-sized; it receives the time as
            // a `float`.
            jit.wall = Some(unsafe { Out::from_address(slot.address()) });
        }
        Ok(jit)
    }

    fn finish(&self, info: &str, error: &str) {
        if let Some(log) = self.info {
            log.write(info);
        }
        if let Some(log) = self.error {
            log.write(error);
        }
        if let Some(wall) = self.wall {
            wall.set_if_asked(self.begin.elapsed().as_secs_f32() * 1e3);
        }
    }

    pub fn succeed(&self) {
        self.finish("", "");
    }

    pub fn fail(&self, message: &str) {
        self.finish("", message);
    }
}
