//! The emulated devices: their number, kind and attributes.
//!
//! All devices are alike. Their attributes are those of a small GPU of the chosen compute
//! capability. Only the memory size depends on the host, so that occupancy and counts are the same
//! everywhere. Clocks and bus width are nominal: the emulator does not model speed.

use std::ffi::c_uint;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use super::registry::fresh;
use crate::driver::c::abi::Handle;

/// Number of streaming multiprocessors of every emulated device.
pub const SM_COUNT: u32 = 16;
/// Maximum number of devices of a process.
const MAX_DEVICES: u32 = 16;
/// Maximum memory of an emulated device if the environment sets no size, bytes.
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
    /// Shared memory that the system reserves per block, bytes.
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

/// The primary context of a device: its use count and flags.
#[derive(Default)]
pub struct Primary {
    pub retained: u32,
    pub flags: c_uint,
}

/// An emulated device.
pub struct DeviceInfo {
    pub ordinal: u32,
    pub arch: Arch,
    pub total_bytes: u64,
    pub default_pool: Handle,
    /// The pool that `cuMemAllocAsync` allocates from.
    pub pool: AtomicUsize,
    /// Handle of the primary context; it stays the same after a reset.
    pub primary_handle: Handle,
    pub primary: Mutex<Primary>,
}

/// Number and kind of devices, from the environment.
pub struct Settings {
    devices: u32,
    arch: Arch,
    bytes: u64,
}

impl Settings {
    /// Reads the environment variables `WARPGAUGE_EMULATOR_DEVICES`, `WARPGAUGE_EMULATOR_CC` and
    /// `WARPGAUGE_EMULATOR_MEMORY_MB`. Returns a message if one of them is invalid.
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

/// Returns the memory of the host in bytes, or twice [`MAX_MEMORY`] if it is unknown.
fn host_memory() -> u64 {
    let kilobytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|table| {
        let line = table.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    kilobytes.map_or(2 * MAX_MEMORY, |kilobytes| kilobytes * 1024)
}

impl DeviceInfo {
    /// Creates the devices according to the settings.
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

    /// Returns the UUID of the device. It depends only on the ordinal, not on the host or the
    /// process.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = *b"warpgauge-emu\0\0\0";
        uuid[15] = self.ordinal as u8;
        uuid
    }

    pub fn pci_bus_id(&self) -> String {
        format!("0000:{:02X}:00.0", self.ordinal + 1)
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
