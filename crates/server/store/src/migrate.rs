//! Migrations: the versions of the database, and the steps between them.

use sqlx::{AnyConnection, Connection, Executor, Row};

use super::StoreError;
use super::database::{Backend, Database};

/// One migration step: its name, and its statements for each kind of database.
struct Migration {
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($name:literal) => {
        Migration {
            name: $name,
            sqlite: include_str!(concat!("migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("migrations/postgres/", $name, ".sql")),
        }
    };
}

/// All steps, in order. The first creates version 1. A released step is never changed.
const MIGRATIONS: &[Migration] = &[
    migration!("0001_jobs"),
    migration!("0002_history"),
    migration!("0003_arrival"),
    migration!("0004_requirements"),
    migration!("0005_matrices"),
    migration!("0006_different_requirements"),
    migration!("0007_verdict"),
    migration!("0008_kernel"),
    migration!("0009_decision"),
];

/// The version that this program reads and writes.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Key of the lock under which PostgreSQL databases are migrated: "warpgaug" in ASCII.
const LOCK: i64 = 0x7761_7270_6761_7567;

/// Migrates the database to [`VERSION`], or fails and leaves it unchanged.
pub(super) async fn run(
    connection: &mut AnyConnection,
    database: &Database,
) -> Result<(), StoreError> {
    let found = version(connection, database).await?;
    if found == VERSION {
        return Ok(());
    }
    let failed = |version: i64| {
        move |source| match StoreError::database("migrate", &database.place, source) {
            StoreError::Database { place, source, .. } => {
                StoreError::Migration { place, version, source }
            }
            sorted => sorted,
        }
    };
    let began = connection.begin_with(database.begin()).await;
    let mut transaction = began.map_err(failed(found + 1))?;
    if database.backend == Backend::Postgres {
        let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK);
        transaction.execute(lock).await.map_err(failed(found + 1))?;
    }
    // Another process may have migrated the database in the meantime.
    let found = version(&mut transaction, database).await?;
    if found == 0 {
        let table = "CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT PRIMARY KEY, \
                     name TEXT NOT NULL, applied_at BIGINT NOT NULL)";
        transaction.execute(sqlx::raw_sql(table)).await.map_err(failed(1))?;
    }
    for (version, step) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        let sql = match database.backend {
            Backend::Sqlite => step.sqlite,
            Backend::Postgres => step.postgres,
        };
        transaction.execute(sqlx::raw_sql(sql)).await.map_err(failed(version))?;
        let applied = sqlx::query(
            "INSERT INTO schema_versions (version, name, applied_at) VALUES ($1, $2, $3)",
        )
        .bind(version)
        .bind(step.name)
        .bind(super::clock::now());
        transaction.execute(applied).await.map_err(failed(version))?;
        tracing::info!(database = database.place, version, name = step.name, "migrated");
    }
    transaction.commit().await.map_err(failed(VERSION))
}

/// Rejects a SQLite file that is newer or belongs to another program. The check runs before the
/// file is opened for writing, so that not even its journal mode changes.
pub(super) async fn refuse_others(database: &Database) -> Result<(), StoreError> {
    let Some(mut connection) = database.peek().await? else { return Ok(()) };
    let outcome = version(&mut connection, database).await;
    let _ = connection.close().await;
    outcome.map(drop)
}

/// Returns the version of a database; 0 if it is empty.
///
/// # Errors
/// The database is newer or belongs to another program.
pub(super) async fn version(
    connection: &mut AnyConnection,
    database: &Database,
) -> Result<i64, StoreError> {
    let place = &database.place;
    let tables = match database.backend {
        Backend::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1000",
        Backend::Postgres => {
            "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema() \
             LIMIT 1000"
        }
    };
    let rows = sqlx::query(tables).fetch_all(&mut *connection).await;
    let rows = rows.map_err(|source| database.opening(source))?;
    if rows.is_empty() {
        return Ok(0);
    }
    if !rows.iter().any(|row| row.try_get::<String, _>(0).is_ok_and(|n| n == "schema_versions")) {
        return Err(StoreError::Foreign { place: place.clone() });
    }
    let found = found_version(connection, place).await?;
    if found > VERSION {
        return Err(StoreError::Newer { place: place.clone(), found, known: VERSION });
    }
    Ok(found)
}

/// Returns the highest version in the table of versions. Other programs may have a table with this
/// name, so the names of the steps must be those of this crate.
async fn found_version(connection: &mut AnyConnection, place: &str) -> Result<i64, StoreError> {
    let foreign = || StoreError::Foreign { place: place.to_owned() };
    let listed = "SELECT version, name FROM schema_versions ORDER BY version LIMIT 1000";
    let rows = match sqlx::query(listed).fetch_all(connection).await {
        Ok(rows) => rows,
        Err(error) if has_no_such_column(&error) => return Err(foreign()),
        Err(error) => return Err(StoreError::database("read its version", place, error)),
    };
    let mut found = 0;
    for row in &rows {
        let read =
            || Ok::<_, sqlx::Error>((row.try_get::<i64, _>(0)?, row.try_get::<String, _>(1)?));
        let (version, name) = read().map_err(|_| foreign())?;
        let known = usize::try_from(version - 1).ok().and_then(|step| MIGRATIONS.get(step));
        if version < 1 || known.is_some_and(|step| step.name != name) {
            return Err(foreign());
        }
        found = version;
    }
    if found == 0 { Err(foreign()) } else { Ok(found) }
}

/// Returns whether the error is that a statement names a column that its table does not have.
fn has_no_such_column(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    // PostgreSQL has a code for this error, SQLite only a message.
    error.code().as_deref() == Some("42703") || error.message().starts_with("no such column")
}
