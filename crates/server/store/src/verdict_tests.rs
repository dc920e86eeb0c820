//! Tests of lists that are filtered by the verdict on a kernel and by the decision of a gate.

use super::testing::{Fresh, completed, job, on_both};
use super::{JobEnding, JobFilter, JobKind, JobRow, NewJob, NewReport, Page, Store};

on_both!(verdicts_and_decisions_filter_lists, an_earlier_version_has_no_decision);

fn ended(verdict: Option<&'static str>, decision: Option<&'static str>) -> JobEnding {
    let worst_case = decision.map(|_| r#"{"name":"a"}"#.to_owned());
    let ending = completed(b"{}");
    let report = ending.report.map(|report| NewReport { verdict, decision, worst_case, ..report });
    JobEnding { report, ..ending }
}

/// Accepts and ends a job. Returns its id.
async fn end(store: &Store, owner: &str, kind: JobKind, ending: JobEnding) -> String {
    let id = store.queue().submit(NewJob { kind, ..job(owner) }).await.unwrap().id;
    let claimed = store.queue().claim().await.unwrap().unwrap();
    assert_eq!(claimed.job.id, id);
    let lease = claimed.lease;
    for state in [super::JobState::Compiling, super::JobState::Profiling] {
        store.queue().advance(&lease, state).await.unwrap();
    }
    store.queue().finish(lease, ending).await.unwrap();
    id
}

/// Returns all jobs that match, read in pages of two.
async fn all(store: &Store, filter: &JobFilter<'_>) -> Vec<JobRow> {
    let mut found = Vec::new();
    let mut page = Page { after: None, limit: 2 };
    loop {
        let got = store.jobs().list(filter, &page).await.unwrap();
        assert!(got.jobs.len() <= 2);
        found.extend(got.jobs);
        let Some(next) = got.next else { return found };
        page.after = Some(next);
    }
}

async fn verdicts_and_decisions_filter_lists(fresh: Fresh) {
    let store = fresh.store().await;
    let mut wrong = Vec::new();
    let mut regressed = Vec::new();
    for owner in ["a", "b"] {
        for _ in 0..3 {
            let ending = ended(Some("wrong"), None);
            wrong.push(end(&store, owner, JobKind::Evaluate, ending).await);
            end(&store, owner, JobKind::Evaluate, ended(Some("correct"), None)).await;
            let ending = ended(Some("correct"), Some("REGRESSION"));
            regressed.push(end(&store, owner, JobKind::Gate, ending).await);
            end(&store, owner, JobKind::Gate, ended(Some("correct"), Some("PASS"))).await;
        }
    }
    store.queue().submit(job("a")).await.unwrap();
    wrong.reverse();
    regressed.reverse();
    let ids = |jobs: Vec<JobRow>| jobs.into_iter().map(|job| job.id).collect::<Vec<_>>();
    let by_verdict = JobFilter { verdict: Some("wrong"), ..JobFilter::default() };
    assert_eq!(ids(all(&store, &by_verdict).await), wrong, "newest first, each once");
    let own = JobFilter { owner: Some("a"), ..by_verdict };
    assert_eq!(ids(all(&store, &own).await), wrong[3..]);
    let by_decision = JobFilter { decision: Some("REGRESSION"), ..JobFilter::default() };
    let found = all(&store, &by_decision).await;
    assert!(found.iter().all(|job| job.decision.as_deref() == Some("REGRESSION")));
    assert!(found.iter().all(|job| job.worst_case.as_deref() == Some(r#"{"name":"a"}"#)));
    assert_eq!(ids(found), regressed);
    let both = JobFilter { kind: Some(JobKind::Gate), verdict: Some("correct"), ..by_decision };
    assert_eq!(ids(all(&store, &both).await), regressed);
    let none = JobFilter { kind: Some(JobKind::Evaluate), ..both };
    assert!(all(&store, &none).await.is_empty());
}

/// A worst case that is too large is left out, and the decision is kept.
async fn an_earlier_version_has_no_decision(fresh: Fresh) {
    let store = fresh.store().await;
    let id = end(&store, "a", JobKind::Gate, ended(Some("correct"), None)).await;
    let row = store.jobs().find(&id, super::Visibility::All).await.unwrap().unwrap();
    assert_eq!((row.decision, row.worst_case), (None, None));
    let mut large = ended(Some("correct"), Some("PASS"));
    if let Some(report) = &mut large.report {
        report.worst_case = Some("x".repeat(5_000));
    }
    let id = end(&store, "a", JobKind::Gate, large).await;
    let row = store.jobs().find(&id, super::Visibility::All).await.unwrap().unwrap();
    assert_eq!((row.decision.as_deref(), row.worst_case), (Some("PASS"), None));
}
