//! Tests of artifacts, deliveries, baselines and the history, on SQLite and on PostgreSQL.

use std::time::{Duration, SystemTime};

use super::testing::{Fresh, append_points, files, job, on_both, point};
use super::*;

on_both!(
    ends_are_announced,
    artifacts_give_way,
    what_is_old_goes,
    history_is_kept,
    baselines_are_promoted,
);

async fn ends_are_announced(fresh: Fresh) {
    let store = fresh.store().await;
    let webhook = Some("https://example.test/hook".to_owned());
    let id = store.queue().submit(NewJob { webhook, ..job("a") }).await.unwrap().id;
    assert!(store.deliveries().take_due(10).await.unwrap().is_empty(), "it has not ended");
    store.queue().cancel(&id, Visibility::All).await.unwrap();
    let due = store.deliveries().take_due(10).await.unwrap();
    assert_eq!((due.len(), due[0].attempt, due[0].job.as_str()), (1, 1, id.as_str()));
    assert!(store.deliveries().take_due(10).await.unwrap().is_empty(), "it is being delivered");
    let again = DeliveryOutcome::RetryAt(SystemTime::now(), "503".to_owned());
    store.deliveries().settle(&id, again).await.unwrap();
    assert_eq!(store.deliveries().take_due(10).await.unwrap()[0].attempt, 2);
    store.deliveries().settle(&id, DeliveryOutcome::Delivered).await.unwrap();
    let late = DeliveryOutcome::RetryAt(SystemTime::UNIX_EPOCH, "late".to_owned());
    store.deliveries().settle(&id, late).await.unwrap();
    assert!(store.deliveries().take_due(10).await.unwrap().is_empty());
}

async fn artifacts_give_way(mut fresh: Fresh) {
    fresh.config.artifacts_max_bytes = 300_000;
    let store = fresh.store().await;
    let id = store.queue().submit(job("a")).await.unwrap().id;
    // Incompressible bytes.
    let noise = |seed: u8| -> Vec<u8> {
        let mut bytes = vec![0; 100_000];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        bytes
    };
    for seed in 0..4 {
        store.artifacts().put(&id, &format!("{seed}"), "log", noise(seed)).await.unwrap();
    }
    let kept = store.artifacts().list(&id).await.unwrap();
    let gone: Vec<bool> = kept.iter().map(|artifact| artifact.gone).collect();
    assert_eq!(gone, [true, false, false, false]);
    assert_eq!(store.artifacts().get(&id, "0").await.unwrap().unwrap().bytes, None);
    assert_eq!(store.artifacts().get(&id, "3").await.unwrap().unwrap().bytes, Some(noise(3)));
    assert_eq!(store.artifacts().get(&id, "none").await.unwrap(), None);
    store.artifacts().put(&id, "large", "log", noise(9).repeat(4)).await.unwrap();
    assert!(store.artifacts().get(&id, "large").await.unwrap().unwrap().artifact.gone);
    let nobody = store.artifacts().put("nobody", "x", "log", noise(1)).await.unwrap_err();
    assert!(nobody.is_refusal());
    store.queue().cancel(&id, Visibility::All).await.unwrap();
    store
        .cleaner()
        .clean_up(&Retention { max_age: Some(Duration::ZERO), ..Retention::default() })
        .await
        .unwrap();
    let left = files(&fresh.config.data_dir.join("objects"));
    assert!(left.is_empty(), "{left:?}");
}

async fn what_is_old_goes(fresh: Fresh) {
    let store = fresh.store().await;
    let eldest = store.queue().submit(job("a")).await.unwrap().id;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(store.queue().submit(job("a")).await.unwrap().id);
    }
    for id in &ids[..8] {
        store.queue().cancel(id, Visibility::All).await.unwrap();
    }
    let policy = Retention { max_jobs: 3, ..Retention::default() };
    assert_eq!(store.cleaner().clean_up(&policy).await.unwrap().jobs, 5);
    assert!(
        store.jobs().find(&ids[4], Visibility::All).await.unwrap().is_none(),
        "the oldest went"
    );
    assert!(store.jobs().find(&ids[5], Visibility::All).await.unwrap().is_some());
    let page = Page { after: Some(ids[2].clone()), limit: 5 };
    let rest = store.jobs().list(&JobFilter::default(), &page).await.unwrap();
    let rest: Vec<&str> = rest.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(rest, [&eldest], "a page goes on after a job that has gone");
    let policy = Retention { max_bytes: 1, ..Retention::default() };
    assert_eq!(store.cleaner().clean_up(&policy).await.unwrap().jobs, 3);
    let counts = store.jobs().counts(Visibility::All).await.unwrap();
    assert_eq!((counts.total(), counts.waiting), (3, 3), "what has not ended stays");
    let stray = fresh.config.data_dir.join("objects/jobs/aa/x/report-stray");
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, "left by a crash").unwrap();
    let unfinished = fresh.config.data_dir.join("objects/baselines/x#12");
    std::fs::create_dir_all(unfinished.parent().unwrap()).unwrap();
    std::fs::write(&unfinished, "left half way").unwrap();
    assert_eq!(store.cleaner().remove_leftovers(Duration::from_secs(600)).await.unwrap(), 0);
    assert_eq!(store.cleaner().remove_leftovers(Duration::ZERO).await.unwrap(), 2);
    assert!(!stray.exists() && !unfinished.exists());
}

async fn history_is_kept(fresh: Fresh) {
    let store = fresh.store().await;
    let points = (0..10).map(|value| point("gemm", f64::from(value))).collect();
    append_points(&store, points).await.unwrap();
    append_points(&store, vec![point("scan", 1.5)]).await.unwrap();
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
    let odd = append_points(&store, vec![point("gemm", 1.0), point("gemm", f64::NAN)]).await;
    assert!(odd.unwrap_err().is_refusal());
    let policy = Retention { max_points: Some(1), ..Retention::default() };
    assert_eq!(store.cleaner().clean_up(&policy).await.unwrap().points, 10);
    let cases = store.view().cases(Visibility::All, None, 10).await.unwrap();
    assert_eq!((cases.len(), cases[0].case.as_str()), (1, "scan"));
}

async fn baselines_are_promoted(fresh: Fresh) {
    let store = fresh.store().await;
    let baseline = |body: &[u8], promote| NewBaselineRow {
        owner: "a".to_owned(),
        name: "main".to_owned(),
        pin: "H200/570/events".to_owned(),
        job: None,
        body: body.to_vec(),
        promote,
    };
    let first = store.baselines().put(baseline(b"1", true)).await.unwrap();
    let second = store.baselines().put(baseline(&[2; 200_000], false)).await.unwrap();
    let body = async || {
        let found = store.baselines().promoted("a", "main", "H200/570/events").await.unwrap();
        found.map(|found| found.body.len())
    };
    assert_eq!(body().await, Some(1));
    assert!(!store.baselines().promote(&second, Visibility::Owner("b")).await.unwrap());
    assert!(store.baselines().promote(&second, Visibility::Owner("a")).await.unwrap());
    assert_eq!(body().await, Some(200_000));
    let all = store.baselines().list(Visibility::All, Some("main"), 10).await.unwrap();
    let flags: Vec<_> = all.iter().map(|one| (one.id == first, one.promoted)).collect();
    assert_eq!(flags, [(false, true), (true, false)]);
    assert!(store.baselines().delete(&second, Visibility::All).await.unwrap());
    assert_eq!(body().await, None, "nothing takes its place by itself");
    assert!(store.baselines().get(&first, Visibility::Owner("a")).await.unwrap().is_some());
}
