//! Jobs as their callers see them: rows, requests and reports. The main type is [`JobReader`].

use sqlx::Row;

use super::objects::Objects;
use super::read::{Reader, body_of};
use super::{
    JobFilter, JobPage, JobRow, JobStateCounts, Page, RequestReader, StoreError, StoredReport,
    Visibility,
};

/// Reads jobs in any state.
pub struct JobReader {
    pub(super) reader: Reader,
    pub(super) objects: Objects,
}

impl JobReader {
    /// Returns a job, if the caller may see it.
    pub async fn find(&self, id: &str, who: Visibility<'_>) -> Result<Option<JobRow>, StoreError> {
        self.reader.job(id, who).await
    }

    /// Returns the request of a job.
    pub async fn request(&self, id: &str) -> Result<Option<RequestReader>, StoreError> {
        const SQL: &str = "SELECT codec, body, object FROM requests WHERE job_id = $1";
        let Some(row) = self.reader.body_row(SQL, id).await? else { return Ok(None) };
        let body = body_of(&row).map_err(self.reader.failed("read a request"))?;
        self.objects.open_body(body).await.map(Some)
    }

    /// Returns the report of a job that ended with a report.
    pub async fn report(&self, id: &str) -> Result<Option<StoredReport>, StoreError> {
        const SQL: &str =
            "SELECT version, kind, codec, body, object FROM reports WHERE job_id = $1";
        let Some(row) = self.reader.body_row(SQL, id).await? else { return Ok(None) };
        let failed = self.reader.failed("read a report");
        let version: i64 = row.try_get("version").map_err(&failed)?;
        let kind = row.try_get("kind").map_err(&failed)?;
        let body = self.objects.fetch(body_of(&row).map_err(&failed)?).await?;
        Ok(Some(StoredReport { version: u32::try_from(version).unwrap_or(0), kind, body }))
    }

    /// Returns the number of waiting jobs of the same owner and with the same requirements that are
    /// claimed before this one, at most `most`. Returns `None` if the job does not wait.
    pub async fn ahead(&self, id: &str, most: u32) -> Result<Option<u32>, StoreError> {
        self.reader.ahead(id, most).await
    }

    /// Returns a page of jobs, newest first.
    pub async fn list(&self, filter: &JobFilter<'_>, page: &Page) -> Result<JobPage, StoreError> {
        self.reader.list(filter, page).await
    }

    /// Returns the number of jobs by state.
    pub async fn counts(&self, owner: Visibility<'_>) -> Result<JobStateCounts, StoreError> {
        self.reader.counts(owner).await
    }
}
