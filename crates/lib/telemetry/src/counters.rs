//! What is told apart, and counters of it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The kinds that a label may name.
pub trait LabelKind: Copy + 'static {
    /// All of them; a kind's place in it is its index.
    const ALL: &'static [Self];

    /// As a label has it.
    fn name(self) -> &'static str;

    /// Its place in [`LabelKind::ALL`].
    fn index(self) -> usize;
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl LabelKind for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

named! {
    /// Stages of an evaluation.
    Stage {
        /// Waiting for a device.
        Queue = "queue",
        /// Compiling, or finding the image.
        Compile = "compile",
        /// In the worker: buffers, launches, copies and checks.
        Worker = "worker",
        /// Part of it: warm-up and timed launches.
        Measure = "measure",
        /// Part of it: checking outputs.
        Validate = "validate",
        /// Device metrics and timelines.
        Profile = "profile",
        /// Whole jobs, from their acceptance to their end.
        Total = "total",
    }
}

named! {
    /// What came of an evaluation.
    EvaluationOutcome {
        /// Right.
        Correct = "correct",
        /// Ran, and there was nothing to check against.
        NotChecked = "not_checked",
        /// Passed, as a useless kernel would.
        Weak = "weak",
        /// Wrong.
        Wrong = "wrong",
        /// Does not compile.
        NotCompiled = "not_compiled",
        /// Crashed, hung or took too much, by its own fault.
        KernelFailed = "kernel_failed",
        /// Did not end, and not by the kernel's fault.
        Error = "error",
    }
}

named! {
    /// Where an image came from.
    CacheResult {
        /// Memory.
        Memory = "memory",
        /// Disk.
        Disk = "disk",
        /// A compilation that another request had under way.
        Shared = "shared",
        /// Nowhere: it was compiled.
        Miss = "miss",
        /// The request, which brought it.
        Brought = "brought",
        /// Nowhere: there is none.
        Failed = "failed",
    }
}

named! {
    /// Why a request was not served.
    Reject {
        /// The queue for devices is full.
        QueueFull = "queue_full",
        /// The caller has as many jobs as it may.
        Quota = "quota_exceeded",
        /// As many large bodies as there is memory for.
        LargeBodies = "too_many_large_bodies",
        /// As many watchers of events as there may be.
        Watchers = "too_many_watchers",
        /// The body is too large.
        BodyTooLarge = "body_too_large",
        /// No key, or a wrong one.
        Unauthorized = "unauthorized",
        /// A key that may not.
        Forbidden = "forbidden",
        /// Not a valid request.
        Invalid = "invalid",
        /// The server goes down.
        ShuttingDown = "shutting_down",
        /// The machine lacks what it takes.
        Unavailable = "unavailable",
        /// A fault of the server.
        Internal = "internal",
    }
}

named! {
    /// How jobs end.
    EndState {
        /// With a report.
        Completed = "completed",
        /// Without.
        Failed = "failed",
        /// Somebody did not want it any more.
        Cancelled = "cancelled",
        /// At its deadline.
        TimedOut = "timed_out",
    }
}

named! {
    /// What came of an attempt to deliver a webhook.
    DeliveryResult {
        /// Taken.
        Delivered = "delivered",
        /// Not taken; tried again later.
        Retried = "retried",
        /// Not taken, for the last time.
        GivenUp = "given_up",
    }
}

/// A counter for each of a kind.
#[derive(Debug)]
pub(super) struct Counters<K: LabelKind> {
    each: Box<[Counter]>,
    kinds: std::marker::PhantomData<fn() -> K>,
}

impl<K: LabelKind> Default for Counters<K> {
    fn default() -> Self {
        let each = K::ALL.iter().map(|_| Counter::default()).collect();
        Self { each, kinds: std::marker::PhantomData }
    }
}

impl<K: LabelKind> Counters<K> {
    pub(super) fn add(&self, kind: K) {
        self.each[kind.index()].add();
    }

    pub(super) fn get(&self, kind: K) -> u64 {
        self.each[kind.index()].get()
    }

    pub(super) fn all(&self) -> Vec<(&'static str, u64)> {
        K::ALL.iter().map(|kind| (kind.name(), self.get(*kind))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: LabelKind + PartialEq + std::fmt::Debug>() {
        for (place, kind) in K::ALL.iter().enumerate() {
            assert_eq!(kind.index(), place, "{kind:?}");
            let same = K::ALL.iter().filter(|other| other.name() == kind.name());
            assert_eq!(same.count(), 1, "{kind:?}");
        }
        let counters = Counters::<K>::default();
        counters.add(K::ALL[1]);
        assert_eq!(counters.all()[1], (K::ALL[1].name(), 1));
        assert_eq!(counters.all().iter().map(|(_, count)| count).sum::<u64>(), 1);
    }

    #[test]
    fn every_kind_has_a_place_and_a_name_of_its_own() {
        check::<Stage>();
        check::<EvaluationOutcome>();
        check::<CacheResult>();
        check::<Reject>();
        check::<EndState>();
        check::<DeliveryResult>();
    }
}
