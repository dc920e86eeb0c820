//! The kinds of events that are counted, and their counters. The main trait is [`LabelKind`].

use std::sync::atomic::{AtomicU64, Ordering};

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

/// The kinds of events that a label can name.
pub trait LabelKind: Copy + 'static {
    /// All kinds. The index of a kind is its position here.
    const ALL: &'static [Self];

    /// Returns the text of the label.
    fn name(self) -> &'static str;

    /// Returns the position of this kind in [`LabelKind::ALL`].
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
    /// The stages of an evaluation.
    Stage {
        /// The job waits for a device.
        Queue = "queue",
        /// The service compiles the kernel, or finds its image in a cache.
        Compile = "compile",
        /// The worker prepares buffers, launches, copies and checks.
        Worker = "worker",
        /// The worker warms up and times launches. This is a part of the worker's time.
        Measure = "measure",
        /// The worker checks outputs. This is a part of the worker's time.
        Validate = "validate",
        /// The service collects device metrics and timelines.
        Profile = "profile",
        /// The whole job, from acceptance to its end.
        Total = "total",
    }
}

named! {
    /// The outcome of an evaluation.
    EvaluationOutcome {
        /// The outputs are correct.
        Correct = "correct",
        /// The kernel ran, but nothing was checked.
        NotChecked = "not_checked",
        /// The kernel passed, but a kernel that does nothing useful would also pass.
        Weak = "weak",
        /// An output is incorrect.
        Wrong = "wrong",
        /// The kernel does not compile.
        NotCompiled = "not_compiled",
        /// The kernel crashed, hung or exceeded a limit through its own fault.
        KernelFailed = "kernel_failed",
        /// The evaluation did not finish, through no fault of the kernel.
        Error = "error",
    }
}

named! {
    /// How a request obtained its compiled image.
    CacheResult {
        /// The image was in the memory cache.
        Memory = "memory",
        /// The image was in the disk cache.
        Disk = "disk",
        /// Another request was already compiling the image.
        Shared = "shared",
        /// The image was compiled for this request.
        Miss = "miss",
        /// The request itself contained the image.
        Brought = "brought",
        /// The compilation failed, so there is no image.
        Failed = "failed",
    }
}

named! {
    /// The reason for refusing a request.
    Reject {
        /// The queue for devices is full.
        QueueFull = "queue_full",
        /// The caller already has the maximum number of jobs.
        Quota = "quota_exceeded",
        /// There are too many large bodies for the available memory.
        LargeBodies = "too_many_large_bodies",
        /// There are too many event streams.
        Watchers = "too_many_watchers",
        /// The body of the request is too large.
        BodyTooLarge = "body_too_large",
        /// The key is missing or invalid.
        Unauthorized = "unauthorized",
        /// The key does not permit the request.
        Forbidden = "forbidden",
        /// The request is invalid.
        Invalid = "invalid",
        /// The server is shutting down.
        ShuttingDown = "shutting_down",
        /// The machine lacks a resource that the request needs.
        Unavailable = "unavailable",
        /// The server has an internal error.
        Internal = "internal",
    }
}

named! {
    /// The state in which a job ended.
    EndState {
        /// The job ended with a report.
        Completed = "completed",
        /// The job ended without a report.
        Failed = "failed",
        /// The job was cancelled.
        Cancelled = "cancelled",
        /// The job reached its deadline.
        TimedOut = "timed_out",
    }
}

named! {
    /// The result of an attempt to deliver a webhook.
    DeliveryResult {
        /// The receiver of the webhook accepted it.
        Delivered = "delivered",
        /// The attempt failed and will be repeated.
        Retried = "retried",
        /// The last attempt to deliver the webhook failed.
        GivenUp = "given_up",
    }
}

/// One counter for each kind.
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
