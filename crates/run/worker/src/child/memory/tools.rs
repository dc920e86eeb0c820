//! Objects for filling, reading and comparing memory.

use warpgauge_device::support::Support;
use warpgauge_device::{Context, PinnedPool, Stream};
use warpgauge_model::DeviceKind;

#[derive(Clone, Copy)]
pub(crate) struct Tools<'a> {
    pub context: &'a Context,
    pub stream: &'a Stream,
    pub support: &'a Support,
    pub pinned: &'a std::rc::Rc<PinnedPool>,
    pub kind: DeviceKind,
}
