//! The store on SQLite, and the same on PostgreSQL.

use super::testing::{Fresh, completed, job, sqlite};
use super::*;

/// Runs each named test on SQLite, and on PostgreSQL in the group of tests that needs it.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(super::sqlite()).await;
            })+
        }
    };
}

on_both!(
    a_job_goes_all_the_way,
    same_key_same_job,
    new_leases_are_not_lost_ones,
    owners_take_turns,
    quotas_hold,
);

async fn a_job_goes_all_the_way(fresh: Fresh) {
    let store = fresh.store().await;
    let submitted = store.submit(job("a")).await.unwrap();
    assert_eq!((submitted.state, submitted.existing), (JobState::Queued, false));
    let claimed = store.claim().await.unwrap().unwrap();
    assert_eq!(claimed.job.id, submitted.id);
    assert_eq!(claimed.request, br#"{"kernel":"x"}"#);
    assert!(store.claim().await.unwrap().is_none());
    store.advance(&claimed.lease, JobState::Compiling).await.unwrap();
    store.advance_behind(&claimed.lease, JobState::Queued).unwrap();
    store.advance_behind(&claimed.lease, JobState::Profiling).unwrap();
    let large = vec![7; 300_000];
    store.finish(claimed.lease, completed(&large)).await.unwrap();
    let row = store.job(&submitted.id, Visibility::Owner("a")).await.unwrap().unwrap();
    assert_eq!((row.state, row.attempts), (JobState::Completed, 1));
    assert!(row.ended_at >= row.started_at && row.started_at >= Some(row.created_at));
    assert_eq!(store.report(&row.id).await.unwrap().unwrap().body, large);
    assert!(store.job(&row.id, Visibility::Owner("b")).await.unwrap().is_none());
    let counts = store.counts(Visibility::All).await.unwrap();
    assert_eq!((counts.total(), counts.of(JobState::Completed)), (1, 1));
    assert_eq!((counts.waiting, counts.running), (0, 0));
}

async fn same_key_same_job(fresh: Fresh) {
    let store = fresh.store().await;
    let keyed = NewJob { idempotency_key: Some("k".to_owned()), ..job("a") };
    let first = store.submit(keyed.clone()).await.unwrap();
    let again = NewJob { id: job("a").id, ..keyed.clone() };
    let (again, lease) = store.submit_leased(again).await.unwrap();
    assert_eq!((&again.id, again.existing, lease.is_none()), (&first.id, true, true));
    let other = NewJob { id: job("a").id, request_hash: [1; 32], ..keyed.clone() };
    let refused = store.submit_all(vec![job("a"), other]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { existing, .. } if existing == first.id));
    let stranger = NewJob { owner: "b".to_owned(), ..keyed };
    let stranger = store.submit(NewJob { id: job("b").id, ..stranger }).await.unwrap();
    assert!(!stranger.existing);
    assert_eq!(store.counts(Visibility::All).await.unwrap().total(), 2);
}

/// Looking for lost jobs in the very transaction that hands out a lease.
async fn new_leases_are_not_lost_ones(fresh: Fresh) {
    let store = fresh.store().await;
    for _ in 0..50 {
        let accept = store.submit_leased(job("a"));
        let (accepted, found, beat) =
            tokio::join!(accept, store.requeue_expired(), store.heartbeat());
        let (submitted, lease) = accepted.unwrap();
        assert_eq!(found.unwrap(), Requeued::default());
        assert_eq!(beat.unwrap(), Heartbeat::default());
        store.advance(&lease.unwrap(), JobState::Compiling).await.unwrap();
        assert_eq!(submitted.state, JobState::Submitted);
    }
}

async fn owners_take_turns(fresh: Fresh) {
    let store = fresh.store().await;
    for owner in ["a", "a", "a", "b", "b", "c"] {
        store.submit(job(owner)).await.unwrap();
    }
    let mut order = String::new();
    let mut leases = Vec::new();
    while let Some(claimed) = store.claim().await.unwrap() {
        order.push_str(&claimed.job.owner);
        leases.push(claimed.lease);
    }
    assert_eq!(order, "abcaba");
}

async fn quotas_hold(fresh: Fresh) {
    let fresh = fresh.quotas(2, 1);
    let store = fresh.store().await;
    store.submit_all(vec![job("a"), job("a")]).await.unwrap();
    let refused = store.submit(job("a")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Quota { what: "waiting", current: 2, limit: 2 }));
    store.submit(job("b")).await.unwrap();
    let first = store.claim().await.unwrap().unwrap();
    let second = store.claim().await.unwrap().unwrap();
    assert_eq!((first.job.owner.as_str(), second.job.owner.as_str()), ("a", "b"));
    assert!(store.claim().await.unwrap().is_none(), "one may run at a time");
    let refused = store.submit_leased(job("b")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Quota { what: "running", current: 1, limit: 1 }));
}
