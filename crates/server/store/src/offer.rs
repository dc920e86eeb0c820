//! Capabilities of processes, which decide the jobs that they may take. The store does not
//! interpret these texts. The main type is [`Offered`].

use std::sync::{Arc, Mutex, PoisonError};

/// Maximum length of the text of a process's capabilities, bytes.
pub(super) const MAX_OFFER_BYTES: usize = 64 << 10;

/// Maximum length of the text of a job's requirements, bytes.
pub const MAX_REQUIREMENT_BYTES: usize = 1 << 10;

/// Maximum number of distinct requirements of waiting jobs that one claim reads.
pub(super) const MOST_REQUIREMENTS: i64 = 256;

/// A function that returns whether this process may take a job with the given requirements.
pub(super) type Takes = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Capabilities of this process.
#[derive(Clone, Default)]
pub(super) struct Offer {
    /// Text that the other processes read.
    pub(super) text: Option<String>,
    pub(super) takes: Option<Takes>,
}

/// The capabilities, shared with the writer.
#[derive(Clone, Default)]
pub(super) struct Offered(Arc<Mutex<Offer>>);

impl Offered {
    pub(super) fn set(&self, offer: Offer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = offer;
    }

    /// Returns the text that the other processes read.
    pub(super) fn text(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).text.clone()
    }

    /// Returns the function that decides which jobs this process may take. `None` means that it
    /// takes only jobs without requirements.
    pub(super) fn takes(&self) -> Option<Takes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).takes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fresh, on_both};
    use crate::{JobState, NewJob, Store, Visibility};
    use warpgauge_model::ErrorCode;

    on_both![
        jobs_go_to_who_has_what_they_require,
        owners_whose_jobs_are_for_others_keep_nobody_waiting,
        jobs_that_require_many_different_things_are_all_taken,
        a_job_that_comes_back_says_why,
    ];

    fn requiring(owner: &str, requires: Option<&str>) -> NewJob {
        let mut job = NewJob::new(owner, crate::JobKind::Evaluate, b"{}".to_vec());
        job.requires = requires.map(str::to_owned);
        job
    }

    async fn claimed(store: &Store) -> Option<String> {
        let claimed = store.queue().claim().await.unwrap()?;
        let id = claimed.job.id.clone();
        let done = crate::testing::completed(b"{}");
        store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
        store.queue().finish(claimed.lease, done).await.unwrap();
        Some(id)
    }

    async fn jobs_go_to_who_has_what_they_require(fresh: Fresh) {
        let (one, other) = (fresh.store().await, fresh.store().await);
        let mut ids = Vec::new();
        for requires in [Some("red"), None, Some("blue"), Some("red")] {
            ids.push(one.queue().submit(requiring("a", requires)).await.unwrap().id);
        }
        // Without capabilities a process takes only jobs without requirements.
        assert_eq!(claimed(&one).await.as_ref(), Some(&ids[1]));
        assert_eq!(claimed(&one).await, None);
        other
            .membership()
            .offer("blue paint".to_owned(), |requires| requires == "blue")
            .await
            .unwrap();
        one.membership().offer("red paint".to_owned(), |requires| requires == "red").await.unwrap();
        assert_eq!(one.membership().offers_of_others().await.unwrap(), ["blue paint"]);
        assert_eq!(claimed(&other).await.as_ref(), Some(&ids[2]));
        assert_eq!(claimed(&other).await, None);
        // The order is by priority and age, whatever the requirements.
        let urgent = NewJob { priority: 1, ..requiring("a", None) };
        let urgent = one.queue().submit(urgent).await.unwrap().id;
        for expected in [&urgent, &ids[0], &ids[3]] {
            assert_eq!(claimed(&one).await.as_ref(), Some(expected));
        }
        assert_eq!(claimed(&one).await, None);
        other.close().await;
        drop(other);
        one.membership().requeue_expired().await.unwrap();
        assert!(
            one.membership().offers_of_others().await.unwrap().is_empty(),
            "who is gone offers nothing"
        );
    }

    async fn owners_whose_jobs_are_for_others_keep_nobody_waiting(fresh: Fresh) {
        let store = fresh.store().await;
        store.membership().offer(String::new(), |requires| requires == "red").await.unwrap();
        let strange = (0..80).map(|at| requiring(&format!("a{at:02}"), Some("blue"))).collect();
        store.queue().submit_all(strange).await.unwrap();
        let mine = store.queue().submit(requiring("z", Some("red"))).await.unwrap().id;
        let plain = store.queue().submit(requiring("zz", None)).await.unwrap().id;
        assert_eq!(claimed(&store).await, Some(mine));
        assert_eq!(claimed(&store).await, Some(plain));
        assert_eq!(claimed(&store).await, None);
        assert_eq!(store.jobs().counts(Visibility::All).await.unwrap().waiting, 80);
    }

    async fn jobs_that_require_many_different_things_are_all_taken(fresh: Fresh) {
        let store = fresh.store().await;
        store.membership().offer(String::new(), |_| true).await.unwrap();
        let many = MOST_REQUIREMENTS + 10;
        let jobs = (0..many).map(|at| requiring(&format!("a{}", at % 3), Some(&format!("r{at}"))));
        store.queue().submit_all(jobs.collect()).await.unwrap();
        for at in 0..many {
            assert!(claimed(&store).await.is_some(), "{at}");
        }
        assert_eq!(claimed(&store).await, None);
    }

    async fn a_job_that_comes_back_says_why(fresh: Fresh) {
        let store = fresh.store().await;
        let job = NewJob { max_attempts: 2, ..requiring("a", None) };
        let id = store.queue().submit(job).await.unwrap().id;
        let lease = store.queue().claim().await.unwrap().unwrap().lease;
        store.queue().return_to_queue(lease, "the device is gone".to_owned()).await.unwrap();
        let row = store.jobs().find(&id, Visibility::All).await.unwrap().unwrap();
        assert_eq!((row.state, row.attempts), (JobState::Queued, 1));
        assert_eq!(row.error.as_deref(), Some("the device is gone"));
        let again = store.queue().claim().await.unwrap().unwrap();
        assert_eq!((again.job.attempts, again.job.error), (2, None));
        store.queue().return_to_queue(again.lease, "gone again".to_owned()).await.unwrap();
        let row = store.jobs().find(&id, Visibility::All).await.unwrap().unwrap();
        assert_eq!(row.state, JobState::Failed);
        assert_eq!(row.error_code, Some(ErrorCode::AttemptsExhausted));
        assert!(row.error.unwrap().ends_with("2 times; the last attempt: gone again"));
    }
}
