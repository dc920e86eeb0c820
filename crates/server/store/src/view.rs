//! Read-only access to the store. It does not register the process, start a writer or create files.
//! The main type is [`StoreView`].

use std::path::Path;

use super::database::{Backend, Database};
use super::migrate::{self, VERSION};
use super::read::Reader;
use super::{
    JobFilter, JobPage, Page, PointPage, SeriesFilter, SeriesRow, StoreConfig, StoreError,
    Visibility,
};

/// Reads the history and the jobs. Clones are cheap.
#[derive(Clone)]
pub struct StoreView {
    pub(super) reader: Reader,
}

impl StoreView {
    /// Opens the database without changing it, even if other processes use it or its file is
    /// read-only. Returns `None` if there is no database yet.
    ///
    /// # Errors
    ///
    /// The database has another version than this program supports, or belongs to another program.
    pub async fn open(config: &StoreConfig) -> Result<Option<Self>, StoreError> {
        let database = Database::new(&config.url, &config.data_dir, config.durability)?;
        if database.backend == Backend::Sqlite {
            let path = Path::new(&database.place);
            let there = path.try_exists().map_err(|source| {
                let path = path.to_owned();
                StoreError::DataDir { operation: "look into", path, source }
            })?;
            if !there {
                return Ok(None);
            }
        }
        let pool = database.only_readers()?;
        let mut connection = pool.acquire().await.map_err(|source| database.opening(source))?;
        let found = migrate::version(&mut connection, &database).await?;
        drop(connection);
        if found == 0 {
            pool.close().await;
            return Ok(None);
        }
        if found < VERSION {
            return Err(StoreError::Older { place: database.place, found, known: VERSION });
        }
        Ok(Some(Self { reader: Reader { pool, place: database.place, file: None } }))
    }

    /// Returns a page of a case's values, newest first.
    pub async fn series(
        &self,
        filter: &SeriesFilter<'_>,
        page: &Page,
    ) -> Result<PointPage, StoreError> {
        self.reader.series(filter, page).await
    }

    /// Lists the series, sorted by case. The list starts after the case `after`.
    pub async fn cases(
        &self,
        who: Visibility<'_>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SeriesRow>, StoreError> {
        self.reader.all_series(who.owner(), after, limit).await
    }

    /// Returns a page of jobs, newest first.
    pub async fn jobs(&self, filter: &JobFilter<'_>, page: &Page) -> Result<JobPage, StoreError> {
        self.reader.list(filter, page).await
    }

    /// Closes the database.
    pub async fn close(&self) {
        self.reader.pool.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sqlx::{Connection, Executor, Row};

    use super::*;
    use crate::testing::{Fresh, append_points, on_both, point, sqlite};

    on_both!(reads_beside_a_server_and_leaves_no_trace, other_versions_are_refused_as_they_are);

    async fn sql(fresh: &Fresh, sql: &'static str) -> Option<i64> {
        let config = &fresh.config;
        let database = Database::new(&config.url, &config.data_dir, config.durability).unwrap();
        let mut connection = database.connect().await.unwrap();
        let row = connection.fetch_optional(sqlx::raw_sql(sql)).await.unwrap();
        connection.close().await.unwrap();
        row.map(|row| row.try_get(0).unwrap())
    }

    /// Files beside the database, with their sizes.
    fn files(fresh: &Fresh) -> BTreeSet<(String, u64)> {
        let entries = std::fs::read_dir(&fresh.config.data_dir).into_iter().flatten();
        entries
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, entry.metadata().unwrap().len())
            })
            .collect()
    }

    async fn cases(view: &StoreView) -> Vec<String> {
        let series = view.cases(Visibility::All, None, 10).await.unwrap();
        series.into_iter().map(|series| series.case).collect()
    }

    async fn reads_beside_a_server_and_leaves_no_trace(fresh: Fresh) {
        assert!(StoreView::open(&fresh.config).await.unwrap().is_none(), "there is nothing yet");
        let store = fresh.store().await;
        append_points(&store, vec![point("gemm", 1.5)]).await.unwrap();
        let instances = "SELECT COUNT(*) FROM instances";
        let before = sql(&fresh, instances).await;
        let locks = || std::fs::read_dir(fresh.config.data_dir.join("instances")).unwrap().count();
        let locked = locks();
        let view = StoreView::open(&fresh.config).await.unwrap().unwrap();
        assert_eq!(cases(&view).await, ["gemm"]);
        append_points(&store, vec![point("scan", 1.5)]).await.unwrap();
        assert_eq!(cases(&view).await, ["gemm", "scan"], "what comes meanwhile is seen");
        assert_eq!((sql(&fresh, instances).await, locks()), (before, locked));
        view.close().await;
        store.close().await;
        let left = files(&fresh);
        let view = StoreView::open(&fresh.config).await.unwrap().unwrap();
        assert_eq!(cases(&view).await, ["gemm", "scan"]);
        view.close().await;
        assert_eq!(files(&fresh), left);
    }

    async fn other_versions_are_refused_as_they_are(fresh: Fresh) {
        fresh.store().await.close().await;
        sql(&fresh, "INSERT INTO schema_versions VALUES (99, 'of tomorrow', 0)").await;
        let error = StoreView::open(&fresh.config).await.map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
        sql(&fresh, "DELETE FROM schema_versions WHERE version > 1").await;
        let error = StoreView::open(&fresh.config).await.map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Older { found: 1, .. }), "{error}");
        assert!(error.to_string().contains("warpgauge serve"), "{error}");
        assert_eq!(sql(&fresh, "SELECT MAX(version) FROM schema_versions").await, Some(1));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_log_that_a_killed_process_left_is_read_too() {
        let fresh = sqlite();
        let store = fresh.store().await;
        append_points(&store, vec![point("gemm", 1.5)]).await.unwrap();
        // A copy of the files looks as if the process had ended here, without its locks.
        let copy = tempfile::tempdir().unwrap();
        for (name, _) in
            files(&fresh).into_iter().filter(|(name, _)| name.starts_with("warpgauge.db"))
        {
            let (from, to) = (fresh.config.data_dir.join(&name), copy.path().join(&name));
            std::fs::copy(from, to).unwrap();
        }
        let view = StoreView::open(&StoreConfig::new(copy.path())).await.unwrap().unwrap();
        assert_eq!(cases(&view).await, ["gemm"]);
    }
}
