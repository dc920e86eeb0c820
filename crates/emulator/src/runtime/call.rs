//! The wrapper through which every exported function goes, and what the runtime keeps of a thread:
//! its last error, and its device as long as it has no context.

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

/// `cudaStreamLegacy`'s stand-in 0, and `cudaStreamPerThread`.
pub const DEFAULT_STREAM: Handle = 0;
pub const OWN_STREAM: Handle = 2;

/// Declares exported functions: C name, C arguments, body returning `Res`. The body runs with a
/// context current. What it answers is the thread's last error, if it is one.
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

/// The same for functions that need no context.
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

/// Declares functions that take a stream, and beside each the one that takes 0 for the thread's
/// own default stream: programs call it that are compiled with `-default-stream per-thread`.
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
                // SAFETY: what the caller promises of its arguments is the same for both.
                unsafe { $name($($arg),*) }
            }
        )*
    };
}
pub(super) use streamed;

/// Declares functions that imply a default stream, which the body has as `$stream`; and beside
/// each the one that implies the thread's own.
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

/// Calls an exported function of the driver with arguments that a caller handed over, or that the
/// runtime made.
macro_rules! driver {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: a caller of the runtime promises of its pointers what one of the driver does,
        // and places of the runtime's own are valid for the call.
        $crate::runtime::call::result(unsafe { $name($($arg),*) })
    }};
}
pub(super) use driver;

thread_local! {
    /// The last error that a function answered in this thread; 0 for none.
    static LAST: Cell<u32> = const { Cell::new(0) };
    /// The device of this thread where the driver has no context current.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
}

/// Devices whose primary contexts the runtime keeps alive, a bit for each.
static HELD: AtomicU32 = AtomicU32::new(0);
/// Held while that changes.
static HOLDING: Mutex<()> = Mutex::new(());

/// Runs the body of an exported function and keeps its error.
pub fn answer(name: &str, body: impl FnOnce() -> Res) -> u32 {
    let code = guard(name, body);
    if code != Code::SUCCESS.0 {
        LAST.set(code);
    }
    code
}

/// The thread's last error, which stays.
pub fn last_error() -> u32 {
    LAST.get()
}

/// The thread's last error, which is then forgotten.
pub fn take_last_error() -> u32 {
    LAST.replace(Code::SUCCESS.0)
}

/// A driver function's status as a result.
pub fn result(code: u32) -> Res {
    if code == Code::SUCCESS.0 { Ok(()) } else { Err(Code(code)) }
}

/// What a driver function stores through its output argument.
pub fn told<T: Copy + Default>(ask: impl FnOnce(Out<T>) -> Res) -> Res<T> {
    let mut value = T::default();
    // SAFETY: the place is there until the question is answered; nobody keeps the output.
    ask(unsafe { Out::from_address(&raw mut value as usize) })?;
    Ok(value)
}

/// The stream that a program means which has a default stream per thread.
pub fn own(stream: Handle) -> Handle {
    if stream == DEFAULT_STREAM { OWN_STREAM } else { stream }
}

/// Makes the driver's state, as `cuInit` does. Why it cannot be made is said once.
pub fn begin() -> Res {
    static BEGUN: OnceLock<Res> = OnceLock::new();
    *BEGUN.get_or_init(|| initialise().map_err(|_| Code::NOT_INITIALIZED))
}

/// Sees to it that the thread has a context: the one that is current in the driver, else the
/// primary context of the thread's device, which comes into being where it is not there yet.
pub fn enter() -> Res {
    begin()?;
    let handle = current_handle();
    if handle == 0 {
        return hold(device(DEVICE.get())?).and_then(set_current);
    }
    let owner = match context(handle) {
        Ok(context) if !context.primary => return Ok(()),
        Ok(context) => context.device,
        // It was reset, by another thread.
        Err(_) => primary_of(handle)?.ok_or(Code::CONTEXT_IS_DESTROYED)?,
    };
    if HELD.load(Ordering::Acquire) & bit(owner) == 0 {
        // Or the program retained it, and may release it while the runtime uses it.
        hold(owner)?;
    }
    Ok(())
}

/// The context that `enter` has made current.
pub fn entered() -> Res<Arc<Context>> {
    current_any()
}

/// The device whose primary context has that handle.
fn primary_of(handle: Handle) -> Res<Option<&'static DeviceInfo>> {
    Ok(registry()?.devices.iter().find(|device| device.primary_handle == handle))
}

fn bit(device: &DeviceInfo) -> u32 {
    1 << device.ordinal
}

/// The primary context of a device, which the runtime keeps until the device is reset.
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

/// `cudaSetDevice`.
pub fn use_device(ordinal: c_int) -> Res {
    begin()?;
    let handle = hold(device(ordinal)?)?;
    DEVICE.set(ordinal);
    set_current(handle)
}

/// The thread's device, for which no context is made.
pub fn own_device() -> Res<&'static DeviceInfo> {
    begin()?;
    match current_any() {
        Ok(context) => Ok(context.device),
        Err(_) => primary_of(current_handle())?.map_or_else(|| device(DEVICE.get()), Ok),
    }
}

/// `cudaDeviceReset`: the device forgets everything. The thread keeps it as its device.
pub fn reset() -> Res {
    let device = own_device()?;
    let _alone = lock(&HOLDING);
    HELD.fetch_and(!bit(device), Ordering::Release);
    DEVICE.set(device.ordinal as c_int);
    release_primary(device, true)
}
