//! Activities of the GPU one by one: the first of them, and the times of all. The main type is
//! [`Trace`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::rows::{NsysEvent, TraceRow};
use super::timeline::{BusyTimes, Timeline};

/// Maximum number of activities of a trace that are listed; times are of all of them.
pub const MAX_TRACE: usize = 50_000;
/// Maximum number of bytes of their names.
const MAX_NAMES: usize = 8 << 20;
/// Maximum number of devices whose busy and idle time is given.
const MAX_DEVICES: usize = 1_000;
/// Maximum number of further devices that are counted.
const MAX_COUNTED: usize = 100_000;

/// A name that many rows share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedName(Arc<str>);

impl Default for SharedName {
    fn default() -> Self {
        Self(Arc::from(""))
    }
}

impl Deref for SharedName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for SharedName {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Debug for SharedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl JsonSchema for SharedName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SharedName".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        str::json_schema(generator)
    }
}

impl Serialize for SharedName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Activities of the GPU so far.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) events: Vec<NsysEvent>,
    /// Activities that are not in `events`.
    pub(super) left_out: u64,
    /// Names of the events, each once.
    names: BTreeSet<Arc<str>>,
    /// Bytes of these names.
    bytes: usize,
    devices: BTreeMap<String, Device>,
    /// Devices beyond these, by their hashes.
    others: HashSet<u64>,
    hasher: RandomState,
    /// Whether activities are kept to sort them.
    keep: bool,
}

#[derive(Debug, Default)]
struct Device {
    times: BusyTimes,
    /// Start and end of each activity. The last bit of the end marks a kernel, since three million
    /// activities must fit into memory beside their file.
    kept: Vec<(f64, f64)>,
}

impl Trace {
    /// Begins a trace whose activities are not in the order of their starts.
    pub(super) fn unsorted() -> Self {
        Self { keep: true, ..Self::default() }
    }

    /// Adds an activity to the times of its device, and to the events. Beyond `MAX_TRACE` events or
    /// `MAX_NAMES` bytes of names, an event is only counted.
    pub(super) fn add(&mut self, row: &TraceRow<'_>) {
        self.add_time(row.device, row.start, row.duration, row.grid.is_some());
        let room = self.events.len() < MAX_TRACE && self.bytes < MAX_NAMES;
        match room {
            true => {
                let (name, device) = (self.name(&row.name), self.name(row.device));
                self.events.push(row.event(name, device));
            }
            false => self.left_out += 1,
        }
    }

    fn add_time(&mut self, name: &str, start: f64, duration: f64, kernel: bool) {
        if !self.devices.contains_key(name) {
            if self.devices.len() == MAX_DEVICES {
                if self.others.len() < MAX_COUNTED {
                    self.others.insert(self.hasher.hash_one(name));
                }
                return;
            }
            self.devices.insert(name.to_owned(), Device::default());
        }
        let Some(device) = self.devices.get_mut(name) else { return };
        if self.keep {
            let end = (start + duration.max(0.0)).to_bits() & !1 | u64::from(kernel);
            device.kept.push((start, f64::from_bits(end)));
        } else {
            device.times.add(start, duration, kernel);
        }
    }

    fn name(&mut self, name: &str) -> SharedName {
        if let Some(known) = self.names.get(name) {
            return SharedName(Arc::clone(known));
        }
        let name: Arc<str> = Arc::from(name);
        self.bytes += name.len();
        self.names.insert(Arc::clone(&name));
        SharedName(name)
    }

    /// Returns whether the activities of a device are not in the order of their starts.
    pub(super) fn is_unsorted(&self) -> bool {
        self.devices.values().any(|device| device.times.is_unsorted())
    }

    /// Returns a note if not all devices have a timeline.
    pub(super) fn devices(&self) -> Option<String> {
        let count = self.devices.len() + self.others.len();
        let more = if self.others.len() == MAX_COUNTED { "more than " } else { "" };
        (!self.others.is_empty()).then(|| {
            format!(
                "the trace has {more}{count} devices: busy and idle time is that of the first \
                 {MAX_DEVICES}"
            )
        })
    }

    /// Returns the timelines of the devices.
    pub(super) fn timelines(&mut self) -> Vec<(String, Timeline)> {
        let devices = std::mem::take(&mut self.devices).into_iter();
        let of = |(name, mut device): (String, Device)| {
            if !self.keep {
                return Some((name, device.times.timeline()?));
            }
            device.kept.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let mut times = BusyTimes::default();
            for (start, end) in device.kept {
                times.add(start, end - start, end.to_bits() & 1 == 1);
            }
            Some((name, times.timeline()?))
        };
        devices.filter_map(of).collect()
    }
}
