//! Points of the history: what runs showed of cases. What is in a point is its reader's business.

use futures_util::future::BoxFuture;
use sqlx::Row;

use super::writer::{Batch, Write};
use super::{Store, StoreError, Visibility};

/// Points that are kept, of all cases together; the oldest make room.
pub const MAX_POINTS: i64 = 200_000;

/// Longest name of a case, bytes.
pub const MAX_CASE_BYTES: usize = 512;

/// Largest point, bytes.
const MAX_POINT_BYTES: usize = 16 << 10;

/// Every so many points on average the oldest are counted and make room.
const TRIM_EVERY: u64 = 1_024;

/// A point to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPoint {
    /// Who may see it.
    pub owner: String,
    /// The case that it is of.
    pub case: String,
    /// The point, in a form that its reader knows; at most 16 KiB.
    pub body: Vec<u8>,
}

struct Append {
    points: Vec<NewPoint>,
    trim: bool,
}

impl Write for Append {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        const INSERT: &str =
            "INSERT INTO points (id, owner, case_name, body) VALUES ($1, $2, $3, $4)";
        const TRIM: &str = "DELETE FROM points WHERE id <= \
                            (SELECT id FROM points ORDER BY id DESC LIMIT 1 OFFSET $1)";
        Box::pin(async move {
            for point in &self.points {
                let inserted = sqlx::query(INSERT)
                    .bind(uuid::Uuid::now_v7().to_string())
                    .bind(point.owner.as_str())
                    .bind(point.case.as_str())
                    .bind(point.body.as_slice())
                    .execute(&mut *batch.connection)
                    .await;
                inserted.map_err(batch.failed("keep a point of the history"))?;
            }
            if self.trim {
                let trimmed =
                    sqlx::query(TRIM).bind(MAX_POINTS).execute(&mut *batch.connection).await;
                trimmed.map_err(batch.failed("make room in the history"))?;
            }
            Ok(())
        })
    }
}

fn checked(points: Vec<NewPoint>) -> Option<Append> {
    let fits = |point: &NewPoint| {
        point.case.len() <= MAX_CASE_BYTES && point.body.len() <= MAX_POINT_BYTES
    };
    let (points, left): (Vec<_>, Vec<_>) = points.into_iter().partition(fits);
    if !left.is_empty() {
        tracing::warn!(points = left.len(), "points too large for the history are left out");
    }
    // By chance: no count has to be kept, and several processes need not agree.
    let chance = uuid::Uuid::new_v4().as_u64_pair().1 % TRIM_EVERY;
    let trim = chance < points.len() as u64;
    (!points.is_empty()).then_some(Append { points, trim })
}

impl Store {
    /// Keeps points, and waits until they are written.
    pub async fn append_points(&self, points: Vec<NewPoint>) -> Result<(), StoreError> {
        match checked(points) {
            Some(append) => self.writer.write(append).await,
            None => Ok(()),
        }
    }

    /// Keeps points soon, with nobody waiting.
    pub fn append_points_behind(&self, points: Vec<NewPoint>) {
        if let Some(append) = checked(points) {
            self.writer.write_behind(append);
        }
    }

    /// The newest points, newest first: of one case, or of all.
    pub async fn points(
        &self,
        case: Option<&str>,
        who: Visibility<'_>,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let conditions = [("case_name = ", case), ("owner = ", who.owner())];
        let mut sql = "SELECT body FROM points".to_owned();
        let mut values = Vec::new();
        for (condition, value) in conditions {
            let Some(value) = value else { continue };
            sql.push_str(if values.is_empty() { " WHERE " } else { " AND " });
            values.push(value);
            sql.push_str(&format!("{condition}${}", values.len()));
        }
        sql.push_str(&format!(" ORDER BY id DESC LIMIT ${}", values.len() + 1));
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for value in values {
            query = query.bind(value);
        }
        let limit = i64::try_from(limit).unwrap_or(MAX_POINTS).min(MAX_POINTS);
        let failed = self.reader.failed("read the history");
        let rows = query.bind(limit).fetch_all(&self.reader.pool).await.map_err(&failed)?;
        rows.iter().map(|row| row.try_get("body").map_err(&failed)).collect()
    }

    /// Names of the cases that there are points of, and how many of each; at most `limit`.
    pub async fn cases(
        &self,
        who: Visibility<'_>,
        limit: usize,
    ) -> Result<Vec<(String, u64)>, StoreError> {
        const ALL: &str = "SELECT case_name, CAST(COUNT(*) AS BIGINT) AS n FROM points \
                           GROUP BY case_name ORDER BY case_name LIMIT $1";
        const OWN: &str = "SELECT case_name, CAST(COUNT(*) AS BIGINT) AS n FROM points \
                           WHERE owner = $2 GROUP BY case_name ORDER BY case_name LIMIT $1";
        let limit = i64::try_from(limit).unwrap_or(MAX_POINTS);
        let query = match who.owner() {
            None => sqlx::query(ALL).bind(limit),
            Some(owner) => sqlx::query(OWN).bind(limit).bind(owner),
        };
        let failed = self.reader.failed("list the history");
        let rows = query.fetch_all(&self.reader.pool).await.map_err(&failed)?;
        let case = |row: &sqlx::any::AnyRow| {
            let count: i64 = row.try_get("n")?;
            Ok((row.try_get("case_name")?, u64::try_from(count).unwrap_or(0)))
        };
        rows.iter().map(|row| case(row).map_err(&failed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing;

    fn point(owner: &str, case: &str, body: &[u8]) -> NewPoint {
        NewPoint { owner: owner.to_owned(), case: case.to_owned(), body: body.to_vec() }
    }

    #[tokio::test]
    async fn points_are_seen_by_their_owner_newest_first() {
        let fresh = testing::sqlite();
        let store = fresh.store().await;
        let points = vec![point("a", "x", b"1"), point("a", "y", b"2"), point("b", "x", b"3")];
        store.append_points(points).await.unwrap();
        store.append_points_behind(vec![point("a", "x", b"4")]);
        // Written after what was asked for before.
        store.append_points(vec![point("a", "x", b"5")]).await.unwrap();
        let of = async |case, who, limit| store.points(case, who, limit).await.unwrap();
        let a = Visibility::Owner("a");
        assert_eq!(of(Some("x"), a, 9).await, [b"5", b"4", b"1"]);
        assert_eq!(of(Some("x"), a, 1).await, [b"5"]);
        assert_eq!(of(None, Visibility::All, 9).await.len(), 5);
        assert_eq!(of(None, Visibility::Owner("c"), 9).await, Vec::<Vec<u8>>::new());
        let cases = store.cases(a, 9).await.unwrap();
        assert_eq!(cases, [("x".to_owned(), 3), ("y".to_owned(), 1)]);
        assert_eq!(store.cases(Visibility::All, 1).await.unwrap(), [("x".to_owned(), 4)]);
    }

    #[tokio::test]
    async fn what_is_too_large_is_left_out() {
        let fresh = testing::sqlite();
        let store = fresh.store().await;
        let large = vec![0; MAX_POINT_BYTES + 1];
        let points =
            vec![point("", "x", &large), point("", &"x".repeat(600), b""), point("", "y", b"")];
        store.append_points(points).await.unwrap();
        assert_eq!(store.cases(Visibility::All, 9).await.unwrap(), [("y".to_owned(), 1)]);
    }
}
