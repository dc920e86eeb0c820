//! Arguments that are tensor maps: they contain the address of a buffer, and change when the buffer
//! moves.

use crate::child::device::executor::Executor;
use warpgauge_device::{Context, DeviceError, PreparedLaunch, TENSOR_MAP_BYTES, encode_tensor_map};
use warpgauge_model::{DeviceKind, FailureCode, TensorMap};

/// First major compute capability with a Tensor Memory Accelerator (TMA), which reads tensor maps.
const FIRST_MAJOR: u32 = 9;

/// An argument of a launch that is a tensor map.
pub(crate) struct BoundMap {
    context: Context,
    argument: usize,
    /// Index of the buffer that the map describes.
    pub buffer: usize,
    map: TensorMap,
    /// Address of the buffer when the map was encoded.
    address: u64,
}

impl BoundMap {
    /// Encodes a tensor map of the buffer `buffer` at `address`, for the argument `argument`.
    ///
    /// # Errors
    /// Fails if the device has no TMA, or the driver rejects the map.
    pub(crate) fn new(
        executor: &Executor,
        (argument, buffer, address): (usize, usize, u64),
        map: &TensorMap,
    ) -> Result<(Self, [u8; TENSOR_MAP_BYTES]), DeviceError> {
        let device = &executor.device;
        let (major, minor) = device.target.compute_capability;
        // The emulator reports this limit itself, whichever GPU it emulates.
        if major < FIRST_MAJOR && device.kind == DeviceKind::Cuda {
            let text = format!(
                "argument {argument} is a tensor map, which requires compute capability 9.0, but \
                 the device has {major}.{minor}"
            );
            let operation = "make a tensor descriptor";
            return Err(DeviceError::local(operation, FailureCode::NotSupported, text));
        }
        let context = executor.context.clone();
        let bytes = encode_tensor_map(&context, map, address)?;
        Ok((Self { context, argument, buffer, map: map.clone(), address }, bytes))
    }

    /// Encodes the map again if its buffer has moved.
    pub(crate) fn follow(
        &mut self,
        address: u64,
        launch: &mut PreparedLaunch,
    ) -> Result<(), DeviceError> {
        if self.address != address {
            launch.set_argument(
                self.argument,
                &encode_tensor_map(&self.context, &self.map, address)?,
            );
            self.address = address;
        }
        Ok(())
    }
}
