//! Uploaded sparse matrices. Each has a name that is unique for its owner. The main type is
//! [`MatrixStore`].

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::access::Access;
use super::objects::Body;
use super::types::MAX_LABEL_BYTES;
use super::writer::{Batch, Write};
use super::{Bulk, RequestReader, StoreError};

/// Maximum number of matrices of one owner.
const MAX_OF_OWNER: i64 = 10_000;

/// A matrix to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMatrix {
    pub owner: String,
    pub name: String,
    /// blake3 of the uploaded file, hex.
    pub hash: String,
    /// Further data, opaque to the store.
    pub detail: Vec<u8>,
    /// Maximum size of all matrices of the owner, bytes; 0 means no limit.
    pub max_bytes: u64,
}

/// A stored matrix, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixRow {
    pub name: String,
    /// blake3 of the uploaded file, hex.
    pub hash: String,
    /// Size of the matrix before compression, bytes.
    pub bytes: u64,
    /// Time of the upload.
    pub created_at: SystemTime,
    /// Further data, opaque to the store.
    pub detail: Vec<u8>,
}

/// Stores uploaded matrices.
pub struct MatrixStore {
    pub(super) access: Access,
}

impl MatrixStore {
    /// Stores a matrix. It replaces the owner's matrix of the same name. Open readers of the
    /// replaced matrix can still read it to its end.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the owner has reached its quota. In that case nothing is stored or
    /// replaced.
    pub async fn put(&self, matrix: NewMatrix, content: Arc<dyn Bulk>) -> Result<(), StoreError> {
        for (field, text, min) in [("name", &matrix.name, 1), ("owner", &matrix.owner, 0)] {
            if !(min..=MAX_LABEL_BYTES).contains(&text.len()) || text.contains('\0') {
                let problem =
                    format!("must have {min} to {MAX_LABEL_BYTES} bytes, none of them NUL");
                return Err(StoreError::Invalid { field, problem });
            }
        }
        let bytes = content.bytes();
        let key = format!("matrices/{}", uuid::Uuid::now_v7());
        let body = self.access.objects.keep_bulk(&key, Vec::new(), vec![content]).await?;
        let put = PutMatrix { matrix, bytes, key: key.clone(), codec: body.codec };
        match self.access.writer.write(put).await {
            Ok(replaced) => {
                self.access.objects.remove(replaced).await;
                Ok(())
            }
            Err(error) => {
                if error.is_refusal() {
                    self.access.objects.remove([key]).await;
                }
                Err(error)
            }
        }
    }

    /// Returns a matrix and its content.
    pub async fn get(
        &self,
        owner: &str,
        name: &str,
    ) -> Result<Option<(MatrixRow, RequestReader)>, StoreError> {
        let failed = self.access.reader.failed("read a matrix");
        let row = sqlx::query(
            "SELECT name, hash, bytes, created_at, detail, codec, object FROM matrices \
             WHERE owner = $1 AND name = $2",
        )
        .bind(owner)
        .bind(name)
        .fetch_optional(&self.access.reader.pool)
        .await
        .map_err(&failed)?;
        let Some(row) = row else { return Ok(None) };
        let found = matrix_of(&row).map_err(&failed)?;
        let body = Body {
            codec: row.try_get("codec").map_err(&failed)?,
            inline: None,
            object: Some(row.try_get("object").map_err(&failed)?),
        };
        Ok(Some((found, self.access.objects.open_body(body).await?)))
    }

    /// Lists an owner's matrices, sorted by name.
    pub async fn list(&self, owner: &str) -> Result<Vec<MatrixRow>, StoreError> {
        let failed = self.access.reader.failed("list matrices");
        let rows = sqlx::query(
            "SELECT name, hash, bytes, created_at, detail FROM matrices \
             WHERE owner = $1 ORDER BY name LIMIT $2",
        )
        .bind(owner)
        .bind(MAX_OF_OWNER)
        .fetch_all(&self.access.reader.pool)
        .await
        .map_err(&failed)?;
        rows.iter().map(matrix_of).collect::<Result<_, _>>().map_err(failed)
    }

    /// Removes a matrix. Returns whether it existed.
    pub async fn delete(&self, owner: &str, name: &str) -> Result<bool, StoreError> {
        let (owner, name) = (owner.to_owned(), name.to_owned());
        let gone = self.access.writer.write(DeleteMatrix { owner, name }).await?;
        let found = gone.is_some();
        self.access.objects.remove(gone).await;
        Ok(found)
    }
}

fn matrix_of(row: &AnyRow) -> Result<MatrixRow, sqlx::Error> {
    Ok(MatrixRow {
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        bytes: u64::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or(0),
        created_at: super::clock::time(row.try_get("created_at")?),
        detail: row.try_get("detail")?,
    })
}

/// A write that stores the row of a matrix whose file exists. It returns the file of the replaced
/// matrix.
struct PutMatrix {
    matrix: NewMatrix,
    bytes: u64,
    key: String,
    codec: i64,
}

impl Write for PutMatrix {
    type Out = Option<String>;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("store a matrix");
            let given = &self.matrix;
            let others = sqlx::query(
                "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM matrices \
                 WHERE owner = $1 AND name <> $2",
            )
            .bind(given.owner.as_str())
            .bind(given.name.as_str())
            .fetch_one(&mut *batch.connection)
            .await
            .map_err(&failed)?;
            let count: i64 = others.try_get(0).map_err(&failed)?;
            let bytes: i64 = others.try_get(1).map_err(&failed)?;
            let bytes = u64::try_from(bytes).unwrap_or(0).saturating_add(self.bytes);
            if count >= MAX_OF_OWNER || (given.max_bytes > 0 && bytes > given.max_bytes) {
                return Err(StoreError::Full(format!(
                    "this key would have {} matrices with {bytes} bytes; {MAX_OF_OWNER} with {} bytes are \
                     allowed (limits.max_matrix_bytes_per_key), delete some",
                    count + 1,
                    given.max_bytes
                )));
            }
            let old = object_of(&given.owner, &given.name, batch).await?;
            sqlx::query(
                "INSERT INTO matrices (owner, name, hash, bytes, created_at, detail, codec, object) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
                 ON CONFLICT (owner, name) DO UPDATE SET hash = $3, bytes = $4, created_at = $5, \
                 detail = $6, codec = $7, object = $8",
            )
            .bind(given.owner.as_str())
            .bind(given.name.as_str())
            .bind(given.hash.as_str())
            .bind(i64::try_from(self.bytes).unwrap_or(i64::MAX))
            .bind(super::clock::now())
            .bind(given.detail.clone())
            .bind(self.codec)
            .bind(self.key.as_str())
            .execute(&mut *batch.connection)
            .await
            .map_err(failed)?;
            // The file is the same after a retry of a commit whose reply was lost.
            Ok(old.filter(|old| *old != self.key))
        })
    }
}

/// Returns the file of a matrix.
async fn object_of(
    owner: &str,
    name: &str,
    batch: &mut Batch<'_>,
) -> Result<Option<String>, StoreError> {
    let failed = batch.failed("find a matrix");
    // If two uploads with one name are concurrent, the second waits and finds the file of the
    // first.
    let lock = if batch.is_postgres() { " FOR UPDATE" } else { "" };
    let sql = format!("SELECT object FROM matrices WHERE owner = $1 AND name = $2{lock}");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(owner)
        .bind(name)
        .fetch_optional(&mut *batch.connection)
        .await
        .map_err(&failed)?;
    row.map(|row| row.try_get(0)).transpose().map_err(failed)
}

/// A write that removes a matrix. It returns the matrix's file.
struct DeleteMatrix {
    owner: String,
    name: String,
}

impl Write for DeleteMatrix {
    type Out = Option<String>;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("remove a matrix");
            let old = object_of(&self.owner, &self.name, batch).await?;
            sqlx::query("DELETE FROM matrices WHERE owner = $1 AND name = $2")
                .bind(self.owner.as_str())
                .bind(self.name.as_str())
                .execute(&mut *batch.connection)
                .await
                .map_err(failed)?;
            Ok(old)
        })
    }
}
