//! News of a sweep for whoever waits for it.

use warpgauge_report::{SweepPoint, SweepStarted};

/// News of a sweep on its way.
#[derive(Debug, Clone)]
pub enum SweepEvent {
    /// The sweep is valid and admitted.
    Started(SweepStarted),
    /// A point is done. Points come in order.
    Point(Box<SweepPoint>),
}

/// Who is told. Must not block.
pub type SweepEvents = Box<dyn Fn(SweepEvent) + Send + Sync>;
