//! The wrapper of every exported function, and the state that the runtime keeps for each thread:
//! its last error, and its device while it has no context.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, guard, lock};
use crate::driver::state::context::{
    Context, context, current_any, current_handle, release_primary, retain_primary, set_current,
};
use crate::driver::state::device::DeviceInfo;
use crate::driver::state::registry::{device, initialise, registry};

/// Default streams: 0, which means `cudaStreamLegacy`, and `cudaStreamPerThread`.
pub const DEFAULT_STREAM: Handle = 0;
pub const OWN_STREAM: Handle = 2;

/// Declares exported functions, each with a C name, C arguments, and a body that returns `Res`. The
/// body runs with a current context. An error that it returns becomes the thread's last error.
macro_rules! runtime {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $crate::runtime::call::bare! {$(
            $(#[$meta])*
            fn $name($($arg: $ty),*) {
                $crate::runtime::call::enter()?;
                $body
            }
        )*}
    };
}
pub(super) use runtime;

/// Declares exported functions like `runtime`, but the functions do not require a context.
macro_rules! bare {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::runtime::call::answer(
                stringify!($name),
                move || -> $crate::driver::c::code::Res { $body },
            )
        }
    )*};
}
pub(super) use bare;

/// Declares functions with a stream argument. For each, it also declares the variant for which
/// stream 0 means the thread's own default stream. Programs compiled with `-default-stream
/// per-thread` call this variant.
macro_rules! streamed {
    ($(
        fn $name:ident / $own:ident [$stream:ident]($($arg:ident: $ty:ty),* $(,)?) $body:block
    )*) => {
        $crate::runtime::call::runtime! {$(
            fn $name($($arg: $ty),*) $body
        )*}
        $(
            #[doc = concat!("`", stringify!($name), "` on the thread's own default stream.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $own($($arg: $ty),*) -> u32 {
                let $stream = $crate::runtime::call::own($stream);
                // SAFETY: the caller's guarantees about the arguments are the same for both
                // functions.
                unsafe { $name($($arg),*) }
            }
        )*
    };
}
pub(super) use streamed;

/// Declares functions that use a default stream, called `$stream` in the body. For each, it also
/// declares the variant that uses the thread's own default stream.
macro_rules! defaulted {
    ($(
        fn $name:ident / $own:ident [$stream:ident]($($arg:ident: $ty:ty),* $(,)?) $body:block
    )*) => {
        $crate::runtime::call::runtime! {$(
            fn $name($($arg: $ty),*) {
                let $stream = $crate::runtime::call::DEFAULT_STREAM;
                $body
            }
            fn $own($($arg: $ty),*) {
                let $stream = $crate::runtime::call::OWN_STREAM;
                $body
            }
        )*}
    };
}
pub(super) use defaulted;

/// Calls an exported function of the driver, with arguments from a caller or from the runtime
/// itself.
macro_rules! driver {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: callers of the runtime give the same guarantees for their pointers as callers of
        // the driver, and pointers to the runtime's own variables are valid for the call.
        $crate::runtime::call::result(unsafe { $name($($arg),*) })
    }};
}
pub(super) use driver;

thread_local! {
    /// Last error that a function returned in this thread, or 0.
    static LAST: Cell<u32> = const { Cell::new(0) };
    /// Device of this thread while the driver has no current context.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
}

/// Devices whose primary contexts the runtime keeps alive, one bit per device.
static HELD: AtomicU32 = AtomicU32::new(0);
/// Lock that is held while `HELD` changes.
static HOLDING: Mutex<()> = Mutex::new(());

/// Runs the body of an exported function. If it returns an error, stores the error as the thread's
/// last error.
pub fn answer(name: &str, body: impl FnOnce() -> Res) -> u32 {
    let code = guard(name, body);
    if code != Code::SUCCESS.0 {
        LAST.set(code);
    }
    code
}

/// Returns the thread's last error without clearing it.
pub fn last_error() -> u32 {
    LAST.get()
}

/// Returns the thread's last error and clears it.
pub fn take_last_error() -> u32 {
    LAST.replace(Code::SUCCESS.0)
}

/// Converts the status of a driver function to a result.
pub fn result(code: u32) -> Res {
    if code == Code::SUCCESS.0 { Ok(()) } else { Err(Code(code)) }
}

/// Returns the value that a driver function stores through its output argument.
pub fn told<T: Copy + Default>(ask: impl FnOnce(Out<T>) -> Res) -> Res<T> {
    let mut value = T::default();
    // SAFETY: the variable exists until the call returns, and the call does not keep the pointer.
    ask(unsafe { Out::from_address(&raw mut value as usize) })?;
    Ok(value)
}

/// Returns the stream that `stream` means in a program with a default stream per thread.
pub fn own(stream: Handle) -> Handle {
    if stream == DEFAULT_STREAM { OWN_STREAM } else { stream }
}

/// Initialises the driver's state, as `cuInit` does. All later calls return the result of the
/// first.
pub fn begin() -> Res {
    static BEGUN: OnceLock<Res> = OnceLock::new();
    *BEGUN.get_or_init(|| initialise().map_err(|_| Code::NOT_INITIALIZED))
}

/// Ensures that the thread has a current context: the driver's current one, or otherwise the
/// primary context of the thread's device, which is created if it does not exist.
pub fn enter() -> Res {
    begin()?;
    let handle = current_handle();
    if handle == 0 {
        return hold(device(DEVICE.get())?).and_then(set_current);
    }
    let owner = match context(handle) {
        Ok(context) if !context.primary => return Ok(()),
        Ok(context) => context.device,
        // Another thread has reset it.
        Err(_) => primary_of(handle)?.ok_or(Code::CONTEXT_IS_DESTROYED)?,
    };
    if HELD.load(Ordering::Acquire) & bit(owner) == 0 {
        // The program may have retained the context, and may release it while the runtime uses it.
        hold(owner)?;
    }
    Ok(())
}

/// Returns the context that `enter` has made current.
pub fn entered() -> Res<Arc<Context>> {
    current_any()
}

/// Returns the device whose primary context has this handle.
fn primary_of(handle: Handle) -> Res<Option<&'static DeviceInfo>> {
    Ok(registry()?.devices.iter().find(|device| device.primary_handle == handle))
}

fn bit(device: &DeviceInfo) -> u32 {
    1 << device.ordinal
}

/// Returns the primary context of a device. The runtime retains the context until the device is
/// reset.
pub fn hold(device: &'static DeviceInfo) -> Res<Handle> {
    let _alone = lock(&HOLDING);
    let held = HELD.load(Ordering::Acquire) & bit(device) != 0;
    if held && context(device.primary_handle).is_ok() {
        return Ok(device.primary_handle);
    }
    let handle = retain_primary(device)?;
    HELD.fetch_or(bit(device), Ordering::Release);
    Ok(handle)
}

/// Implements `cudaSetDevice`: selects the thread's device, and makes its primary context current.
pub fn use_device(ordinal: c_int) -> Res {
    begin()?;
    let handle = hold(device(ordinal)?)?;
    DEVICE.set(ordinal);
    set_current(handle)
}

/// Returns the thread's device without creating a context.
pub fn own_device() -> Res<&'static DeviceInfo> {
    begin()?;
    match current_any() {
        Ok(context) => Ok(context.device),
        Err(_) => primary_of(current_handle())?.map_or_else(|| device(DEVICE.get()), Ok),
    }
}

/// Implements `cudaDeviceReset`: discards all state of the device. It remains the thread's device.
pub fn reset() -> Res {
    let device = own_device()?;
    let _alone = lock(&HOLDING);
    HELD.fetch_and(!bit(device), Ordering::Release);
    DEVICE.set(device.ordinal as c_int);
    release_primary(device, true)
}
