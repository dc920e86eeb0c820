//! Arguments that are texture objects: each contains the address of a buffer, and changes when the
//! buffer moves.

use crate::child::device::executor::Executor;
use warpgauge_device::{Context, DeviceError, PreparedLaunch, TextureObject};
use warpgauge_model::TextureLayout;

/// An argument of a launch that is a texture object.
pub(super) struct BoundTexture {
    context: Context,
    argument: usize,
    /// Index of the buffer that the texture reads.
    pub buffer: usize,
    layout: TextureLayout,
    /// Address of the buffer when the object was created.
    address: u64,
    object: TextureObject,
}

impl BoundTexture {
    /// Creates the object of argument `argument`, which reads buffer `buffer` at `address`. Also
    /// returns its bytes.
    pub(super) fn new(
        executor: &Executor,
        (argument, buffer, address): (usize, usize, u64),
        layout: &TextureLayout,
    ) -> Result<(Self, [u8; 8]), DeviceError> {
        let context = executor.context.clone();
        let object = TextureObject::new(&context, layout, address)?;
        let bytes = object.bytes();
        let layout = layout.clone();
        Ok((Self { context, argument, buffer, layout, address, object }, bytes))
    }

    /// Creates a new object if the buffer has moved.
    pub(super) fn follow(
        &mut self,
        address: u64,
        launch: &mut PreparedLaunch,
    ) -> Result<(), DeviceError> {
        if self.address != address {
            self.object = TextureObject::new(&self.context, &self.layout, address)?;
            self.address = address;
            launch.set_argument(self.argument, &self.object.bytes());
        }
        Ok(())
    }
}
