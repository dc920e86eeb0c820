//! The C boundary: the wrapper of all exported functions, and the argument types that pass raw
//! pointers from C to safe code.
//!
//! An exported function is `unsafe extern "C"`: its caller guarantees what the CUDA documentation
//! of that function requires of its pointers. Each is null or valid for the data read or written
//! through it. Values of the types below are created only by that caller, by passing them through
//! the C ABI. They inherit the guarantee, so their methods may be safe. They check for null.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::code::{Code, Res};

/// Runs the body of an exported function. A panic is caught and does not cross into C.
pub fn guard(name: &str, body: impl FnOnce() -> Res) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Code::SUCCESS.0,
        Ok(Err(code)) => code.0,
        Err(panic) => {
            eprintln!("warpgauge emulator: internal error in {name}: {}", message(&panic));
            Code::UNKNOWN.0
        }
    }
}

/// Returns the text of a caught panic.
pub fn message(panic: &Box<dyn Any + Send>) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Declares exported driver functions. Each has a C name, C arguments, and a body that returns
/// `Res`.
macro_rules! api {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::driver::c::entry::guard(
                stringify!($name),
                move || -> $crate::driver::c::code::Res { $body },
            )
        }
    )*};
}
pub(crate) use api;

/// Declares exported functions that the emulator does not support. They return `NOT_SUPPORTED`, so
/// that a caller gets an error that it can report, not a missing symbol.
///
/// The arguments are not declared because they are not read. In the C calling conventions of this
/// platform the caller removes them from the stack.
macro_rules! refused {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> u32 {
            $crate::driver::c::code::Code::NOT_SUPPORTED.0
        }
    )*};
}
pub(crate) use refused;

/// A pointer through which a function returns a `T`.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T: Copy> Out<T> {
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Stores the result. Returns an error if the caller passed a null pointer.
    pub fn set(self, value: T) -> Res {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so by the C contract (module docs) valid for writing one `T`.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores the result if the caller passed a pointer.
    pub fn set_if_asked(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `set`.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Returns an error if `set` would fail, so that a function can check this before it creates an
    /// object.
    pub fn required(self) -> Res {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes at most `room` values to the caller's array.
    pub fn fill(self, room: usize, values: impl IntoIterator<Item = T>) -> Res {
        if room > 0 {
            self.required()?;
        }
        for (index, value) in values.into_iter().take(room).enumerate() {
            // SAFETY: by the C contract the array has `room` elements, and `index < room`.
            unsafe { self.0.add(index).write_unaligned(value) };
        }
        Ok(())
    }

    /// Returns the output for one element of an array.
    pub fn at(self, index: usize) -> Out<T> {
        Out(self.0.wrapping_add(index))
    }

    pub fn address(self) -> usize {
        self.0 as usize
    }

    /// Returns an output whose address the caller passed as a number, in an untyped array.
    ///
    /// # Safety By the C contract of the function this number is the address of a `T`, or null.
    pub unsafe fn from_address(address: usize) -> Self {
        Out(address as *mut T)
    }

    /// Returns the value that the caller stored there, for an argument that is both input and
    /// output.
    pub fn get(self) -> Res<T> {
        In(self.0.cast_const()).get()
    }
}

impl From<Out<u64>> for Out<u32> {
    /// Converts a `void *` whose type depends on another argument to the narrower type.
    fn from(wide: Out<u64>) -> Self {
        Out(wide.0.cast())
    }
}

/// A pointer through which a function receives values of type `T`.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn get(self) -> Res<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so by the C contract valid for reading one `T`.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Returns a null pointer argument.
    pub fn null() -> Self {
        In(std::ptr::null())
    }

    /// Returns the argument for one element of an array.
    pub fn at(self, index: usize) -> In<T> {
        In(self.0.wrapping_add(index))
    }

    /// Returns an argument whose address the caller passed as a number, in an untyped array.
    ///
    /// # Safety
    /// By the C contract of the function this argument is such an address.
    pub unsafe fn from_address(address: usize) -> Self {
        In(address as *const T)
    }

    /// Returns the first `count` elements of an array.
    pub fn list(self, count: usize) -> Res<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.0.is_null() || count > MAX_LIST {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: by the C contract the array has `count` elements.
        Ok((0..count).map(|index| unsafe { self.0.add(index).read_unaligned() }).collect())
    }
}

/// Maximum length of an argument list of this API. A larger count is an error of the caller.
const MAX_LIST: usize = 1 << 20;

/// A NUL-terminated string that a caller passes as an argument.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// Returns the string. Names and paths in this API must be UTF-8.
    pub fn get(self) -> Res<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so by the C contract a NUL-terminated string.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Code::INVALID_VALUE)
    }
}

/// Writes text to a caller's buffer of `len` bytes, including the final NUL.
pub fn write_text(to: Out<c_char>, len: usize, text: &[u8]) -> Res {
    if len == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let kept = text.len().min(len - 1);
    to.fill(len, text[..kept].iter().map(|&byte| byte as c_char).chain([0]))
}

/// Copies `bytes` bytes of host memory from a pointer that a caller passed as `const void *`.
///
/// # Safety
/// `from` is valid for reading `bytes` bytes.
pub unsafe fn host_bytes(from: *const c_void, bytes: usize) -> Vec<u8> {
    let mut copy = vec![0u8; bytes];
    // SAFETY: the source by this function's contract, the destination was just allocated.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr(), bytes) };
    copy
}

/// Locks a mutex. A poisoned lock is still usable: the panic was reported elsewhere and left the
/// data consistent, because no critical section of this crate calls foreign code.
pub fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
