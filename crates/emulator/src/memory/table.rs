//! Regions of memory, and the immutable list in which a launch looks addresses up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::AllocKind;
use super::mapping::Mapping;
use super::shadow::Shadow;
use super::texture::TexelObject;

/// One allocation, with the data that accesses need.
pub(crate) struct Region {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: AllocKind,
    /// Memory of the region. `None` if the caller owns the memory.
    pub(super) backing: Option<Mapping>,
    /// Record of the written bytes, if they are tracked.
    pub(crate) shadow: Option<Shadow>,
    /// Whether the memory belongs to another process.
    pub(super) foreign: bool,
    read_only: AtomicBool,
}

impl Region {
    pub(super) fn new(
        base: u64,
        bytes: u64,
        kind: AllocKind,
        backing: Option<Mapping>,
        shadow: Option<Shadow>,
    ) -> Self {
        let read_only = AtomicBool::new(false);
        Self { base, bytes, kind, backing, shadow, foreign: false, read_only }
    }

    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes
    }

    pub(crate) fn read_only(&self) -> bool {
        self.read_only.load(Relaxed)
    }

    pub(super) fn set_read_only(&self, on: bool) {
        self.read_only.store(on, Relaxed);
    }
}

/// All allocations at one point in time. They stay mapped while the table exists.
pub(crate) struct Table {
    /// Allocations, sorted by address. They do not overlap.
    pub(crate) regions: Vec<Arc<Region>>,
    /// Recently freed ranges, from oldest to newest.
    pub(crate) freed: Vec<Freed>,
    /// Textures and surfaces by their handles.
    pub(crate) objects: Arc<HashMap<u64, TexelObject>>,
}

/// An address range of a former allocation.
pub(crate) struct Freed {
    base: u64,
    bytes: u64,
    /// Whether the memory belonged to another process, which may still use it.
    foreign: bool,
}

impl Freed {
    pub(super) fn of(region: &Region) -> Self {
        Self { base: region.base, bytes: region.bytes, foreign: region.foreign }
    }
}

impl Table {
    /// Returns the region that contains `va`.
    pub(crate) fn find(&self, va: u64) -> Option<&Arc<Region>> {
        let after = self.regions.partition_point(|r| r.base <= va);
        let region = &self.regions[after.checked_sub(1)?];
        (va < region.end()).then_some(region)
    }

    /// Returns the freed range that contains `va`.
    pub(crate) fn freed(&self, va: u64) -> Option<&Freed> {
        self.freed.iter().rev().find(|freed| va.wrapping_sub(freed.base) < freed.bytes)
    }

    /// Describes the position of `va` relative to the nearest allocation, for a message.
    pub(crate) fn describe(&self, va: u64) -> String {
        if let Some(Freed { base, bytes, foreign }) = self.freed(va) {
            let offset = va - base;
            if *foreign {
                return format!(
                    "{offset} bytes into a closed {bytes}-byte allocation of another process"
                );
            }
            return format!("{offset} bytes into a freed {bytes}-byte allocation");
        }
        let after = self.regions.partition_point(|r| r.base <= va);
        let below = after.checked_sub(1).map(|i| &self.regions[i]);
        let above = self.regions.get(after);
        let gap_below = below.map(|r| va.saturating_sub(r.end()));
        let gap_above = above.map(|r| r.base - va);
        match (below, above) {
            (Some(r), _) if va < r.end() => {
                format!("{} bytes into a {}-byte allocation", va - r.base, r.bytes)
            }
            (Some(r), _) if gap_above.is_none_or(|g| gap_below <= Some(g)) => {
                format!("{} bytes after a {}-byte allocation", va - r.end(), r.bytes)
            }
            (_, Some(r)) => format!("{} bytes before a {}-byte allocation", r.base - va, r.bytes),
            _ => "and nothing is allocated".into(),
        }
    }
}
