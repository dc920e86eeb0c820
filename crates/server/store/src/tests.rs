//! Tests of the store on SQLite and on PostgreSQL.

use super::testing::{Fresh, bytes, completed, job, on_both};
use super::*;

use warpgauge_model::ErrorCode;

on_both!(
    a_job_goes_all_the_way,
    same_key_same_job,
    a_key_is_free_again_where_its_job_brought_no_answer,
    new_leases_are_not_lost_ones,
    a_second_try_accepts_what_is_missing,
    owners_take_turns,
    idleness_earns_no_credit,
    quotas_hold,
    a_dropped_lease_gives_the_job_back,
    a_process_that_is_gone_loses_its_jobs,
    only_the_holder_ends_a_job,
    cancelling,
    lists_are_paged_and_filtered,
    attempts_run_out,
    reports_are_never_changed,
    claimers_compete_and_nothing_is_lost_or_doubled,
    bounds_hold,
);

async fn a_job_goes_all_the_way(fresh: Fresh) {
    let store = fresh.store().await;
    let submitted = store.queue().submit(job("a")).await.unwrap();
    assert_eq!((submitted.state, submitted.existing), (JobState::Queued, false));
    let claimed = store.queue().claim().await.unwrap().unwrap();
    assert_eq!(claimed.job.id, submitted.id);
    assert_eq!(bytes(claimed.request), br#"{"kernel":"x"}"#);
    assert!(store.queue().claim().await.unwrap().is_none());
    store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
    store.queue().advance_behind(&claimed.lease, JobState::Queued).unwrap();
    store.queue().advance_behind(&claimed.lease, JobState::Profiling).unwrap();
    let large = vec![7; 300_000];
    store.queue().finish(claimed.lease, completed(&large)).await.unwrap();
    let row = store.jobs().find(&submitted.id, Visibility::Owner("a")).await.unwrap().unwrap();
    assert_eq!((row.state, row.attempts), (JobState::Completed, 1));
    assert!(row.ended_at >= row.started_at && row.started_at >= Some(row.created_at));
    assert_eq!(store.jobs().report(&row.id).await.unwrap().unwrap().body, large);
    assert!(store.jobs().find(&row.id, Visibility::Owner("b")).await.unwrap().is_none());
    let counts = store.jobs().counts(Visibility::All).await.unwrap();
    assert_eq!((counts.total(), counts.of(JobState::Completed)), (1, 1));
    assert_eq!((counts.waiting, counts.running), (0, 0));
}

fn named(key: &str, hash: u8) -> Option<Idempotency> {
    Some(Idempotency { key: key.to_owned(), request_hash: [hash; 32] })
}

async fn same_key_same_job(fresh: Fresh) {
    let store = fresh.store().await;
    let keyed = NewJob { idempotency: named("k", 0), ..job("a") };
    let first = store.queue().submit(keyed.clone()).await.unwrap();
    let again = NewJob { id: job("a").id, ..keyed.clone() };
    let (again, lease) = store.queue().submit_leased(again).await.unwrap();
    assert_eq!((&again.id, again.existing, lease.is_none()), (&first.id, true, true));
    let other = NewJob { id: job("a").id, idempotency: named("k", 1), ..keyed.clone() };
    let refused = store.queue().submit_all(vec![job("a"), other]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { existing, .. } if existing == first.id));
    let stranger = NewJob { owner: "b".to_owned(), ..keyed };
    let stranger = store.queue().submit(NewJob { id: job("b").id, ..stranger }).await.unwrap();
    assert!(!stranger.existing);
    assert_eq!(store.jobs().counts(Visibility::All).await.unwrap().total(), 2);
}

/// A job that failed because the server lacked something must not answer its request forever.
async fn a_key_is_free_again_where_its_job_brought_no_answer(fresh: Fresh) {
    let fresh = fresh.quotas(3, 0);
    let store = fresh.store().await;
    let keyed = |hash: u8| NewJob { idempotency: named("k", hash), ..job("a") };
    let end = async |state, code: ErrorCode| {
        let claimed = store.queue().claim().await.unwrap().unwrap();
        store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
        let error = JobError { code, message: "m".to_owned() };
        let ending = JobEnding { state, report: None, error: Some(error), points: Vec::new() };
        store.queue().finish(claimed.lease, ending).await.unwrap();
        claimed.job.id
    };
    let mut before = store.queue().submit(keyed(0)).await.unwrap().id;
    let ends = [
        (JobState::Failed, ErrorCode::Unavailable),
        (JobState::Failed, ErrorCode::Internal),
        (JobState::Failed, ErrorCode::AttemptsExhausted),
        (JobState::Cancelled, ErrorCode::ShuttingDown),
    ];
    for (hash, (state, code)) in (0..).zip(ends) {
        assert_eq!(end(state, code.clone()).await, before);
        // The key is free, also for another request, and twice in one batch.
        let again = store.queue().submit_all(vec![keyed(hash), keyed(hash)]).await.unwrap();
        assert!(!again[0].existing && again[0].id != before, "{code}");
        assert_eq!((&again[1].id, again[1].existing), (&again[0].id, true), "{code}");
        let ended = store.jobs().find(&before, Visibility::All).await.unwrap().unwrap();
        assert_eq!(ended.error_code, Some(code));
        before = again[0].id.clone();
    }
    // Over a quota no job is accepted, and the ended job is no answer either.
    end(JobState::Failed, ErrorCode::Unavailable).await;
    store.queue().submit_all(vec![job("a"), job("a"), job("a")]).await.unwrap();
    let error = store.queue().submit(keyed(3)).await.unwrap_err();
    assert!(matches!(error, StoreError::Quota { .. }), "{error}");
    for _ in 0..3 {
        end(JobState::Cancelled, ErrorCode::Cancelled).await;
    }
    let last = store.queue().submit(keyed(3)).await.unwrap();
    assert!(!last.existing);
    // An end that says something about the request remains its answer.
    end(JobState::Failed, ErrorCode::InvalidContract).await;
    let repeated = store.queue().submit(keyed(3)).await.unwrap();
    assert_eq!((repeated.id, repeated.existing), (last.id, true));
    assert!(matches!(store.queue().submit(keyed(4)).await, Err(StoreError::Conflict { .. })));
}

/// Recovery in the same transaction as a new lease does not take that lease for lost.
async fn new_leases_are_not_lost_ones(fresh: Fresh) {
    let store = fresh.store().await;
    for _ in 0..50 {
        let accept = store.queue().submit_leased(job("a"));
        let (accepted, found, beat) = tokio::join!(
            accept,
            store.membership().requeue_expired(),
            store.membership().heartbeat()
        );
        let (submitted, lease) = accepted.unwrap();
        assert_eq!(found.unwrap(), Requeued::default());
        assert_eq!(beat.unwrap(), Heartbeat::default());
        store.queue().advance(&lease.unwrap(), JobState::Compiling).await.unwrap();
        assert_eq!(submitted.state, JobState::Submitted);
    }
}

/// The writer submits again when it does not know whether a commit reached the database.
async fn a_second_try_accepts_what_is_missing(fresh: Fresh) {
    let store = fresh.store().await;
    let first = job("a");
    store.queue().submit(first.clone()).await.unwrap();
    let tried = vec![job("a"), first.clone(), job("b")];
    let ids: Vec<String> = tried.iter().map(|job| job.id.clone()).collect();
    let again = store.queue().submit_all(tried).await.unwrap();
    assert!(again.iter().all(|job| !job.existing), "new to the caller");
    assert_eq!(again.into_iter().map(|job| job.id).collect::<Vec<_>>(), ids);
    let counts = store.jobs().counts(Visibility::All).await.unwrap();
    assert_eq!((counts.total(), counts.waiting), (3, 3), "each counts once");
    let mut claimed = Vec::new();
    while let Some(one) = store.queue().claim().await.unwrap() {
        assert_eq!(bytes(one.request), br#"{"kernel":"x"}"#);
        claimed.push(one.lease);
    }
    assert_eq!(claimed.len(), 3);
}

async fn owners_take_turns(fresh: Fresh) {
    let store = fresh.store().await;
    for owner in ["a", "a", "a", "b", "b", "c"] {
        store.queue().submit(job(owner)).await.unwrap();
    }
    let mut order = String::new();
    let mut leases = Vec::new();
    while let Some(claimed) = store.queue().claim().await.unwrap() {
        order.push_str(&claimed.job.owner);
        leases.push(claimed.lease);
    }
    assert_eq!(order, "abcaba");
}

async fn idleness_earns_no_credit(fresh: Fresh) {
    let store = fresh.store().await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        store.queue().submit(job("a")).await.unwrap();
        leases.push(store.queue().claim().await.unwrap().unwrap().lease);
    }
    // The third turn began at a served time of two seconds, where returning owners begin.
    for owner in ["b", "b", "a"] {
        store.queue().submit(job(owner)).await.unwrap();
    }
    let mut order = String::new();
    while let Some(claimed) = store.queue().claim().await.unwrap() {
        order.push_str(&claimed.job.owner);
        leases.push(claimed.lease);
    }
    assert_eq!(order, "bab");
}

async fn quotas_hold(fresh: Fresh) {
    let fresh = fresh.quotas(2, 1);
    let store = fresh.store().await;
    store.queue().submit_all(vec![job("a"), job("a")]).await.unwrap();
    let refused = store.queue().submit(job("a")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Quota { what: "waiting", current: 2, limit: 2 }));
    store.queue().submit(job("b")).await.unwrap();
    let first = store.queue().claim().await.unwrap().unwrap();
    let second = store.queue().claim().await.unwrap().unwrap();
    assert_eq!((first.job.owner.as_str(), second.job.owner.as_str()), ("a", "b"));
    assert!(store.queue().claim().await.unwrap().is_none(), "one may run at a time");
    let refused = store.queue().submit_leased(job("b")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Quota { what: "running", current: 1, limit: 1 }));
}

async fn a_dropped_lease_gives_the_job_back(fresh: Fresh) {
    let store = fresh.store().await;
    let (submitted, lease) = store.queue().submit_leased(job("a")).await.unwrap();
    assert_eq!(submitted.state, JobState::Submitted);
    assert!(store.queue().claim().await.unwrap().is_none());
    drop(lease);
    let again =
        store.queue().claim().await.unwrap().expect("given back before anything asked for later");
    assert_eq!((again.job.id.as_str(), again.job.attempts), (submitted.id.as_str(), 2));
    store.queue().release(again.lease).await.unwrap();
    let third = store.queue().claim().await.unwrap().unwrap();
    assert_eq!(third.job.attempts, 2, "a start that was none does not count");
}

async fn a_process_that_is_gone_loses_its_jobs(fresh: Fresh) {
    let (other, store) = (fresh.store().await, fresh.store().await);
    let submitted = store.queue().submit(job("a")).await.unwrap();
    let claimed = other.queue().claim().await.unwrap().unwrap();
    assert_eq!(
        store.membership().requeue_expired().await.unwrap(),
        Requeued::default(),
        "it lives"
    );
    // A kill has this effect: writes stop, and the lock is free.
    std::mem::forget(claimed.lease);
    let presence = std::sync::Arc::clone(&other.membership().presence);
    other.close().await;
    drop(other);
    presence.release_lock();
    let requeued = store.membership().requeue_expired().await.unwrap();
    assert_eq!(requeued.queued, std::slice::from_ref(&submitted.id));
    let again = store.queue().claim().await.unwrap().unwrap();
    assert_eq!((again.job.id, again.job.attempts), (submitted.id, 2));
}

async fn only_the_holder_ends_a_job(fresh: Fresh) {
    let store = fresh.store().await;
    let submitted = store.queue().submit(job("a")).await.unwrap();
    let mut first = store.queue().claim().await.unwrap().unwrap();
    let stale = lease::LeaseMaker(store.parts.access.writer.clone()).lease(
        submitted.id.clone(),
        first.lease.epoch(),
        JobState::Queued,
    );
    first.lease.disarm();
    drop(stale);
    let second = store.queue().claim().await.unwrap().unwrap();
    let stale = lease::LeaseMaker(store.parts.access.writer.clone()).lease(
        submitted.id.clone(),
        1,
        JobState::Compiling,
    );
    let lost = store.queue().advance(&stale, JobState::Profiling).await.unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { .. }));
    let lost = store.queue().finish(stale, completed(b"stale")).await.unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { .. }));
    let early = store.queue().finish(second.lease, completed(b"early")).await.unwrap_err();
    assert!(matches!(early, StoreError::IllegalTransition { .. }), "nobody worked on it: {early}");
    let third = store.queue().claim().await.unwrap().unwrap();
    store.queue().advance(&third.lease, JobState::Compiling).await.unwrap();
    store.queue().finish(third.lease, completed(b"good")).await.unwrap();
    assert_eq!(store.jobs().report(&submitted.id).await.unwrap().unwrap().body, b"good");
    assert_eq!(store.jobs().counts(Visibility::All).await.unwrap().running, 0);
}

async fn cancelling(fresh: Fresh) {
    let store = fresh.store().await;
    let waits = store.queue().submit(job("a")).await.unwrap().id;
    assert_eq!(
        store.queue().cancel(&waits, Visibility::Owner("b")).await.unwrap(),
        CancelResult::NotFound
    );
    assert_eq!(
        store.queue().cancel(&waits, Visibility::Owner("a")).await.unwrap(),
        CancelResult::Cancelled
    );
    let ended = CancelResult::Ended(JobState::Cancelled);
    assert_eq!(store.queue().cancel(&waits, Visibility::All).await.unwrap(), ended);
    assert!(store.queue().claim().await.unwrap().is_none());
    let (runs, lease) = store.queue().submit_leased(job("a")).await.unwrap();
    assert_eq!(store.queue().cancel(&runs.id, Visibility::All).await.unwrap(), CancelResult::Asked);
    assert_eq!(
        store.membership().heartbeat().await.unwrap().cancel,
        std::slice::from_ref(&runs.id)
    );
    drop(lease);
    assert!(store.queue().claim().await.unwrap().is_none(), "a cancelled job is not run again");
    let row = store.jobs().find(&runs.id, Visibility::All).await.unwrap().unwrap();
    assert_eq!((row.state, row.error_code), (JobState::Cancelled, Some(ErrorCode::Cancelled)));
}

async fn lists_are_paged_and_filtered(fresh: Fresh) {
    let store = fresh.store().await;
    let mut ids = Vec::new();
    for index in 0..25 {
        let label = (index % 5 == 0).then(|| "nightly".to_owned());
        let owner = if index % 2 == 0 { "a" } else { "b" };
        ids.push(store.queue().submit(NewJob { label, ..job(owner) }).await.unwrap().id);
    }
    store.queue().cancel(&ids[0], Visibility::All).await.unwrap();
    let mut seen = Vec::new();
    let mut page = Page { after: None, limit: 7 };
    loop {
        let got = store.jobs().list(&JobFilter::default(), &page).await.unwrap();
        assert!(got.jobs.len() <= 7);
        seen.extend(got.jobs.into_iter().map(|job| job.id));
        let Some(next) = got.next else { break };
        page.after = Some(next);
    }
    ids.reverse();
    assert_eq!(seen, ids, "newest first, each once");
    let count = async |filter: JobFilter<'_>| {
        store.jobs().list(&filter, &Page::default()).await.unwrap().jobs.len()
    };
    assert_eq!(count(JobFilter { owner: Some("a"), ..JobFilter::default() }).await, 13);
    assert_eq!(count(JobFilter { label: Some("nightly"), ..JobFilter::default() }).await, 5);
    let states = vec![JobState::Cancelled, JobState::Failed];
    assert_eq!(count(JobFilter { states, ..JobFilter::default() }).await, 1);
    let kind = Some(JobKind::Gate);
    assert_eq!(count(JobFilter { kind, ..JobFilter::default() }).await, 0);
    let odd = Page { after: Some("'; DROP TABLE jobs".to_owned()), limit: 1 };
    assert!(store.jobs().list(&JobFilter::default(), &odd).await.unwrap_err().is_refusal());
}

async fn attempts_run_out(fresh: Fresh) {
    let store = fresh.store().await;
    let id = store.queue().submit(job("a")).await.unwrap().id;
    for attempt in 1..=3 {
        let claimed = store.queue().claim().await.unwrap().unwrap();
        assert_eq!(claimed.job.attempts, attempt);
    }
    assert!(store.queue().claim().await.unwrap().is_none());
    let row = store.jobs().find(&id, Visibility::All).await.unwrap().unwrap();
    assert_eq!(row.state, JobState::Failed);
    assert_eq!(row.error_code, Some(ErrorCode::AttemptsExhausted));
}

async fn reports_are_never_changed(fresh: Fresh) {
    let store = fresh.store().await;
    let (submitted, lease) = store.queue().submit_leased(job("a")).await.unwrap();
    let lease = lease.unwrap();
    store.queue().advance(&lease, JobState::Compiling).await.unwrap();
    store.queue().finish(lease, completed(b"{}")).await.unwrap();
    let changed = sqlx::query("UPDATE reports SET kind = 'other'")
        .execute(&store.parts.access.reader.pool)
        .await;
    assert!(changed.unwrap_err().to_string().contains("never changed"));
    assert_eq!(store.jobs().report(&submitted.id).await.unwrap().unwrap().kind, "evaluate");
}

/// Several claimers in two stores on one database; some drop their jobs.
async fn claimers_compete_and_nothing_is_lost_or_doubled(fresh: Fresh) {
    let stores = [fresh.store().await, fresh.store().await];
    let mut ids = std::collections::BTreeSet::new();
    for owner in ["a", "b", "c"] {
        let jobs = (0..40).map(|_| NewJob { max_attempts: 10, ..job(owner) }).collect();
        ids.extend(stores[0].queue().submit_all(jobs).await.unwrap().into_iter().map(|job| job.id));
    }
    let mut claimers = tokio::task::JoinSet::new();
    for claimer in 0..8_usize {
        let store = stores[claimer % 2].clone();
        claimers.spawn(async move {
            let mut done = Vec::new();
            let mut turn = claimer;
            loop {
                let Some(claimed) = store.queue().claim().await.unwrap() else {
                    let counts = store.jobs().counts(Visibility::All).await.unwrap();
                    if counts.waiting + counts.running == 0 {
                        return done;
                    }
                    store.queue().wait_for_work().await;
                    continue;
                };
                turn += 1;
                if turn % 7 == 0 {
                    drop(claimed.lease);
                    continue;
                }
                store.queue().advance_behind(&claimed.lease, JobState::Compiling).unwrap();
                store.queue().finish(claimed.lease, completed(b"{}")).await.unwrap();
                done.push(claimed.job.id);
            }
        });
    }
    let done: Vec<String> = claimers.join_all().await.into_iter().flatten().collect();
    assert_eq!(done.len(), ids.len(), "none twice");
    assert_eq!(done.into_iter().collect::<std::collections::BTreeSet<_>>(), ids, "none lost");
    let counts = stores[1].jobs().counts(Visibility::All).await.unwrap();
    assert_eq!((counts.of(JobState::Completed), counts.total()), (120, 120));
}

async fn bounds_hold(fresh: Fresh) {
    let store = fresh.store().await;
    for wrong in [
        NewJob { owner: "o".repeat(65), ..job("a") },
        NewJob { label: Some("l".repeat(256)), ..job("a") },
        NewJob { label: Some("nul\0".to_owned()), ..job("a") },
        NewJob { idempotency: named("", 0), ..job("a") },
        NewJob { idempotency: named(&"k".repeat(256), 0), ..job("a") },
        NewJob { webhook: Some("w".repeat(2_049)), ..job("a") },
        NewJob { max_attempts: 0, ..job("a") },
    ] {
        let error = store.queue().submit(wrong).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
    }
    assert!(
        store.queue().submit_all(vec![job("a"); MAX_BATCH + 1]).await.unwrap_err().is_refusal()
    );
    assert_eq!(store.jobs().counts(Visibility::All).await.unwrap().total(), 0);
    let (id, lease) = store.queue().submit_leased(job("a")).await.unwrap();
    let error = JobError { code: "c".repeat(1_000).into(), message: "é\0".repeat(10_000) };
    let ending =
        JobEnding { state: JobState::Failed, report: None, error: Some(error), points: Vec::new() };
    store.queue().finish(lease.unwrap(), ending).await.unwrap();
    let row = store.jobs().find(&id.id, Visibility::All).await.unwrap().unwrap();
    assert!(row.error.unwrap().len() <= 3 * MAX_ERROR_BYTES);
}
