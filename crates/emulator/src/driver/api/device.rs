//! Exported functions that initialise the driver and describe devices and errors.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering;

use crate::driver::c::abi::{Bytes, DevProp, Device, Handle};
use crate::driver::c::code::{Code, Res, name, text};
use crate::driver::c::entry::{In, Out, Text, api, write_text};
use crate::driver::state::attributes;
use crate::driver::state::registry::{device, initialise, registry};

/// The CUDA version that the emulator reports: 13.0.
pub const DRIVER_VERSION: c_int = 13000;

/// Name of every emulated device.
pub const NAME: &str = "warpgauge emulator (CPU)";

fn set_attribute(pi: Out<c_int>, attribute: c_uint, dev: Device) -> Res {
    pi.set(attributes::value(device(dev)?, attribute).ok_or(Code::INVALID_VALUE)?)
}

api! {
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        initialise()
    }

    fn cuDriverGetVersion(version: Out<c_int>) {
        version.set(DRIVER_VERSION)
    }

    fn cuGetErrorName(error: c_uint, out: Out<*const c_char>) {
        out.set(name(error).unwrap_or(std::ptr::null()))?;
        name(error).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetErrorString(error: c_uint, out: Out<*const c_char>) {
        out.set(text(error).unwrap_or(std::ptr::null()))?;
        text(error).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(registry()?.devices.len() as c_int)
    }

    fn cuDeviceGet(out: Out<Device>, ordinal: c_int) {
        out.set(device(ordinal)?.ordinal as Device)
    }

    fn cuDeviceGetName(out: Out<c_char>, len: c_int, dev: Device) {
        device(dev)?;
        write_text(out, usize::try_from(len).unwrap_or(0), NAME.as_bytes())
    }

    fn cuDeviceGetUuid(uuid: Out<Bytes<16>>, dev: Device) {
        uuid.set(Bytes(device(dev)?.uuid()))
    }

    fn cuDeviceGetUuid_v2(uuid: Out<Bytes<16>>, dev: Device) {
        uuid.set(Bytes(device(dev)?.uuid()))
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, dev: Device) {
        bytes.set(device(dev)?.total_bytes as usize)
    }

    fn cuDeviceGetAttribute(pi: Out<c_int>, attribute: c_uint, dev: Device) {
        set_attribute(pi, attribute, dev)
    }

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, dev: Device) {
        set_attribute(major, attributes::CC_MAJOR, dev)?;
        set_attribute(minor, attributes::CC_MINOR, dev)
    }

    fn cuDeviceGetProperties(out: Out<DevProp>, dev: Device) {
        let device = device(dev)?;
        let of = |attribute| attributes::value(device, attribute).unwrap_or(0);
        out.set(DevProp {
            max_threads_per_block: of(1),
            max_threads_dim: [of(2), of(3), of(4)],
            max_grid_size: [of(5), of(6), of(7)],
            shared_per_block: of(8),
            constant_bytes: of(9),
            warp_size: of(10),
            pitch: of(11),
            registers_per_block: of(12),
            clock_khz: of(13),
            texture_align: of(14),
        })
    }

    fn cuDeviceGetPCIBusId(out: Out<c_char>, len: c_int, dev: Device) {
        let id = device(dev)?.pci_bus_id();
        write_text(out, usize::try_from(len).unwrap_or(0), id.as_bytes())
    }

    fn cuDeviceGetByPCIBusId(out: Out<Device>, id: Text) {
        let id = id.get()?;
        let found = registry()?.devices.iter().find(|device| {
            let own = device.pci_bus_id();
            own.eq_ignore_ascii_case(&id) || own[5..].eq_ignore_ascii_case(&id)
        });
        out.set(found.ok_or(Code::INVALID_DEVICE)?.ordinal as Device)
    }

    fn cuDeviceCanAccessPeer(out: Out<c_int>, dev: Device, peer: Device) {
        let (dev, peer) = (device(dev)?, device(peer)?);
        out.set(c_int::from(dev.ordinal != peer.ordinal))
    }

    fn cuDeviceGetP2PAttribute(out: Out<c_int>, attribute: c_uint, src: Device, dst: Device) {
        let (src, dst) = (device(src)?, device(dst)?);
        if src.ordinal == dst.ordinal {
            return Err(Code::INVALID_DEVICE);
        }
        // Attribute 1: performance rank (all links are alike), 2: access, 3: native atomics, 4:
        // arrays.
        out.set(match attribute {
            1 | 4 => 0,
            2 | 3 => 1,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuDeviceGetExecAffinitySupport(out: Out<c_int>, _kind: c_uint, dev: Device) {
        device(dev)?;
        out.set(0)
    }

    fn cuDeviceGetDefaultMemPool(out: Out<Handle>, dev: Device) {
        out.set(device(dev)?.default_pool)
    }

    fn cuDeviceGetMemPool(out: Out<Handle>, dev: Device) {
        out.set(device(dev)?.pool.load(Ordering::Acquire))
    }

    fn cuDeviceSetMemPool(dev: Device, pool: Handle) {
        let device = device(dev)?;
        if registry()?.pools.get(pool)?.device != device.ordinal {
            return Err(Code::INVALID_VALUE);
        }
        device.pool.store(pool, Ordering::Release);
        Ok(())
    }

    fn cuDeviceGraphMemTrim(dev: Device) {
        device(dev).map(|_| ())
    }

    fn cuGetExportTable(out: Out<usize>, id: In<Bytes<16>>) {
        // The tables behind this call are private interfaces of NVIDIA, which the emulator does not
        // implement.
        id.get()?;
        out.set_if_asked(0);
        Err(Code::NOT_FOUND)
    }

    fn cuProfilerStart() {
        registry().map(|_| ())
    }

    fn cuProfilerStop() {
        registry().map(|_| ())
    }
}
