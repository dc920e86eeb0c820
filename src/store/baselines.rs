//! Baselines: code under a name, as its reader wrote it down.

use futures_util::future::BoxFuture;
use sqlx::Row;

use super::objects::Body;
use super::writer::{Batch, Write};
use super::{Store, StoreError};

/// Most baselines of one owner.
pub const MAX_BASELINES: i64 = 1_000;

/// Largest summary, bytes.
const MAX_SUMMARY_BYTES: usize = 256 << 10;

struct Put {
    owner: String,
    name: String,
    summary: Vec<u8>,
    body: Body,
}

impl Write for Put {
    /// The file that the baseline before had.
    type Out = Option<String>;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        const COUNT: &str = "SELECT CAST(COUNT(*) AS BIGINT) FROM baselines WHERE owner = $1";
        const PUT: &str = "INSERT INTO baselines \
                           (owner, name, stored_at, summary, codec, body, object) \
                           VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (owner, name) DO UPDATE \
                           SET stored_at = excluded.stored_at, summary = excluded.summary, \
                           codec = excluded.codec, body = excluded.body, object = excluded.object";
        Box::pin(async move {
            let failed = batch.failed("store a baseline");
            let former = file_of(&self.owner, &self.name, batch).await?;
            let count = sqlx::query(COUNT).bind(self.owner.as_str());
            let row = count.fetch_one(&mut *batch.connection).await.map_err(&failed)?;
            let count: i64 = row.try_get(0).map_err(&failed)?;
            if former.is_none() && count >= MAX_BASELINES {
                let problem =
                    format!("would be baseline {} of {MAX_BASELINES}; remove one", count + 1);
                return Err(StoreError::Invalid { field: "name", problem });
            }
            let put = sqlx::query(PUT)
                .bind(self.owner.as_str())
                .bind(self.name.as_str())
                .bind(super::clock::now())
                .bind(self.summary.as_slice())
                .bind(self.body.codec)
                .bind(self.body.inline.as_deref())
                .bind(self.body.object.as_deref());
            put.execute(&mut *batch.connection).await.map_err(&failed)?;
            Ok(former.flatten())
        })
    }
}

struct Remove {
    owner: String,
    name: String,
}

impl Write for Remove {
    /// Whether there was one, and its file.
    type Out = Option<Option<String>>;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Option<Option<String>>, StoreError>> {
        Box::pin(async move {
            let former = file_of(&self.owner, &self.name, batch).await?;
            let removed = sqlx::query("DELETE FROM baselines WHERE owner = $1 AND name = $2")
                .bind(self.owner.as_str())
                .bind(self.name.as_str())
                .execute(&mut *batch.connection)
                .await;
            removed.map_err(batch.failed("remove a baseline"))?;
            Ok(former)
        })
    }
}

/// The file of a baseline; `None` if there is no such baseline.
async fn file_of(
    owner: &str,
    name: &str,
    batch: &mut Batch<'_>,
) -> Result<Option<Option<String>>, StoreError> {
    let failed = batch.failed("look for a baseline");
    let row = sqlx::query("SELECT object FROM baselines WHERE owner = $1 AND name = $2")
        .bind(owner)
        .bind(name)
        .fetch_optional(&mut *batch.connection)
        .await
        .map_err(&failed)?;
    row.map(|row| row.try_get("object").map_err(&failed)).transpose()
}

impl Store {
    /// Stores a baseline in place of the one of that name. `summary` is what lists show of it.
    pub async fn put_baseline(
        &self,
        owner: &str,
        name: &str,
        summary: Vec<u8>,
        body: Vec<u8>,
    ) -> Result<(), StoreError> {
        if summary.len() > MAX_SUMMARY_BYTES {
            let problem = format!("has a summary of more than {MAX_SUMMARY_BYTES} bytes");
            return Err(StoreError::Invalid { field: "cases", problem });
        }
        let key = format!("baselines/{}", uuid::Uuid::new_v4());
        let body = self.objects.keep(&key, body).await?;
        let file = body.object.clone();
        let put = Put { owner: owner.to_owned(), name: name.to_owned(), summary, body };
        match self.writer.write(put).await {
            Ok(former) => {
                self.objects.remove(former).await;
                Ok(())
            }
            Err(error) => {
                if error.is_refusal() {
                    self.objects.remove(file).await;
                }
                Err(error)
            }
        }
    }

    /// A baseline, as it was stored.
    pub async fn baseline(&self, owner: &str, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        const SQL: &str =
            "SELECT codec, body, object FROM baselines WHERE owner = $1 AND name = $2";
        let failed = self.reader.failed("read a baseline");
        let query = sqlx::query(SQL).bind(owner).bind(name);
        let row = query.fetch_optional(&self.reader.pool).await.map_err(&failed)?;
        let Some(row) = row else { return Ok(None) };
        let body = super::read::body_of(&row).map_err(&failed)?;
        self.objects.fetch(body).await.map(Some)
    }

    /// Summaries of an owner's baselines, by name.
    pub async fn baselines(&self, owner: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        const SQL: &str = "SELECT summary FROM baselines WHERE owner = $1 ORDER BY name LIMIT $2";
        let failed = self.reader.failed("list baselines");
        let query = sqlx::query(SQL).bind(owner).bind(MAX_BASELINES);
        let rows = query.fetch_all(&self.reader.pool).await.map_err(&failed)?;
        rows.iter().map(|row| row.try_get("summary").map_err(&failed)).collect()
    }

    /// Removes a baseline; whether there was one.
    pub async fn delete_baseline(&self, owner: &str, name: &str) -> Result<bool, StoreError> {
        let remove = Remove { owner: owner.to_owned(), name: name.to_owned() };
        let Some(file) = self.writer.write(remove).await? else { return Ok(false) };
        self.objects.remove(file).await;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use crate::store::testing;

    #[tokio::test]
    async fn a_baseline_is_its_owners_and_is_replaced() {
        let fresh = testing::sqlite();
        let store = fresh.store().await;
        let large = (0..300_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes());
        let large = large.collect::<Vec<u8>>();
        store.put_baseline("a", "main", b"s1".to_vec(), large.clone()).await.unwrap();
        store.put_baseline("b", "main", b"sb".to_vec(), b"b".to_vec()).await.unwrap();
        assert_eq!(store.baseline("a", "main").await.unwrap(), Some(large.clone()));
        store.put_baseline("a", "main", b"s2".to_vec(), b"small".to_vec()).await.unwrap();
        store.put_baseline("a", "dev", b"sd".to_vec(), large.clone()).await.unwrap();
        assert_eq!(store.baseline("a", "main").await.unwrap(), Some(b"small".to_vec()));
        assert_eq!(store.baselines("a").await.unwrap(), [b"sd", b"s2"]);
        assert_eq!(store.baseline("c", "main").await.unwrap(), None);
        assert!(!store.delete_baseline("c", "main").await.unwrap());
        assert!(store.delete_baseline("a", "dev").await.unwrap());
        assert_eq!(store.baselines("a").await.unwrap(), [b"s2"]);
        assert_eq!(store.baseline("b", "main").await.unwrap(), Some(b"b".to_vec()));
        // No file is left of what was replaced or removed.
        let files = fresh.directory.path().join("objects/baselines");
        let left = std::fs::read_dir(files).map_or(0, Iterator::count);
        assert_eq!(left, 0);
    }
}
