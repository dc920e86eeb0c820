//! The driver, its devices, and the context of a device.

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::rc::Rc;

use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute as Attribute, CUuuid};

use super::DeviceError;
use super::api::Api;
use super::reserve::Reserve;
use warpgauge_model::{DeviceInfo, DeviceKind, FailureCode, SmLimits, Target};

/// `CU_LIMIT_STACK_SIZE`.
const LIMIT_STACK_SIZE: c_int = 0;

/// An initialised driver.
#[derive(Clone, Copy)]
pub struct Driver {
    api: &'static Api,
    kind: DeviceKind,
    version: i32,
}

impl Driver {
    /// Initialises the driver whose functions are in `api`.
    pub(super) fn initialise(api: &'static Api, kind: DeviceKind) -> Result<Self, DeviceError> {
        // SAFETY: cuInit may be called at any time with 0.
        api.check(unsafe { (api.init)(0) }, "initialise the CUDA driver")?;
        let mut version = 0;
        // SAFETY: writes one int.
        let result = unsafe { (api.driver_version)(&mut version) };
        api.check(result, "query the driver's version")?;
        Ok(Self { api, kind, version })
    }

    /// Returns the number of devices.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn device_count(&self) -> Result<u32, DeviceError> {
        let mut count = 0;
        // SAFETY: writes one int.
        let result = unsafe { (self.api.device_count)(&mut count) };
        self.api.check(result, "count devices")?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// Returns the driver's description of a device.
    ///
    /// # Errors
    /// Fails if there is no such device or the driver fails.
    pub fn device_info(&self, ordinal: u32) -> Result<DeviceInfo, DeviceError> {
        let device = self.device(ordinal)?;
        let major =
            self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor =
            self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let mut memory_bytes = 0usize;
        // SAFETY: writes one size_t.
        let result = unsafe { (self.api.device_memory)(&mut memory_bytes, device) };
        self.api.check(result, "query the size of device memory")?;
        // The attributes for clocks are deprecated. The value is 0 if the driver lacks them.
        let clock = |which| self.attribute(device, which).unwrap_or(0);
        Ok(DeviceInfo {
            ordinal,
            kind: self.kind,
            name: self.text(device, self.api.device_name, "query the device's name")?,
            uuid: self.uuid(device)?,
            target: Target {
                compute_capability: (major, minor),
                driver_version: self.version,
                emulated: self.kind == DeviceKind::Emulator,
            },
            multiprocessors: self
                .attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_bytes: memory_bytes as u64,
            l2_bytes: self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            clock_khz: clock(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            memory_clock_khz: clock(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            memory_bus_bits: self
                .attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
            max_shared_optin_bytes: self.attribute(
                device,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            pci_bus_id: self
                .text(device, self.api.device_pci, "query the device's PCI address")?
                .to_lowercase(),
            sm: self.sm_limits(device)?,
            unmonitored: None,
        })
    }

    fn sm_limits(&self, device: CUdevice) -> Result<SmLimits, DeviceError> {
        // Drivers before 11.0 do not know the last two attributes.
        let newer = |which| self.attribute(device, which).unwrap_or(0);
        Ok(SmLimits {
            threads: self
                .attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            registers: self.attribute(
                device,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
            )?,
            shared_bytes: self.attribute(
                device,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            blocks: newer(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
            reserved_shared_bytes: newer(
                Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
            ),
        })
    }

    /// Creates the context of a device and makes it current on this thread.
    ///
    /// # Errors
    /// Fails if there is no such device or the driver cannot create the context.
    pub fn open(&self, ordinal: u32) -> Result<Context, DeviceError> {
        let device = self.device(ordinal)?;
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: the device is one the driver gave us.
        let result = unsafe { (self.api.context_retain)(&mut handle, device) };
        self.api.check(result, &format!("create a context on device {ordinal}"))?;
        // SAFETY: the context was just created, and is never released before the process ends.
        let result = unsafe { (self.api.context_set)(handle) };
        self.api.check(result, "make the context current")?;
        Ok(Context { api: self.api, handle, reserve: Rc::default(), _thread: PhantomData })
    }

    fn device(&self, ordinal: u32) -> Result<CUdevice, DeviceError> {
        let mut device: CUdevice = 0;
        let index = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: writes one int.
        let result = unsafe { (self.api.device_get)(&mut device, index) };
        self.api.check(result, &format!("open device {ordinal}"))?;
        Ok(device)
    }

    fn attribute(&self, device: CUdevice, which: Attribute) -> Result<u32, DeviceError> {
        let mut value = 0;
        // SAFETY: writes one int; an attribute that the driver does not know is an error code.
        let result = unsafe { (self.api.device_attribute)(&mut value, which as c_int, device) };
        self.api.check(result, &format!("query {which:?}"))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn text(
        &self,
        device: CUdevice,
        function: unsafe extern "C" fn(*mut c_char, c_int, CUdevice) -> c_int,
        operation: &str,
    ) -> Result<String, DeviceError> {
        let mut buffer = [0u8; 256];
        // SAFETY: the length keeps the last byte zero, so that the text always ends.
        let result = unsafe { function(buffer.as_mut_ptr().cast(), 255, device) };
        self.api.check(result, operation)?;
        let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    fn uuid(&self, device: CUdevice) -> Result<String, DeviceError> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: writes 16 bytes.
        let result = unsafe { (self.api.device_uuid)(&mut uuid, device) };
        self.api.check(result, "query the device's UUID")?;
        Ok(format!("GPU-{}", uuid::Uuid::from_bytes(uuid.bytes.map(|byte| byte as u8))))
    }
}

/// The context of a device. It is current on the thread that holds it.
///
/// It exists until the process ends. A worker uses one context for its whole life, and releasing a
/// context whose work never ends would hang.
#[derive(Clone)]
pub struct Context {
    api: &'static Api,
    handle: CUcontext,
    reserve: Rc<Reserve>,
    _thread: PhantomData<Rc<()>>,
}

impl Context {
    pub(super) fn api(&self) -> &'static Api {
        self.api
    }

    pub(super) fn handle(&self) -> CUcontext {
        self.handle
    }

    pub(super) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Waits until all work of the context has ended.
    ///
    /// # Errors
    /// Returns the fault that made the context unusable, if there is one.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: no arguments.
        let result = unsafe { (self.api.context_synchronize)() };
        self.api.check(result, "wait for the device")
    }

    /// Returns free and total device memory, bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn memory_info(&self) -> Result<(u64, u64), DeviceError> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: writes two size_t.
        let result = unsafe { (self.api.memory_info)(&mut free, &mut total) };
        self.api.check(result, "query free memory")?;
        Ok((free as u64, total as u64))
    }

    /// Returns the driver's current limit on the stack size of a thread, bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn stack_limit_bytes(&self) -> Result<u64, DeviceError> {
        let mut bytes = 0usize;
        // SAFETY: writes one size_t.
        let result = unsafe { (self.api.context_get_limit)(&mut bytes, LIMIT_STACK_SIZE) };
        self.api.check(result, "query the stack limit")?;
        Ok(bytes as u64)
    }

    /// Marks the beginning of the range that a profiler records, if this process runs under one.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn start_profiler(&self) -> Result<(), DeviceError> {
        let Some(start) = self.api.profiler_start else { return Ok(()) };
        // SAFETY: no arguments; without a profiler the call has no effect.
        self.api.check(unsafe { start() }, "start the profiler")
    }

    /// Marks the end of the range that a profiler records.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn stop_profiler(&self) -> Result<(), DeviceError> {
        let Some(stop) = self.api.profiler_stop else { return Ok(()) };
        // SAFETY: no arguments; without a profiler the call has no effect.
        self.api.check(unsafe { stop() }, "stop the profiler")
    }

    /// Resets the L2 cache lines that a kernel has marked as persisting to normal use. Has no
    /// effect if the driver does not support this.
    ///
    /// # Errors
    /// Fails if the context is lost.
    pub fn reset_persisting_l2(&self) -> Result<(), DeviceError> {
        let Some(reset) = self.api.reset_persisting_l2 else {
            return Ok(());
        };
        // SAFETY: no arguments.
        let result = unsafe { reset() };
        match self.api.check(result, "reset persisting L2 lines") {
            Err(error) if error.code == FailureCode::NotSupported => Ok(()),
            other => other,
        }
    }
}
