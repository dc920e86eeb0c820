use std::time::Duration;

use warpgauge_tensor::Dtype;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn registry(max_bytes: u64, max_count: u64) -> TensorRegistry {
    TensorRegistry::new(RegistryLimits {
        max_bytes_per_owner: max_bytes,
        max_count_per_owner: max_count,
        max_bytes: 0,
        ttl: Some(100 * SECOND),
        lease: 10 * SECOND,
    })
}

fn new(owner: &str, bytes: u64) -> NewTensor {
    NewTensor {
        owner: owner.to_owned(),
        place: TensorLocation::Host,
        dtype: Dtype::Uint8,
        shape: vec![bytes],
        bytes,
        sample_rate: None,
        name: None,
        ttl: None,
        evict: false,
    }
}

fn put(registry: &TensorRegistry, new: NewTensor, now: Instant) -> Uuid {
    let id = registry.reserve(new, now).0.unwrap();
    registry.commit(id, 1, now).unwrap();
    id
}

#[test]
fn quotas_count_what_is_being_filled_and_each_owner_alone() {
    let (registry, now) = (registry(100, 2), Instant::now());
    let first = registry.reserve(new("a", 60), now).0.unwrap();
    assert_eq!(
        registry.find(first, "a", now).unwrap_err(),
        TensorLookupError::Never,
        "it has no content yet"
    );
    let refused = registry.reserve(new("a", 41), now).0.unwrap_err();
    assert!(refused.0.contains("60 of 100"), "{refused:?}");
    put(&registry, new("b", 100), now);
    registry.cancel(first);
    put(&registry, new("a", 41), now);
    put(&registry, new("a", 1), now);
    let refused = registry.reserve(new("a", 1), now).0.unwrap_err();
    assert!(refused.0.contains("max_count_per_key"), "{refused:?}");
    assert_eq!(registry.list("a", now).1, 42);
}

#[test]
fn a_pinned_tensor_stays_until_it_is_given_back() {
    let (registry, now) = (registry(0, 0), Instant::now());
    let id = put(&registry, new("a", 8), now);
    assert_eq!(registry.pin(id, "b", now).unwrap_err(), TensorLookupError::Never);
    let (pin, held) = registry.pin(id, "a", now).unwrap();
    assert_eq!(held.leases, 1);
    let later = now + 1000 * SECOND;
    assert!(registry.sweep(later).is_empty(), "neither expires");
    assert_eq!(registry.delete(id, "a").unwrap(), (1, None));
    assert!(registry.sweep(later).is_empty());
    let (_, freed) = registry.release(pin, "a").unwrap();
    assert_eq!(freed.map(|freed| freed.id), Some(id));
}

#[test]
fn reading_what_is_pinned_is_a_use() {
    let (registry, now) = (registry(0, 0), Instant::now());
    let id = put(&registry, new("a", 8), now);
    let (pin, _) = registry.pin(id, "a", now + 60 * SECOND).unwrap();
    registry.release(pin, "a").unwrap();
    assert!(registry.sweep(now + 159 * SECOND).is_empty());
    assert_eq!(registry.sweep(now + 161 * SECOND).len(), 1);
}

#[test]
fn a_page_of_a_device_is_one_tensors_own() {
    assert_eq!(TensorLocation::Device(0).occupied(1), DEVICE_PAGE);
    assert_eq!(TensorLocation::Device(0).occupied(DEVICE_PAGE + 1), 2 * DEVICE_PAGE);
    assert_eq!(TensorLocation::Device(0).occupied(u64::MAX), u64::MAX);
}

#[test]
fn what_is_open_outlives_its_deletion_until_the_last_lease_ends() {
    let (registry, now) = (registry(100, 0), Instant::now());
    let id = put(&registry, new("a", 60), now);
    let (one, _) = registry.lease(id, "a", now).unwrap();
    let (two, held) = registry.lease(id, "a", now + SECOND).unwrap();
    assert_eq!(held.leases, 2);
    assert_eq!(registry.delete(id, "a").unwrap(), (2, None));
    assert_eq!(registry.find(id, "a", now).unwrap_err(), TensorLookupError::Never);
    assert!(registry.reserve(new("a", 60), now).0.is_err(), "its memory is not free yet");
    assert_eq!(registry.release(one, "b"), None, "it is another's");
    assert_eq!(registry.release(one, "a"), Some((id, None)));
    // The other client is dead and does not renew its lease.
    assert_eq!(registry.sweep(now + 11 * SECOND), []);
    let freed = FreedMemory { place: TensorLocation::Host, generation: 1, id };
    assert_eq!(registry.sweep(now + 12 * SECOND), [freed]);
    assert_eq!(registry.renew(two, "a", now + 12 * SECOND), None);
    put(&registry, new("a", 60), now);
}

#[test]
fn heartbeats_keep_a_lease_and_its_tensor() {
    let (registry, mut now) = (registry(0, 0), Instant::now());
    let id = put(&registry, new("a", 1), now);
    let (lease, _) = registry.lease(id, "a", now).unwrap();
    for _ in 0..30 {
        now += 9 * SECOND;
        assert_eq!(registry.renew(lease, "a", now), Some(id));
        assert_eq!(registry.sweep(now), []);
    }
    let expected = FreedMemory { place: TensorLocation::Host, generation: 1, id };
    assert_eq!(registry.sweep(now + 101 * SECOND), [expected]);
    assert_eq!(
        registry.find(id, "a", now).unwrap_err(),
        TensorLookupError::Gone(GoneReason::Expired)
    );
    assert_eq!(registry.find(id, "b", now).unwrap_err(), TensorLookupError::Never);
}

#[test]
fn only_where_asked_for_does_one_tensor_make_room_for_another() {
    let (registry, now) = (registry(100, 0), Instant::now());
    let [old, used, open] = [0, 1, 2].map(|at| put(&registry, new("a", 30), now + at * SECOND));
    registry.used(old, "a", now + 5 * SECOND).unwrap();
    registry.lease(open, "a", now).unwrap();
    assert!(registry.reserve(new("a", 20), now).0.is_err());
    let (id, freed) = registry.reserve(NewTensor { evict: true, ..new("a", 20) }, now);
    assert!(id.is_ok());
    assert_eq!(freed.iter().map(|one| one.id).collect::<Vec<_>>(), [used]);
    assert_eq!(
        registry.find(used, "a", now).unwrap_err(),
        TensorLookupError::Gone(GoneReason::Evicted)
    );
    // A tensor that cannot fit at all evicts nothing.
    let (refused, freed) = registry.reserve(NewTensor { evict: true, ..new("a", 101) }, now);
    assert!(refused.is_err() && freed.is_empty());
    // A tensor with a lease is never evicted.
    let (refused, _) = registry.reserve(NewTensor { evict: true, ..new("a", 80) }, now);
    assert!(refused.is_err() && registry.find(open, "a", now).is_ok());
}

#[test]
fn what_a_dead_process_held_is_gone_and_nothing_else() {
    let (registry, now) = (registry(0, 0), Instant::now());
    let [one, two] = [0, 1].map(|_| put(&registry, new("a", 1), now));
    let (lease, _) = registry.lease(one, "a", now).unwrap();
    registry.commit(two, 2, now);
    assert_eq!(registry.lose(TensorLocation::Device(0), 1), 0);
    assert_eq!(registry.lose(TensorLocation::Host, 1), 1);
    assert_eq!(
        registry.find(one, "a", now).unwrap_err(),
        TensorLookupError::Gone(GoneReason::HolderDied)
    );
    assert_eq!(registry.renew(lease, "a", now), None);
    assert!(registry.find(two, "a", now).is_ok());
    // The process ended after the last byte of an upload and before the commit.
    let late = registry.reserve(new("a", 7), now).0.unwrap();
    assert!(registry.commit(late, 1, now).is_none());
    assert_eq!(registry.list("a", now).1, 1);
}

#[test]
fn an_unseen_copy_is_counted_found_by_nobody_and_free_with_its_lease() {
    let (registry, now) = (registry(100, 0), Instant::now());
    let id = registry.reserve(new("a", 60), now).0.unwrap();
    let (lease, held) = registry.commit_unseen(id, 1, now).unwrap();
    assert_eq!((held.id, held.leases), (id, 1));
    assert_eq!(registry.find(id, "a", now).unwrap_err(), TensorLookupError::Never);
    assert_eq!(registry.delete(id, "a").unwrap_err(), TensorLookupError::Never);
    let (seen, occupied) = registry.list("a", now);
    assert!(seen.is_empty() && occupied == 60);
    assert!(registry.sweep(now + 1000 * SECOND).is_empty(), "it does not expire");
    let evicting = NewTensor { evict: true, ..new("a", 50) };
    assert!(registry.reserve(evicting, now).0.is_err(), "nor is it evicted");
    let freed = FreedMemory { place: TensorLocation::Host, generation: 1, id };
    assert_eq!(registry.release(lease, "a"), Some((id, Some(freed))));
    assert_eq!(registry.list("a", now).1, 0);

    let id = registry.reserve(new("a", 60), now).0.unwrap();
    registry.lose(TensorLocation::Host, 1);
    assert!(registry.commit_unseen(id, 1, now).is_none(), "its process has ended");
    assert_eq!(registry.list("a", now).1, 0);
    let id = registry.reserve(new("a", 60), now).0.unwrap();
    let (lease, _) = registry.commit_unseen(id, 2, now).unwrap();
    assert_eq!(registry.lose(TensorLocation::Host, 2), 1);
    assert_eq!(registry.release(lease, "a"), None);
    assert_eq!(registry.list("a", now).1, 0);
}
