//! Streams and timing events.

use std::ffi::c_void;

use cudarc::driver::sys::{CUevent, CUstream};

use super::DeviceError;
use super::context::Context;

/// `CU_STREAM_NON_BLOCKING`: no implicit ordering with the default stream.
const NON_BLOCKING: u32 = 1;

/// `CUDA_ERROR_NOT_READY`: work is still pending, and no fault has occurred.
const NOT_READY: i32 = 600;

/// A queue of device work, executed in order.
pub struct Stream {
    pub(super) handle: CUstream,
    context: Context,
}

impl Stream {
    /// Creates a stream.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context) -> Result<Self, DeviceError> {
        let mut handle: CUstream = std::ptr::null_mut();
        // SAFETY: the context is current on this thread (it cannot leave it).
        let result = unsafe { (context.api().stream_create)(&mut handle, NON_BLOCKING) };
        context.api().check(result, "create a stream")?;
        Ok(Self { handle, context: context.clone() })
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until all queued work has ended.
    ///
    /// # Errors
    /// Returns a fault of the queued work or of the driver.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the handle lives as long as self.
        let result = unsafe { (self.context.api().stream_synchronize)(self.handle) };
        self.context.api().check(result, "wait for the device")
    }

    /// Returns whether all queued work has ended, without waiting.
    ///
    /// # Errors
    /// Returns a fault of the queued work or of the driver.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        // SAFETY: the handle lives as long as self.
        let result = unsafe { (self.context.api().stream_query)(self.handle) };
        if result == NOT_READY {
            return Ok(false);
        }
        self.context.api().check(result, "query the stream").map(|()| true)
    }
}

/// Operations on memory that the caller specifies by its address, as kernels do. Like a kernel,
/// they can access only memory of the context's device.
impl Stream {
    /// Queues setting `bytes` bytes at a device address to `value`.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fill_at(&self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.context.api();
        // SAFETY: the driver refuses addresses that are not device memory, and no memory of Rust is
        // on the device.
        let result = unsafe { (api.fill)(address, value, bytes as usize, self.handle) };
        api.check(result, "fill device memory")
    }

    /// Queues a copy of `bytes` bytes between two device addresses.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_at(&self, from: u64, to: u64, bytes: u64) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        let api = self.context.api();
        // SAFETY: as for `fill_at`.
        let result = unsafe { (api.copy_on_device)(to, from, bytes as usize, self.handle) };
        api.check(result, "copy on the device")
    }

    /// Waits for all queued work, and then reads the bytes at a device address.
    ///
    /// # Errors
    /// Returns a fault of the queued work or of the driver.
    pub fn read_at(&self, address: u64, target: &mut [u8]) -> Result<(), DeviceError> {
        if target.is_empty() {
            return self.synchronize();
        }
        let api = self.context.api();
        let (start, bytes) = (target.as_mut_ptr().cast::<c_void>(), target.len());
        // SAFETY: the target outlives the copy, because this waits; for the address as for
        // `fill_at`.
        let result = unsafe { (api.copy_to_host)(start, address, bytes, self.handle) };
        api.check(result, "copy from the device")?;
        self.synchronize()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created by us, destroyed once. A failure means the context is lost already.
        let _ = unsafe { (self.context.api().stream_destroy)(self.handle) };
    }
}

/// A point in a stream's work. It records a time unless it is shared between processes.
pub struct Event {
    pub(super) handle: CUevent,
    pub(super) context: Context,
}

impl Event {
    /// Creates an event that records times.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context) -> Result<Self, DeviceError> {
        // The default flags record times.
        Self::with_flags(context, 0)
    }

    pub(super) fn with_flags(context: &Context, flags: u32) -> Result<Self, DeviceError> {
        let mut handle: CUevent = std::ptr::null_mut();
        // SAFETY: the context is current on this thread.
        let result = unsafe { (context.api().event_create)(&mut handle, flags) };
        context.api().check(result, "create an event")?;
        Ok(Self { handle, context: context.clone() })
    }

    /// Records the event at the current end of `stream`.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn record(&self, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: both handles are alive and belong to this context.
        let result = unsafe { (self.context.api().event_record)(self.handle, stream.handle) };
        self.context.api().check(result, "record an event")
    }

    /// Waits until the device has passed the event.
    ///
    /// # Errors
    /// Returns a fault of work before the event, or of the driver.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the handle lives as long as self.
        let result = unsafe { (self.context.api().event_synchronize)(self.handle) };
        self.context.api().check(result, "wait for the device")
    }

    /// Returns the time from `start` to this event, milliseconds. The device must have passed both.
    ///
    /// # Errors
    /// Fails if one of them was not recorded or has not been passed.
    pub fn elapsed_ms_since(&self, start: &Event) -> Result<f32, DeviceError> {
        let mut ms = 0.0f32;
        // SAFETY: both handles are alive and belong to this context.
        let result =
            unsafe { (self.context.api().event_elapsed)(&mut ms, start.handle, self.handle) };
        self.context.api().check(result, "read an event")?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by us, destroyed once.
        let _ = unsafe { (self.context.api().event_destroy)(self.handle) };
    }
}

/// Timing events for reuse, so that a timed loop does not create events.
pub struct EventPool {
    events: Vec<Event>,
}

impl EventPool {
    /// Creates `count` events.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context, count: usize) -> Result<Self, DeviceError> {
        let events = (0..count).map(|_| Event::new(context)).collect::<Result<_, _>>()?;
        Ok(Self { events })
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }
}
