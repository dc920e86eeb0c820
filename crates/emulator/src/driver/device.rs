//! The emulated devices: what they say of themselves, and the functions that ask.
//!
//! All devices are alike. Their figures are those of a small GPU of the chosen compute
//! capability and never depend on the host, so that occupancy and counts are the same
//! everywhere; only the memory size does (it must fit the host). Clocks and bus width are
//! nominal: nothing that is emulated runs at a rate.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::abi::{Bytes, DevProp, Device, Handle};
use super::attributes;
use super::code::{Code, Res, name, text};
use super::entry::{In, Out, Text, api, write_text};
use super::registry::{device, fresh, initialise, registry};

/// The version that the emulator answers for: CUDA 13.0.
const DRIVER_VERSION: c_int = 13000;
/// Streaming multiprocessors of every emulated device.
pub const SM_COUNT: u32 = 16;
/// The most devices one process emulates.
const MAX_DEVICES: u32 = 16;
/// The most memory one emulated device reports, unless the environment says otherwise.
const MAX_MEMORY: u64 = 16 << 30;

/// The limits that differ between compute capabilities (CUDA C++ programming guide, table of
/// technical specifications per compute capability).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arch {
    pub major: u32,
    pub minor: u32,
    pub threads_per_sm: u32,
    pub blocks_per_sm: u32,
    pub shared_per_sm: u32,
    pub shared_optin: u32,
    /// Shared memory that the system keeps per block.
    pub shared_reserved: u32,
}

const ARCHS: [Arch; 6] = [
    arch(75, 1024, 16, 64 << 10, 64 << 10, 0),
    arch(80, 2048, 32, 164 << 10, 163 << 10, 1024),
    arch(86, 1536, 16, 100 << 10, 99 << 10, 1024),
    arch(87, 1536, 16, 164 << 10, 163 << 10, 1024),
    arch(89, 1536, 24, 100 << 10, 99 << 10, 1024),
    arch(90, 2048, 32, 228 << 10, 227 << 10, 1024),
];

const fn arch(cc: u32, threads: u32, blocks: u32, shared: u32, optin: u32, reserved: u32) -> Arch {
    Arch {
        major: cc / 10,
        minor: cc % 10,
        threads_per_sm: threads,
        blocks_per_sm: blocks,
        shared_per_sm: shared,
        shared_optin: optin,
        shared_reserved: reserved,
    }
}

/// The primary context of a device: how often it is retained, and its flags.
#[derive(Default)]
pub struct Primary {
    pub retained: u32,
    pub flags: c_uint,
}

/// One emulated device.
pub struct DeviceInfo {
    pub ordinal: u32,
    pub arch: Arch,
    pub total_bytes: u64,
    pub default_pool: Handle,
    /// The pool that `cuMemAllocAsync` takes from.
    pub pool: AtomicUsize,
    /// The primary context always has this handle, also after a reset.
    pub primary_handle: Handle,
    pub primary: Mutex<Primary>,
}

/// How many devices of what kind, from the environment.
pub struct Settings {
    devices: u32,
    arch: Arch,
    bytes: u64,
}

impl Settings {
    /// Reads `WARPGAUGE_EMULATOR_DEVICES`, `_CC` and `_MEMORY_MB`.
    pub fn from_environment() -> Result<Self, String> {
        Self::read(&|name| std::env::var(name).ok(), host_memory())
    }

    fn read(get: &dyn Fn(&str) -> Option<String>, host: u64) -> Result<Self, String> {
        let number = |name: &str, default: u64, allowed: std::ops::RangeInclusive<u64>| {
            let Some(value) = get(name) else {
                return Ok(default);
            };
            value.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
                format!("{name}={value}: expected {}..={}", allowed.start(), allowed.end())
            })
        };
        let devices = number("WARPGAUGE_EMULATOR_DEVICES", 1, 1..=u64::from(MAX_DEVICES))?;
        let cc = number("WARPGAUGE_EMULATOR_CC", 90, 0..=999)?;
        let arch = ARCHS.iter().find(|arch| u64::from(arch.major * 10 + arch.minor) == cc);
        let arch = *arch.ok_or_else(|| {
            format!("WARPGAUGE_EMULATOR_CC={cc}: expected 75, 80, 86, 87, 89 or 90")
        })?;
        let fair = (host / 2 / devices).clamp(64 << 20, MAX_MEMORY);
        let megabytes = number("WARPGAUGE_EMULATOR_MEMORY_MB", fair >> 20, 1..=1 << 22)?;
        Ok(Settings { devices: devices as u32, arch, bytes: megabytes << 20 })
    }
}

/// The memory of the host in bytes; the cap of a device's memory where it is not known.
fn host_memory() -> u64 {
    let kilobytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|table| {
        let line = table.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    kilobytes.map_or(2 * MAX_MEMORY, |kilobytes| kilobytes * 1024)
}

impl DeviceInfo {
    /// The devices that the settings ask for.
    pub fn all(settings: &Settings) -> Vec<DeviceInfo> {
        (0..settings.devices)
            .map(|ordinal| {
                let pool = fresh();
                DeviceInfo {
                    ordinal,
                    arch: settings.arch,
                    total_bytes: settings.bytes,
                    default_pool: pool,
                    pool: AtomicUsize::new(pool),
                    primary_handle: fresh(),
                    primary: Mutex::default(),
                }
            })
            .collect()
    }

    /// The same for an ordinal on every host and in every process.
    fn uuid(&self) -> [u8; 16] {
        let mut uuid = *b"warpgauge-emu\0\0\0";
        uuid[15] = self.ordinal as u8;
        uuid
    }

    fn pci_bus_id(&self) -> String {
        format!("0000:{:02X}:00.0", self.ordinal + 1)
    }
}

/// The name of every emulated device.
const NAME: &str = "warpgauge emulator (CPU)";

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
        // 1: performance rank (all links are alike), 2: access, 3: native atomics, 4: arrays.
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
        // The tables behind this call are NVIDIA's private interfaces; there are none here.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        let get = |name: &str| {
            let found = pairs.iter().find(|pair| name.ends_with(pair.0));
            found.map(|pair| pair.1.to_owned())
        };
        Settings::read(&get, 8 << 30)
    }

    #[test]
    fn settings_have_defaults_and_limits() {
        let plain = settings(&[]).unwrap();
        assert_eq!((plain.devices, plain.bytes), (1, 4 << 30));
        assert_eq!((plain.arch.major, plain.arch.minor), (9, 0));
        let four = settings(&[("DEVICES", "4"), ("CC", "75")]).unwrap();
        assert_eq!((four.devices, four.bytes, four.arch.major), (4, 1 << 30, 7));
        for wrong in [("DEVICES", "0"), ("DEVICES", "17"), ("CC", "70"), ("MEMORY_MB", "x")] {
            assert!(settings(&[wrong]).err().unwrap().contains(wrong.0));
        }
    }

    #[test]
    fn devices_differ_in_identity_only() {
        let devices = DeviceInfo::all(&settings(&[("DEVICES", "2")]).unwrap());
        assert_ne!(devices[0].uuid(), devices[1].uuid());
        assert_ne!(devices[0].pci_bus_id(), devices[1].pci_bus_id());
        assert_eq!(devices[0].arch, devices[1].arch);
    }
}
