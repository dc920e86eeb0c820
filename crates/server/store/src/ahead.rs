//! The place of a job in the queue of its owner: [`Reader::ahead`].

use sqlx::{AssertSqlSafe, Row};

use super::StoreError;
use super::claim::indexed;
use super::read::Reader;

impl Reader {
    /// Returns the number of waiting jobs of the same owner and with the same requirements that are
    /// claimed before this one, at most `most`. Returns `None` if the job does not wait.
    ///
    /// The query reads at most `2 * most` entries of the index, independent of the number of jobs.
    pub(super) async fn ahead(&self, id: &str, most: u32) -> Result<Option<u32>, StoreError> {
        const WAITING: &str = "state = 'queued' AND holder IS NULL";
        let failed = self.failed("read the queue");
        let own = format!(
            "SELECT owner, requires, priority, arrival FROM jobs WHERE id = $1 AND {WAITING}"
        );
        let own = sqlx::query(AssertSqlSafe(own)).bind(id).fetch_optional(&self.pool).await;
        let Some(own) = own.map_err(&failed)? else { return Ok(None) };
        let requires: Option<String> = own.try_get("requires").map_err(&failed)?;
        let which = if requires.is_some() { "= $5" } else { "IS NULL" };
        // Only SQLite has a file. By itself it would read the waiting jobs of all owners.
        let indexed = indexed("jobs_waiting", self.file.is_none());
        let before = |place: &str| {
            format!(
                "(SELECT COUNT(*) FROM (SELECT 1 FROM jobs{indexed} WHERE owner = $1 AND {WAITING} \
                 AND requires {which} AND {place} LIMIT $4) AS earlier)"
            )
        };
        let count = format!(
            "SELECT {} + {}",
            before("priority > $2"),
            before("priority = $2 AND arrival < $3")
        );
        let text = |column: &str| own.try_get::<String, _>(column).map_err(&failed);
        let number = |column: &str| own.try_get::<i64, _>(column).map_err(&failed);
        let query = sqlx::query(AssertSqlSafe(count))
            .bind(text("owner")?)
            .bind(number("priority")?)
            .bind(number("arrival")?)
            .bind(i64::from(most));
        let query = match requires {
            Some(requires) => query.bind(requires),
            None => query,
        };
        let row = query.fetch_one(&self.pool).await.map_err(&failed)?;
        let found: i64 = row.try_get(0).map_err(&failed)?;
        Ok(Some(u32::try_from(found).unwrap_or(u32::MAX).min(most)))
    }
}

#[cfg(test)]
mod tests {
    use crate::NewJob;
    use crate::testing::{Fresh, job, on_both};

    on_both!(a_waiting_job_knows_its_place);

    async fn a_waiting_job_knows_its_place(fresh: Fresh) {
        let store = fresh.store().await;
        let accept = async |job: NewJob| store.queue().submit(job).await.unwrap().id;
        let first = accept(job("a")).await;
        let second = accept(job("a")).await;
        let other = accept(job("b")).await;
        let urgent = accept(NewJob { priority: 5, ..job("a") }).await;
        let elsewhere = NewJob { requires: Some("{\"tags\":[\"x\"]}".to_owned()), ..job("a") };
        let elsewhere = accept(elsewhere).await;
        let ahead = async |id: &str| store.jobs().ahead(id, 10).await.unwrap();
        assert_eq!(ahead(&urgent).await, Some(0));
        assert_eq!(ahead(&first).await, Some(1));
        assert_eq!(ahead(&second).await, Some(2));
        assert_eq!(ahead(&other).await, Some(0), "owners take turns");
        assert_eq!(ahead(&elsewhere).await, Some(0));
        assert_eq!(store.jobs().ahead(&second, 1).await.unwrap(), Some(1), "bounded");
        store.queue().cancel(&urgent, crate::Visibility::All).await.unwrap();
        assert_eq!(ahead(&second).await, Some(1));
        assert_eq!((ahead(&urgent).await, ahead("nobody").await), (None, None));
        let claimed = store.queue().claim().await.unwrap().unwrap();
        assert_eq!(ahead(&claimed.job.id).await, None, "it does not wait");
    }
}
