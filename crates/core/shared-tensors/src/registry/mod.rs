//! Registry of the owners, lifetimes and leases of tensors. The main type is [`TensorRegistry`].
//!
//! The registry has no side effects: it returns the memory that the caller must free, and the
//! caller passes the current time.

mod types;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use uuid::Uuid;

pub use types::{
    DEVICE_PAGE, FreedMemory, GoneReason, HeldTensor, NewTensor, Quota, RegistryLimits,
    TensorLocation, TensorLookupError,
};

/// Number of removed tensors that the registry remembers, in order to report the reason.
const REMEMBERED: usize = 4096;

/// Maximum number of leases of one tensor.
const MAX_LEASES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Filling,
    Ready,
    /// The tensor is deleted: its id is invalid, but the memory stays allocated until all leases
    /// end.
    Deleted,
}

struct Entry {
    tensor: NewTensor,
    occupied: u64,
    generation: u64,
    phase: Phase,
    created_at: SystemTime,
    last_used: Instant,
    leases: usize,
}

struct Lease {
    tensor: Uuid,
    owner: String,
    /// Time at which the lease expires; `None` if it lasts until it is released.
    ends: Option<Instant>,
}

impl Lease {
    fn is_over(&self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| ends < now)
    }
}

#[derive(Default)]
struct State {
    tensors: HashMap<Uuid, Entry>,
    leases: HashMap<Uuid, Lease>,
    gone: VecDeque<(Uuid, String, GoneReason)>,
    /// Generation of the last process that ended, for each place.
    ended: HashMap<TensorLocation, u64>,
}

/// Owners, lifetimes and leases of all tensors.
pub struct TensorRegistry {
    limits: RegistryLimits,
    state: Mutex<State>,
}

impl TensorRegistry {
    /// Creates an empty registry.
    pub fn new(limits: RegistryLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    pub fn limits(&self) -> &RegistryLimits {
        &self.limits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves space for a tensor, which stays invisible until [`Self::commit`]. The second value
    /// is the memory of evicted and expired tensors, which the caller must free even if there is
    /// not enough space.
    pub fn reserve(&self, new: NewTensor, now: Instant) -> (Result<Uuid, Quota>, Vec<FreedMemory>) {
        let mut state = self.state();
        let mut freed = state.sweep(&self.limits, now);
        let occupied = new.place.occupied(new.bytes);
        let mut room = state.room(&self.limits, &new.owner, occupied);
        while new.evict && room.is_err() && fits_alone(&self.limits, occupied) {
            let Some(victim) = state.least_recently_used(&new.owner) else { break };
            freed.extend(state.remove(victim, Some(GoneReason::Evicted)));
            room = state.room(&self.limits, &new.owner, occupied);
        }
        if let Err(quota) = room {
            return (Err(quota), freed);
        }
        // A random id cannot be guessed by other owners.
        let id = Uuid::new_v4();
        let entry = Entry {
            tensor: new,
            occupied,
            generation: 0,
            phase: Phase::Filling,
            created_at: SystemTime::now(),
            last_used: now,
            leases: 0,
        };
        state.tensors.insert(id, entry);
        (Ok(id), freed)
    }

    /// Marks a tensor as filled, in the holder process of this generation. Returns `None` if that
    /// process has ended in the meantime.
    pub fn commit(&self, id: Uuid, generation: u64, now: Instant) -> Option<HeldTensor> {
        let mut state = self.state();
        let entry = state.filled(id, generation)?;
        (entry.phase, entry.last_used) = (Phase::Ready, now);
        Some(entry.held(id, &self.limits, now))
    }

    /// Marks an internal copy as filled, and returns a lease of it. The copy cannot be found by its
    /// id, and its memory stays allocated until the lease is released.
    pub fn commit_unseen(
        &self,
        id: Uuid,
        generation: u64,
        now: Instant,
    ) -> Option<(Uuid, HeldTensor)> {
        let mut state = self.state();
        let entry = state.filled(id, generation)?;
        (entry.phase, entry.leases) = (Phase::Deleted, 1);
        let (held, owner) = (entry.held(id, &self.limits, now), entry.tensor.owner.clone());
        let lease = Uuid::new_v4();
        state.leases.insert(lease, Lease { tensor: id, owner, ends: None });
        Some((lease, held))
    }

    /// Cancels a reservation.
    pub fn cancel(&self, id: Uuid) {
        let mut state = self.state();
        if state.tensors.get(&id).is_some_and(|entry| entry.phase == Phase::Filling) {
            state.tensors.remove(&id);
        }
    }

    /// Returns a tensor of this owner.
    pub fn find(
        &self,
        id: Uuid,
        owner: &str,
        now: Instant,
    ) -> Result<HeldTensor, TensorLookupError> {
        let state = self.state();
        Ok(state.own(id, owner)?.held(id, &self.limits, now))
    }

    /// Returns a tensor of this owner and marks it as used now.
    pub fn used(
        &self,
        id: Uuid,
        owner: &str,
        now: Instant,
    ) -> Result<HeldTensor, TensorLookupError> {
        let mut state = self.state();
        state.own(id, owner)?;
        let entry = state.tensors.get_mut(&id).ok_or(TensorLookupError::Never)?;
        entry.last_used = now;
        Ok(entry.held(id, &self.limits, now))
    }

    /// Returns all tensors of this owner, oldest first. The second value is the number of bytes
    /// that the owner's tensors occupy, including deleted tensors with leases.
    pub fn list(&self, owner: &str, now: Instant) -> (Vec<HeldTensor>, u64) {
        let state = self.state();
        let own = || state.tensors.iter().filter(|(_, entry)| entry.tensor.owner == owner);
        let ready = own().filter(|(_, entry)| entry.phase == Phase::Ready);
        let mut all: Vec<HeldTensor> =
            ready.map(|(id, entry)| entry.held(*id, &self.limits, now)).collect();
        all.sort_by_key(|held| (held.created_at, held.id));
        (all, own().map(|(_, entry)| entry.occupied).sum())
    }

    /// Deletes a tensor and makes its id invalid. Returns the number of leases, and the memory to
    /// free if there are no leases.
    pub fn delete(
        &self,
        id: Uuid,
        owner: &str,
    ) -> Result<(u32, Option<FreedMemory>), TensorLookupError> {
        let mut state = self.state();
        let leases = state.own(id, owner)?.leases;
        Ok((leases as u32, state.remove(id, None)))
    }

    /// Creates a lease of a tensor.
    pub fn lease(
        &self,
        id: Uuid,
        owner: &str,
        now: Instant,
    ) -> Result<(Uuid, HeldTensor), TensorLookupError> {
        self.leased(id, owner, now, Some(now + self.limits.lease))
    }

    /// Creates a lease without expiry, for readers in this process. It lasts until it is released.
    pub fn pin(
        &self,
        id: Uuid,
        owner: &str,
        now: Instant,
    ) -> Result<(Uuid, HeldTensor), TensorLookupError> {
        self.leased(id, owner, now, None)
    }

    fn leased(
        &self,
        id: Uuid,
        owner: &str,
        now: Instant,
        ends: Option<Instant>,
    ) -> Result<(Uuid, HeldTensor), TensorLookupError> {
        let mut state = self.state();
        if state.own(id, owner)?.leases >= MAX_LEASES {
            return Err(TensorLookupError::TooManyLeases);
        }
        let lease = Uuid::new_v4();
        state.leases.insert(lease, Lease { tensor: id, owner: owner.to_owned(), ends });
        let entry = state.tensors.get_mut(&id).ok_or(TensorLookupError::Never)?;
        entry.leases += 1;
        entry.last_used = now;
        Ok((lease, entry.held(id, &self.limits, now)))
    }

    /// Renews a lease for its full duration from now, and returns the id of its tensor.
    pub fn renew(&self, lease: Uuid, owner: &str, now: Instant) -> Option<Uuid> {
        let mut state = self.state();
        let found = state.leases.get_mut(&lease).filter(|found| found.owner == owner)?;
        if found.is_over(now) {
            return None;
        }
        found.ends = Some(now + self.limits.lease);
        let id = found.tensor;
        if let Some(entry) = state.tensors.get_mut(&id) {
            entry.last_used = now;
        }
        Some(id)
    }

    /// Releases a lease. Returns the id of its tensor, and the memory to free if the tensor was
    /// deleted and has no other lease.
    pub fn release(&self, lease: Uuid, owner: &str) -> Option<(Uuid, Option<FreedMemory>)> {
        let mut state = self.state();
        let own = state.leases.get(&lease).is_some_and(|found| found.owner == owner);
        if !own {
            return None;
        }
        let id = state.leases.remove(&lease)?.tensor;
        Some((id, state.returned(id)))
    }

    /// Removes all tensors of a holder process that has ended, and returns their number.
    pub fn lose(&self, place: TensorLocation, generation: u64) -> usize {
        let mut state = self.state();
        let ended = state.ended.entry(place).or_default();
        *ended = generation.max(*ended);
        let lost = |entry: &Entry| {
            entry.tensor.place == place
                && entry.generation == generation
                && entry.phase != Phase::Filling
        };
        let ids: Vec<Uuid> =
            state.tensors.iter().filter(|(_, entry)| lost(entry)).map(|(id, _)| *id).collect();
        for id in &ids {
            state.forget(*id, GoneReason::HolderDied);
        }
        ids.len()
    }

    /// Removes expired leases and tensors. Returns the memory to free.
    pub fn sweep(&self, now: Instant) -> Vec<FreedMemory> {
        self.state().sweep(&self.limits, now)
    }
}

fn fits_alone(limits: &RegistryLimits, occupied: u64) -> bool {
    [limits.max_bytes_per_owner, limits.max_bytes]
        .iter()
        .all(|most| *most == 0 || occupied <= *most)
}

impl Entry {
    fn held(&self, id: Uuid, limits: &RegistryLimits, now: Instant) -> HeldTensor {
        let ttl = self.tensor.ttl.or(limits.ttl);
        HeldTensor {
            id,
            tensor: self.tensor.clone(),
            generation: self.generation,
            created_at: self.created_at,
            expires_in: ttl.map(|ttl| (self.last_used + ttl).saturating_duration_since(now)),
            leases: self.leases as u32,
        }
    }

    fn freed(&self, id: Uuid) -> FreedMemory {
        FreedMemory { place: self.tensor.place, generation: self.generation, id }
    }
}

impl State {
    /// Returns a reservation with memory in the process of this generation, unless that process has
    /// ended in the meantime.
    fn filled(&mut self, id: Uuid, generation: u64) -> Option<&mut Entry> {
        let place = self.tensors.get(&id)?.tensor.place;
        if self.ended.get(&place).is_some_and(|ended| *ended >= generation) {
            self.tensors.remove(&id);
            return None;
        }
        let entry = self.tensors.get_mut(&id)?;
        entry.generation = generation;
        Some(entry)
    }

    fn own(&self, id: Uuid, owner: &str) -> Result<&Entry, TensorLookupError> {
        let found = self.tensors.get(&id);
        let own = |entry: &&Entry| entry.phase == Phase::Ready && entry.tensor.owner == owner;
        found.filter(own).ok_or_else(|| {
            let mut gone = self.gone.iter().rev();
            let why = gone.find(|(other, of, _)| *other == id && of == owner);
            why.map_or(TensorLookupError::Never, |(_, _, why)| TensorLookupError::Gone(*why))
        })
    }

    /// Checks that `occupied` additional bytes and one additional tensor are within the limits.
    fn room(&self, limits: &RegistryLimits, owner: &str, occupied: u64) -> Result<(), Quota> {
        let own = || self.tensors.values().filter(|entry| entry.tensor.owner == owner);
        let count = own().count() as u64;
        if limits.max_count_per_owner != 0 && count >= limits.max_count_per_owner {
            return Err(Quota(format!(
                "{count} tensors are held for this key, which is the maximum \
                 (tensors.max_count_per_key)"
            )));
        }
        let sum = |entries: &mut dyn Iterator<Item = &Entry>| -> u64 {
            entries.map(|entry| entry.occupied).fold(0, u64::saturating_add)
        };
        let bounds = [
            (limits.max_bytes_per_owner, sum(&mut own()), "this key's", "max_bytes_per_key"),
            (limits.max_bytes, sum(&mut self.tensors.values()), "all", "max_bytes"),
        ];
        for (most, used, whose, setting) in bounds {
            if most != 0 && used.saturating_add(occupied) > most {
                return Err(Quota(format!(
                    "{whose} tensors occupy {used} of {most} bytes (tensors.{setting}), and this \
                     tensor would take {occupied} more"
                )));
            }
        }
        Ok(())
    }

    fn least_recently_used(&self, owner: &str) -> Option<Uuid> {
        let may_go = |entry: &Entry| {
            entry.tensor.owner == owner && entry.phase == Phase::Ready && entry.leases == 0
        };
        let own = self.tensors.iter().filter(|(_, entry)| may_go(entry));
        own.min_by_key(|(id, entry)| (entry.last_used, **id)).map(|(id, _)| *id)
    }

    /// Makes the id of a tensor invalid. Returns the memory to free if there are no leases.
    fn remove(&mut self, id: Uuid, why: Option<GoneReason>) -> Option<FreedMemory> {
        let entry = self.tensors.get_mut(&id)?;
        let freed = (entry.leases == 0).then(|| entry.freed(id));
        match (why, freed.is_some()) {
            (Some(why), true) => self.forget(id, why),
            (None, true) => drop(self.tensors.remove(&id)),
            (_, false) => entry.phase = Phase::Deleted,
        }
        freed
    }

    /// Removes a tensor and its leases. Remembers the reason unless the tensor was already deleted.
    fn forget(&mut self, id: Uuid, why: GoneReason) {
        let Some(entry) = self.tensors.remove(&id) else { return };
        self.leases.retain(|_, lease| lease.tensor != id);
        if entry.phase == Phase::Deleted {
            return;
        }
        if self.gone.len() == REMEMBERED {
            self.gone.pop_front();
        }
        self.gone.push_back((id, entry.tensor.owner, why));
    }

    /// Decrements the number of leases. Returns the memory to free if the tensor was deleted and
    /// has no other lease.
    fn returned(&mut self, id: Uuid) -> Option<FreedMemory> {
        let entry = self.tensors.get_mut(&id)?;
        entry.leases = entry.leases.saturating_sub(1);
        if entry.phase != Phase::Deleted || entry.leases > 0 {
            return None;
        }
        let freed = entry.freed(id);
        self.tensors.remove(&id);
        Some(freed)
    }

    fn sweep(&mut self, limits: &RegistryLimits, now: Instant) -> Vec<FreedMemory> {
        let ended: Vec<(Uuid, Uuid)> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.is_over(now))
            .map(|(id, lease)| (*id, lease.tensor))
            .collect();
        let mut freed = Vec::new();
        for (lease, tensor) in ended {
            self.leases.remove(&lease);
            freed.extend(self.returned(tensor));
        }
        let expired = |entry: &Entry| {
            let ttl = entry.tensor.ttl.or(limits.ttl);
            entry.phase == Phase::Ready
                && entry.leases == 0
                && ttl.is_some_and(|ttl| entry.last_used + ttl < now)
        };
        let ids: Vec<Uuid> =
            self.tensors.iter().filter(|(_, entry)| expired(entry)).map(|(id, _)| *id).collect();
        for id in ids {
            freed.extend(self.remove(id, Some(GoneReason::Expired)));
        }
        freed
    }
}

#[cfg(test)]
mod tests;
