//! The queue of requests for a device lease: bounded, and fair between owners.
//!
//! A waiter specifies requirements, not a device. When a device is free, [`WaitQueue`] considers
//! the waiters whose requirements the device meets. It prefers the owner that holds the fewest
//! devices, then the owner that has used the least device time, then the waiter that arrived first.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use warpgauge_model::{DeviceInfo, DeviceKind, Requirements, Target};
use warpgauge_turns::{Owner, OwnerAccounts};

/// Requirements of a lease. By default any device meets them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseNeeds {
    /// Ordinal of the required device.
    pub device: Option<u32>,
    /// Required kind of device.
    pub kind: Option<DeviceKind>,
    /// Target of the images that the device must run.
    pub target: Option<Target>,
    /// Minimum compute capability of the device.
    pub min_compute_capability: Option<(u32, u32)>,
    /// Minimum memory of the device, bytes.
    pub min_memory_bytes: u64,
    /// Requirements of the order for which the device is leased.
    pub order: Requirements,
    /// Owner that the lease is charged to.
    pub owner: Owner,
}

impl LeaseNeeds {
    /// Returns whether a device meets the requirements.
    pub fn is_met_by(&self, device: &DeviceInfo) -> bool {
        self.device.is_none_or(|ordinal| ordinal == device.ordinal)
            && self.kind.is_none_or(|kind| kind == device.kind)
            && self.target.is_none_or(|target| target == device.target)
            && self.min_compute_capability.is_none_or(|min| device.target.compute_capability >= min)
            && device.memory_bytes >= self.min_memory_bytes
            && self.order.is_met_by(&device.offer())
    }
}

/// Lists the requirements in words: `device 1, compute capability 9.0 or higher`.
impl fmt::Display for LeaseNeeds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target.map(|target| target.compute_capability);
        let needs = [
            self.device.map(|ordinal| format!("device {ordinal}")),
            self.kind.map(|kind| match kind {
                DeviceKind::Cuda => "a GPU".to_owned(),
                DeviceKind::Emulator => "the emulated device".to_owned(),
            }),
            target.map(|(major, minor)| {
                format!("the device that images of sm_{major}{minor} are for")
            }),
            self.min_compute_capability
                .map(|(major, minor)| format!("compute capability {major}.{minor} or higher")),
            (self.min_memory_bytes > 0).then(|| {
                format!("at least {} MiB of memory", self.min_memory_bytes.div_ceil(1 << 20))
            }),
            (!self.order.is_empty()).then(|| self.order.describe_device()),
        ];
        out.write_str(&needs.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Waiters in order of arrival. Each has a ticket, through which it receives its lease.
#[derive(Debug)]
pub struct WaitQueue<T> {
    waiters: VecDeque<Waiter<T>>,
    capacity: usize,
    accounts: OwnerAccounts,
}

/// A request that waits for a lease.
#[derive(Debug)]
pub struct Waiter<T> {
    pub need: LeaseNeeds,
    /// The channel, or other means, through which the waiter receives its lease.
    pub ticket: T,
    /// Time at which the request arrived.
    pub since: Instant,
}

impl<T> WaitQueue<T> {
    /// Returns an empty queue for at most `capacity` waiters.
    pub fn new(capacity: usize) -> Self {
        Self { waiters: VecDeque::new(), capacity, accounts: OwnerAccounts::default() }
    }

    /// Returns the number of waiters.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Appends a waiter. The queue may exceed its capacity by one, until the caller has tried to
    /// serve the waiter at once: see [`WaitQueue::pop_surplus`].
    pub fn push(&mut self, need: LeaseNeeds, ticket: T, now: Instant) {
        self.accounts.wait(need.owner, now);
        self.waiters.push_back(Waiter { need, ticket, since: now });
    }

    /// Removes the last waiter if the queue exceeds its capacity.
    pub fn pop_surplus(&mut self) -> Option<Waiter<T>> {
        let surplus =
            if self.waiters.len() > self.capacity { self.waiters.pop_back() } else { None };
        surplus.inspect(|waiter| self.accounts.leave(waiter.need.owner))
    }

    /// Removes and returns the next waiter whose requirements `device` meets. From then on, the
    /// waiter's owner holds the device, until [`WaitQueue::given_back`].
    pub fn take_for(&mut self, device: &DeviceInfo, now: Instant) -> Option<Waiter<T>> {
        self.take_where(now, |_, waiter| waiter.need.is_met_by(device))
    }

    /// Like [`WaitQueue::take_for`], but considers only waiters that arrived at least `after` ago
    /// and whose owners hold no device.
    pub fn take_beside(
        &mut self,
        device: &DeviceInfo,
        now: Instant,
        after: Duration,
    ) -> Option<Waiter<T>> {
        self.take_where(now, |accounts, waiter| {
            waiter.need.is_met_by(device)
                && accounts.held(waiter.need.owner) == 0
                && now.saturating_duration_since(waiter.since) >= after
        })
    }

    /// Returns whether `device` meets the requirements of a waiter whose owner holds no device.
    pub fn waits_beside(&self, device: &DeviceInfo) -> bool {
        let mut waiters = self.waiters.iter().filter(|waiter| waiter.need.is_met_by(device));
        waiters.any(|waiter| self.accounts.held(waiter.need.owner) == 0)
    }

    fn take_where(
        &mut self,
        now: Instant,
        is_meant: impl Fn(&OwnerAccounts, &Waiter<T>) -> bool,
    ) -> Option<Waiter<T>> {
        let accounts = &self.accounts;
        let waiters = self.waiters.iter().enumerate().filter(|(_, one)| is_meant(accounts, one));
        // `min_by_key` returns the first of equal waiters.
        let (index, _) = waiters.min_by_key(|(_, one)| self.accounts.rank(one.need.owner, now))?;
        let waiter = self.waiters.remove(index)?;
        self.accounts.begin(waiter.need.owner, 1, now);
        self.accounts.leave(waiter.need.owner);
        Some(waiter)
    }

    /// Records that an owner has returned a device.
    pub fn given_back(&mut self, owner: Owner, now: Instant) {
        self.accounts.end(owner, 1, now);
    }

    /// Removes every waiter for which `leaves` is true, and returns them.
    pub fn remove_where(&mut self, mut leaves: impl FnMut(&Waiter<T>) -> bool) -> Vec<Waiter<T>> {
        let (gone, stay): (Vec<_>, Vec<_>) =
            self.waiters.drain(..).partition(|waiter| leaves(waiter));
        self.waiters = stay.into();
        gone.iter().for_each(|waiter| self.accounts.leave(waiter.need.owner));
        gone
    }
}

/// Returns the delay before a retry: the time that the waiters ahead are expected to take, limited
/// to between a second and a minute.
pub fn retry_after(ahead: usize, devices: usize, mean_job: Duration) -> Duration {
    let rounds = ahead.div_ceil(devices.max(1)).max(1) as u32;
    mean_job.saturating_mul(rounds).clamp(Duration::from_secs(1), Duration::from_secs(60))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use warpgauge_model::{SmLimits, Target};

    /// Returns a device with an ordinal and 1000 bytes of memory.
    pub(crate) fn device(ordinal: u32) -> DeviceInfo {
        DeviceInfo {
            ordinal,
            kind: DeviceKind::Emulator,
            name: "test".to_owned(),
            uuid: format!("GPU-{ordinal}"),
            target: Target { compute_capability: (9, 0), driver_version: 13000, emulated: true },
            multiprocessors: 1,
            memory_bytes: 1000,
            l2_bytes: 0,
            clock_khz: 0,
            memory_clock_khz: 0,
            memory_bus_bits: 0,
            max_shared_optin_bytes: 0,
            pci_bus_id: String::new(),
            sm: SmLimits::default(),
            unmonitored: None,
        }
    }

    #[test]
    fn requirements_are_listed_in_words() {
        let order = Requirements { gpu_model: Some("H200".to_owned()), ..Requirements::default() };
        let need = LeaseNeeds { min_memory_bytes: 3 << 20, order, ..on(1) };
        let words = "device 1, at least 3 MiB of memory, a device of the model `H200`";
        assert_eq!(need.to_string(), words);
        assert_eq!(LeaseNeeds::default().to_string(), "");
    }

    fn on(ordinal: u32) -> LeaseNeeds {
        LeaseNeeds { device: Some(ordinal), ..LeaseNeeds::default() }
    }

    #[test]
    fn a_device_goes_to_the_owner_that_had_least() {
        let of = |name: &str| LeaseNeeds { owner: Owner::named(name), ..LeaseNeeds::default() };
        let mut queue = WaitQueue::new(8);
        let now = Instant::now();
        for (name, ticket) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)] {
            queue.push(of(name), ticket, now);
        }
        let second = Duration::from_secs(1);
        let mut order = Vec::new();
        for turn in 0..5 {
            let waiter = queue.take_for(&device(0), now + turn * second).unwrap();
            order.push(waiter.ticket);
            queue.given_back(waiter.need.owner, now + (turn + 1) * second);
        }
        assert_eq!(order, [1, 4, 2, 5, 3]);
        // An owner that holds a device comes after an owner that holds none.
        for (name, ticket) in [("a", 6), ("a", 7), ("b", 8)] {
            queue.push(of(name), ticket, now);
        }
        let mut next = |ordinal| queue.take_for(&device(ordinal), now + 6 * second).unwrap().ticket;
        assert_eq!([next(0), next(1), next(2)], [8, 6, 7]);
    }

    #[test]
    fn beside_a_job_runs_an_owner_that_has_none_after_a_while() {
        let of = |name: &str| LeaseNeeds { owner: Owner::named(name), ..LeaseNeeds::default() };
        let (mut queue, now, second) = (WaitQueue::new(8), Instant::now(), Duration::from_secs(1));
        queue.push(of("a"), 1, now);
        assert_eq!(queue.take_for(&device(0), now).unwrap().ticket, 1);
        queue.push(of("a"), 2, now);
        assert!(!queue.waits_beside(&device(0)), "it has the device");
        queue.push(of("b"), 3, now + second);
        assert!(queue.waits_beside(&device(0)));
        let mut beside = |at| queue.take_beside(&device(0), at, second).map(|waiter| waiter.ticket);
        assert_eq!(beside(now + second), None, "it has only just come");
        assert_eq!(beside(now + 2 * second), Some(3));
        assert_eq!(beside(now + 9 * second), None, "both owners have one");
    }

    #[test]
    fn first_come_first_served_on_every_device() {
        let mut queue = WaitQueue::new(8);
        let now = Instant::now();
        for (need, ticket) in
            [(on(1), 'a'), (LeaseNeeds::default(), 'b'), (on(0), 'c'), (on(1), 'd')]
        {
            queue.push(need, ticket, now);
        }
        let mut next = |ordinal| queue.take_for(&device(ordinal), now).map(|waiter| waiter.ticket);
        assert_eq!(next(0), Some('b'));
        assert_eq!(next(1), Some('a'));
        assert_eq!(next(0), Some('c'));
        assert_eq!(next(0), None);
        assert_eq!(next(1), Some('d'));
    }

    #[test]
    fn what_is_too_much_comes_back_and_the_rest_stays() {
        let mut queue = WaitQueue::new(1);
        queue.push(LeaseNeeds::default(), 1, Instant::now());
        assert!(queue.pop_surplus().is_none());
        queue.push(LeaseNeeds::default(), 2, Instant::now());
        assert_eq!(queue.pop_surplus().map(|waiter| waiter.ticket), Some(2));
        assert_eq!(queue.remove_where(|waiter| waiter.ticket == 1).len(), 1);
        assert!(queue.is_empty());
    }

    #[test]
    fn needs_are_checked() {
        let met = |need: LeaseNeeds| need.is_met_by(&device(0));
        assert!(met(LeaseNeeds { min_compute_capability: Some((9, 0)), ..LeaseNeeds::default() }));
        assert!(!met(LeaseNeeds {
            min_compute_capability: Some((10, 0)),
            ..LeaseNeeds::default()
        }));
        assert!(!met(LeaseNeeds { min_memory_bytes: 1001, ..LeaseNeeds::default() }));
        assert!(!met(LeaseNeeds { kind: Some(DeviceKind::Cuda), ..LeaseNeeds::default() }));
    }

    #[test]
    fn retry_is_bounded() {
        let second = Duration::from_secs(1);
        assert_eq!(retry_after(0, 1, Duration::ZERO), second);
        assert_eq!(retry_after(9, 2, second * 2), second * 10);
        assert_eq!(retry_after(1000, 1, second), second * 60);
    }
}
