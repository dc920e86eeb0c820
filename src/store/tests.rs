//! The store on SQLite, and the same on PostgreSQL.

use std::time::{Duration, SystemTime};

use super::testing::{Fresh, bytes, completed, files, job, on_both};
use super::*;

on_both!(
    a_job_goes_all_the_way,
    same_key_same_job,
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
    ends_are_announced,
    artifacts_give_way,
    what_is_old_goes,
    history_is_kept,
    baselines_are_promoted,
    reports_are_never_changed,
    claimers_compete_and_nothing_is_lost_or_doubled,
    bounds_hold,
);

async fn a_job_goes_all_the_way(fresh: Fresh) {
    let store = fresh.store().await;
    let submitted = store.submit(job("a")).await.unwrap();
    assert_eq!((submitted.state, submitted.existing), (JobState::Queued, false));
    let claimed = store.claim().await.unwrap().unwrap();
    assert_eq!(claimed.job.id, submitted.id);
    assert_eq!(bytes(claimed.request), br#"{"kernel":"x"}"#);
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

/// What the writer does when it does not know whether a commit reached the database.
async fn a_second_try_accepts_what_is_missing(fresh: Fresh) {
    let store = fresh.store().await;
    let first = job("a");
    store.submit(first.clone()).await.unwrap();
    let tried = vec![job("a"), first.clone(), job("b")];
    let ids: Vec<String> = tried.iter().map(|job| job.id.clone()).collect();
    let again = store.submit_all(tried).await.unwrap();
    assert!(again.iter().all(|job| !job.existing), "new to the caller");
    assert_eq!(again.into_iter().map(|job| job.id).collect::<Vec<_>>(), ids);
    let counts = store.counts(Visibility::All).await.unwrap();
    assert_eq!((counts.total(), counts.waiting), (3, 3), "each counts once");
    let mut claimed = Vec::new();
    while let Some(one) = store.claim().await.unwrap() {
        assert_eq!(bytes(one.request), br#"{"kernel":"x"}"#);
        claimed.push(one.lease);
    }
    assert_eq!(claimed.len(), 3);
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

async fn idleness_earns_no_credit(fresh: Fresh) {
    let store = fresh.store().await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        store.submit(job("a")).await.unwrap();
        leases.push(store.claim().await.unwrap().unwrap().lease);
    }
    // The third turn began at two seconds, which is where those who come now begin.
    for owner in ["b", "b", "a"] {
        store.submit(job(owner)).await.unwrap();
    }
    let mut order = String::new();
    while let Some(claimed) = store.claim().await.unwrap() {
        order.push_str(&claimed.job.owner);
        leases.push(claimed.lease);
    }
    assert_eq!(order, "bab");
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

async fn a_dropped_lease_gives_the_job_back(fresh: Fresh) {
    let store = fresh.store().await;
    let (submitted, lease) = store.submit_leased(job("a")).await.unwrap();
    assert_eq!(submitted.state, JobState::Submitted);
    assert!(store.claim().await.unwrap().is_none());
    drop(lease);
    let again = store.claim().await.unwrap().expect("given back before anything asked for later");
    assert_eq!((again.job.id.as_str(), again.job.attempts), (submitted.id.as_str(), 2));
    store.release(again.lease).await.unwrap();
    let third = store.claim().await.unwrap().unwrap();
    assert_eq!(third.job.attempts, 2, "a start that was none does not count");
}

async fn a_process_that_is_gone_loses_its_jobs(fresh: Fresh) {
    let (other, store) = (fresh.store().await, fresh.store().await);
    let submitted = store.submit(job("a")).await.unwrap();
    let claimed = other.claim().await.unwrap().unwrap();
    assert_eq!(store.requeue_expired().await.unwrap(), Requeued::default(), "it lives");
    // What a kill does: nothing is written any more, and the lock is gone.
    std::mem::forget(claimed.lease);
    let presence = std::sync::Arc::clone(&other.presence);
    other.close().await;
    drop(other);
    presence.release_lock();
    let requeued = store.requeue_expired().await.unwrap();
    assert_eq!(requeued.queued, std::slice::from_ref(&submitted.id));
    let again = store.claim().await.unwrap().unwrap();
    assert_eq!((again.job.id, again.job.attempts), (submitted.id, 2));
}

async fn only_the_holder_ends_a_job(fresh: Fresh) {
    let store = fresh.store().await;
    let submitted = store.submit(job("a")).await.unwrap();
    let mut first = store.claim().await.unwrap().unwrap();
    let stale = lease::LeaseMaker(store.writer.clone()).lease(
        submitted.id.clone(),
        first.lease.epoch(),
        JobState::Queued,
    );
    first.lease.disarm();
    drop(stale);
    let second = store.claim().await.unwrap().unwrap();
    let stale =
        lease::LeaseMaker(store.writer.clone()).lease(submitted.id.clone(), 1, JobState::Compiling);
    let lost = store.advance(&stale, JobState::Profiling).await.unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { .. }));
    let lost = store.finish(stale, completed(b"stale")).await.unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { .. }));
    let early = store.finish(second.lease, completed(b"early")).await.unwrap_err();
    assert!(matches!(early, StoreError::IllegalTransition { .. }), "nobody worked on it: {early}");
    let third = store.claim().await.unwrap().unwrap();
    store.advance(&third.lease, JobState::Compiling).await.unwrap();
    store.finish(third.lease, completed(b"good")).await.unwrap();
    assert_eq!(store.report(&submitted.id).await.unwrap().unwrap().body, b"good");
    assert_eq!(store.counts(Visibility::All).await.unwrap().running, 0);
}

async fn cancelling(fresh: Fresh) {
    let store = fresh.store().await;
    let waits = store.submit(job("a")).await.unwrap().id;
    assert_eq!(store.cancel(&waits, Visibility::Owner("b")).await.unwrap(), Cancel::NotFound);
    assert_eq!(store.cancel(&waits, Visibility::Owner("a")).await.unwrap(), Cancel::Cancelled);
    let ended = Cancel::Ended(JobState::Cancelled);
    assert_eq!(store.cancel(&waits, Visibility::All).await.unwrap(), ended);
    assert!(store.claim().await.unwrap().is_none());
    let (runs, lease) = store.submit_leased(job("a")).await.unwrap();
    assert_eq!(store.cancel(&runs.id, Visibility::All).await.unwrap(), Cancel::Asked);
    assert_eq!(store.heartbeat().await.unwrap().cancel, std::slice::from_ref(&runs.id));
    drop(lease);
    assert!(store.claim().await.unwrap().is_none(), "a cancelled job is not run again");
    let row = store.job(&runs.id, Visibility::All).await.unwrap().unwrap();
    assert_eq!((row.state, row.error_code.as_deref()), (JobState::Cancelled, Some("cancelled")));
}

async fn lists_are_paged_and_filtered(fresh: Fresh) {
    let store = fresh.store().await;
    let mut ids = Vec::new();
    for index in 0..25 {
        let label = (index % 5 == 0).then(|| "nightly".to_owned());
        let owner = if index % 2 == 0 { "a" } else { "b" };
        ids.push(store.submit(NewJob { label, ..job(owner) }).await.unwrap().id);
    }
    store.cancel(&ids[0], Visibility::All).await.unwrap();
    let mut seen = Vec::new();
    let mut page = Page { after: None, limit: 7 };
    loop {
        let got = store.list(&JobFilter::default(), &page).await.unwrap();
        assert!(got.jobs.len() <= 7);
        seen.extend(got.jobs.into_iter().map(|job| job.id));
        let Some(next) = got.next else { break };
        page.after = Some(next);
    }
    ids.reverse();
    assert_eq!(seen, ids, "newest first, each once");
    let count = async |filter: JobFilter<'_>| {
        store.list(&filter, &Page::default()).await.unwrap().jobs.len()
    };
    assert_eq!(count(JobFilter { owner: Some("a"), ..JobFilter::default() }).await, 13);
    assert_eq!(count(JobFilter { label: Some("nightly"), ..JobFilter::default() }).await, 5);
    let states = vec![JobState::Cancelled, JobState::Failed];
    assert_eq!(count(JobFilter { states, ..JobFilter::default() }).await, 1);
    let kind = Some(JobKind::Gate);
    assert_eq!(count(JobFilter { kind, ..JobFilter::default() }).await, 0);
    let odd = Page { after: Some("'; DROP TABLE jobs".to_owned()), limit: 1 };
    assert!(store.list(&JobFilter::default(), &odd).await.unwrap_err().is_refusal());
}

async fn attempts_run_out(fresh: Fresh) {
    let store = fresh.store().await;
    let id = store.submit(job("a")).await.unwrap().id;
    for attempt in 1..=3 {
        let claimed = store.claim().await.unwrap().unwrap();
        assert_eq!(claimed.job.attempts, attempt);
    }
    assert!(store.claim().await.unwrap().is_none());
    let row = store.job(&id, Visibility::All).await.unwrap().unwrap();
    assert_eq!(row.state, JobState::Failed);
    assert_eq!(row.error_code.as_deref(), Some("attempts_exhausted"));
}

async fn ends_are_announced(fresh: Fresh) {
    let store = fresh.store().await;
    let webhook = Some("https://example.test/hook".to_owned());
    let id = store.submit(NewJob { webhook, ..job("a") }).await.unwrap().id;
    assert!(store.due_deliveries(10).await.unwrap().is_empty(), "it has not ended");
    store.cancel(&id, Visibility::All).await.unwrap();
    let due = store.due_deliveries(10).await.unwrap();
    assert_eq!((due.len(), due[0].attempt, due[0].job.as_str()), (1, 1, id.as_str()));
    assert!(store.due_deliveries(10).await.unwrap().is_empty(), "it is being delivered");
    let again = DeliveryOutcome::RetryAt(SystemTime::now(), "503".to_owned());
    store.settle_delivery(&id, again).await.unwrap();
    assert_eq!(store.due_deliveries(10).await.unwrap()[0].attempt, 2);
    store.settle_delivery(&id, DeliveryOutcome::Delivered).await.unwrap();
    let late = DeliveryOutcome::RetryAt(SystemTime::UNIX_EPOCH, "late".to_owned());
    store.settle_delivery(&id, late).await.unwrap();
    assert!(store.due_deliveries(10).await.unwrap().is_empty());
}

async fn artifacts_give_way(mut fresh: Fresh) {
    fresh.config.artifacts_max_bytes = 300_000;
    let store = fresh.store().await;
    let id = store.submit(job("a")).await.unwrap().id;
    // Bytes that do not compress.
    let noise = |seed: u8| -> Vec<u8> {
        let mut bytes = vec![0; 100_000];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        bytes
    };
    for seed in 0..4 {
        store.put_artifact(&id, &format!("{seed}"), "log", noise(seed)).await.unwrap();
    }
    let kept = store.artifacts(&id).await.unwrap();
    let gone: Vec<bool> = kept.iter().map(|artifact| artifact.gone).collect();
    assert_eq!(gone, [true, false, false, false]);
    assert_eq!(store.artifact(&id, "0").await.unwrap().unwrap().bytes, None);
    assert_eq!(store.artifact(&id, "3").await.unwrap().unwrap().bytes, Some(noise(3)));
    assert_eq!(store.artifact(&id, "none").await.unwrap(), None);
    store.put_artifact(&id, "large", "log", noise(9).repeat(4)).await.unwrap();
    assert!(store.artifact(&id, "large").await.unwrap().unwrap().artifact.gone);
    let nobody = store.put_artifact("nobody", "x", "log", noise(1)).await.unwrap_err();
    assert!(nobody.is_refusal());
    store.cancel(&id, Visibility::All).await.unwrap();
    store
        .cleanup(&Retention { max_age: Some(Duration::ZERO), ..Retention::default() })
        .await
        .unwrap();
    let left = files(&fresh.config.data_dir.join("objects"));
    assert!(left.is_empty(), "{left:?}");
}

async fn what_is_old_goes(fresh: Fresh) {
    let store = fresh.store().await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(store.submit(job("a")).await.unwrap().id);
    }
    for id in &ids[..8] {
        store.cancel(id, Visibility::All).await.unwrap();
    }
    let policy = Retention { max_jobs: 3, ..Retention::default() };
    assert_eq!(store.cleanup(&policy).await.unwrap().jobs, 5);
    assert!(store.job(&ids[4], Visibility::All).await.unwrap().is_none(), "the oldest went");
    assert!(store.job(&ids[5], Visibility::All).await.unwrap().is_some());
    let policy = Retention { max_bytes: 1, ..Retention::default() };
    assert_eq!(store.cleanup(&policy).await.unwrap().jobs, 3);
    let counts = store.counts(Visibility::All).await.unwrap();
    assert_eq!((counts.total(), counts.waiting), (2, 2), "what has not ended stays");
    let stray = fresh.config.data_dir.join("objects/jobs/aa/x/report-stray");
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, "left by a crash").unwrap();
    let unfinished = fresh.config.data_dir.join("objects/baselines/x#12");
    std::fs::create_dir_all(unfinished.parent().unwrap()).unwrap();
    std::fs::write(&unfinished, "left half way").unwrap();
    assert_eq!(store.remove_leftovers(Duration::from_secs(600)).await.unwrap(), 0);
    assert_eq!(store.remove_leftovers(Duration::ZERO).await.unwrap(), 2);
    assert!(!stray.exists() && !unfinished.exists());
}

fn point(case: &str, value: f64) -> Point {
    Point {
        owner: "a".to_owned(),
        case: case.to_owned(),
        metric: "median_ms".to_owned(),
        device: "H200".to_owned(),
        method: "events".to_owned(),
        at: SystemTime::now(),
        value,
        low: Some(value - 1.0),
        high: None,
        revision: None,
        job: None,
        detail: Vec::new(),
    }
}

async fn history_is_kept(fresh: Fresh) {
    let store = fresh.store().await;
    let points = (0..10).map(|value| point("gemm", f64::from(value))).collect();
    store.append_points(points).await.unwrap();
    store.append_points(vec![point("scan", 1.5)]).await.unwrap();
    let filter = SeriesFilter {
        owner: Visibility::Owner("a"),
        case: "gemm",
        metric: None,
        device: None,
        method: None,
    };
    let page = store.view().series(&filter, &Page { after: None, limit: 6 }).await.unwrap();
    let values: Vec<f64> = page.points.iter().map(|point| point.value).collect();
    assert_eq!(values, [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]);
    assert_eq!((page.points[0].low, page.points[0].high), (Some(8.0), None));
    let rest = store.view().series(&filter, &Page { after: page.next, limit: 6 }).await.unwrap();
    assert_eq!((rest.points.len(), rest.next), (4, None));
    let cases = store.view().cases(Visibility::All, None, 10).await.unwrap();
    let names: Vec<_> = cases.iter().map(|series| (series.case.as_str(), series.points)).collect();
    assert_eq!(names, [("gemm", 10), ("scan", 1)]);
    assert!(store.view().cases(Visibility::Owner("b"), None, 10).await.unwrap().is_empty());
    let odd = store.append_points(vec![point("gemm", 1.0), point("gemm", f64::NAN)]).await;
    assert!(odd.unwrap_err().is_refusal());
    let policy = Retention { max_points: Some(1), ..Retention::default() };
    assert_eq!(store.cleanup(&policy).await.unwrap().points, 10);
    let cases = store.view().cases(Visibility::All, None, 10).await.unwrap();
    assert_eq!((cases.len(), cases[0].case.as_str()), (1, "scan"));
}

async fn baselines_are_promoted(fresh: Fresh) {
    let store = fresh.store().await;
    let baseline = |body: &[u8], promote| NewBaseline {
        owner: "a".to_owned(),
        name: "main".to_owned(),
        pin: "H200/570/events".to_owned(),
        job: None,
        body: body.to_vec(),
        promote,
    };
    let first = store.put_baseline(baseline(b"1", true)).await.unwrap();
    let second = store.put_baseline(baseline(&[2; 200_000], false)).await.unwrap();
    let body = async || {
        let found = store.promoted_baseline("a", "main", "H200/570/events").await.unwrap();
        found.map(|found| found.body.len())
    };
    assert_eq!(body().await, Some(1));
    assert!(!store.promote_baseline(&second, Visibility::Owner("b")).await.unwrap());
    assert!(store.promote_baseline(&second, Visibility::Owner("a")).await.unwrap());
    assert_eq!(body().await, Some(200_000));
    let all = store.baselines(Visibility::All, Some("main"), 10).await.unwrap();
    let flags: Vec<_> = all.iter().map(|one| (one.id == first, one.promoted)).collect();
    assert_eq!(flags, [(false, true), (true, false)]);
    assert!(store.delete_baseline(&second, Visibility::All).await.unwrap());
    assert_eq!(body().await, None, "nothing takes its place by itself");
    assert!(store.baseline(&first, Visibility::Owner("a")).await.unwrap().is_some());
}

async fn reports_are_never_changed(fresh: Fresh) {
    let store = fresh.store().await;
    let (submitted, lease) = store.submit_leased(job("a")).await.unwrap();
    let lease = lease.unwrap();
    store.advance(&lease, JobState::Compiling).await.unwrap();
    store.finish(lease, completed(b"{}")).await.unwrap();
    let changed =
        sqlx::query("UPDATE reports SET kind = 'other'").execute(&store.reader.pool).await;
    assert!(changed.unwrap_err().to_string().contains("never changed"));
    assert_eq!(store.report(&submitted.id).await.unwrap().unwrap().kind, "evaluate");
}

/// Several claimers in two stores on one database, some of whom drop what they took.
async fn claimers_compete_and_nothing_is_lost_or_doubled(fresh: Fresh) {
    let stores = [fresh.store().await, fresh.store().await];
    let mut ids = std::collections::BTreeSet::new();
    for owner in ["a", "b", "c"] {
        let jobs = (0..40).map(|_| NewJob { max_attempts: 10, ..job(owner) }).collect();
        ids.extend(stores[0].submit_all(jobs).await.unwrap().into_iter().map(|job| job.id));
    }
    let mut claimers = tokio::task::JoinSet::new();
    for claimer in 0..8_usize {
        let store = stores[claimer % 2].clone();
        claimers.spawn(async move {
            let mut done = Vec::new();
            let mut turn = claimer;
            loop {
                let Some(claimed) = store.claim().await.unwrap() else {
                    let counts = store.counts(Visibility::All).await.unwrap();
                    if counts.waiting + counts.running == 0 {
                        return done;
                    }
                    store.wait_for_work().await;
                    continue;
                };
                turn += 1;
                if turn % 7 == 0 {
                    drop(claimed.lease);
                    continue;
                }
                store.advance_behind(&claimed.lease, JobState::Compiling).unwrap();
                store.finish(claimed.lease, completed(b"{}")).await.unwrap();
                done.push(claimed.job.id);
            }
        });
    }
    let done: Vec<String> = claimers.join_all().await.into_iter().flatten().collect();
    assert_eq!(done.len(), ids.len(), "none twice");
    assert_eq!(done.into_iter().collect::<std::collections::BTreeSet<_>>(), ids, "none lost");
    let counts = stores[1].counts(Visibility::All).await.unwrap();
    assert_eq!((counts.of(JobState::Completed), counts.total()), (120, 120));
}

async fn bounds_hold(fresh: Fresh) {
    let store = fresh.store().await;
    for wrong in [
        NewJob { owner: "o".repeat(65), ..job("a") },
        NewJob { label: Some("l".repeat(256)), ..job("a") },
        NewJob { label: Some("nul\0".to_owned()), ..job("a") },
        NewJob { idempotency_key: Some(String::new()), ..job("a") },
        NewJob { idempotency_key: Some("k".repeat(256)), ..job("a") },
        NewJob { webhook: Some("w".repeat(2_049)), ..job("a") },
        NewJob { max_attempts: 0, ..job("a") },
    ] {
        let error = store.submit(wrong).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
    }
    assert!(store.submit_all(vec![job("a"); MAX_BATCH + 1]).await.unwrap_err().is_refusal());
    assert_eq!(store.counts(Visibility::All).await.unwrap().total(), 0);
    let (id, lease) = store.submit_leased(job("a")).await.unwrap();
    let error = JobError { code: "c".repeat(1_000), message: "é\0".repeat(10_000) };
    let ending =
        Ending { state: JobState::Failed, report: None, error: Some(error), points: Vec::new() };
    store.finish(lease.unwrap(), ending).await.unwrap();
    let row = store.job(&id.id, Visibility::All).await.unwrap().unwrap();
    assert!(row.error.unwrap().len() <= 3 * MAX_ERROR_BYTES);
}
