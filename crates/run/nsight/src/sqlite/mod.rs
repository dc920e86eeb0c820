//! Reads SQLite exports of Nsight Systems. The main function is [`read_export`].
//!
//! The file may be from an untrusted source, and a database can contain code: views, triggers,
//! expressions and virtual tables. The reader uses only plain tables, and reads each with one
//! statement that calls no functions. The database is opened read-only and immutable, extensions
//! are not loaded, and the schema is not trusted. Length of texts, number of rows and time are
//! limited.

mod error;

use std::collections::HashMap;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

pub use error::SqliteExportError;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, Statement};
use warpgauge_metrics::nsys::{ExportError, ExportedActivity, NsysExport, NsysReport};

/// Maximum length of a text or a record, bytes.
const MAX_LENGTH: i32 = 1 << 20;
/// Maximum number of names that are kept from the table `StringIds`.
const MAX_TEXTS: usize = 200_000;
const MAX_TEXT_BYTES: usize = 32 << 20;
/// Number of instructions of SQLite's virtual machine between two checks of the time limit.
const CHECK_EVERY: i32 = 10_000;
/// Time limit for reading an export.
const TIME: Duration = Duration::from_secs(60);

/// Types of events that are ranges: ranges of a thread (push and pop), and ranges of a process
/// (start and end).
const RANGES: [i64; 2] = [59, 60];
/// Numbers of the kinds of copies, each with the name in the reports of `nsys stats`.
const COPIES: [(i64, &str); 13] = [
    (1, "[CUDA memcpy Host-to-Device]"),
    (2, "[CUDA memcpy Device-to-Host]"),
    (3, "[CUDA memcpy Host-to-Array]"),
    (4, "[CUDA memcpy Array-to-Host]"),
    (5, "[CUDA memcpy Array-to-Array]"),
    (6, "[CUDA memcpy Array-to-Device]"),
    (7, "[CUDA memcpy Device-to-Array]"),
    (8, "[CUDA memcpy Device-to-Device]"),
    (9, "[CUDA memcpy Host-to-Host]"),
    (10, "[CUDA memcpy Peer-to-Peer]"),
    (11, "[CUDA memcpy Unified Host-to-Device]"),
    (12, "[CUDA memcpy Unified Device-to-Host]"),
    (13, "[CUDA memcpy Unified Device-to-Device]"),
];

/// Statement that reads the text of an id.
const TEXT: &str = "SELECT value FROM StringIds WHERE id = ?1";

/// Instructions of SQLite's machine that read cells of a table, compare them with a number and
/// return them.
const READING: [&str; 22] = [
    "Init",
    "Transaction",
    "Goto",
    "Halt",
    "OpenRead",
    "Rewind",
    "Next",
    "Column",
    "Rowid",
    "Null",
    "Integer",
    "RealAffinity",
    "Affinity",
    "Variable",
    "IsNull",
    "Ne",
    "SeekRowid",
    "SeekGE",
    "IdxGT",
    "DeferredSeek",
    "Close",
    "ResultRow",
];

/// Reads the kernels, copies, fills, calls and ranges of an export.
///
/// # Errors
/// See [`SqliteExportError`].
pub fn read_export(path: &Path) -> Result<NsysReport, SqliteExportError> {
    read_within(path, TIME)
}

fn read_within(path: &Path, time: Duration) -> Result<NsysReport, SqliteExportError> {
    let database = Database::open(path, time)?;
    let mut export = NsysExport::default();
    let mut texts = Texts::default();
    let mut notes = Vec::new();
    let columns = database.columns("StringIds")?.unwrap_or_default();
    if !["id", "value"].iter().all(|name| columns.iter().any(|column| column == name)) {
        return Err(SqliteExportError::OtherDatabase);
    }
    database.reading(TEXT)?;
    let devices = database.devices()?;
    database.kernels(&mut export, &mut texts, &devices)?;
    database.copies(&mut export, &devices)?;
    database.fillings(&mut export, &devices)?;
    database.calls(&mut export, &mut texts)?;
    let open = database.ranges(&mut export, &mut texts)?;
    if open > 0 {
        notes.push(format!("{open} ranges have no end: they are left out"));
    }
    let graphs = database.graphs()?;
    if graphs > 0 {
        notes.push(format!(
            "{graphs} launches of CUDA graphs are recorded as a whole, so that their kernels are \
             missing: trace with `nsys profile --cuda-graph-trace=node`"
        ));
    }
    if export.is_empty() {
        return Err(if graphs > 0 {
            SqliteExportError::OnlyGraphs
        } else {
            SqliteExportError::Empty
        });
    }
    Ok(export.finish(notes))
}

/// An export of Nsight Systems, opened read-only.
struct Database {
    connection: Connection,
}

/// Texts of the table `StringIds` that have been read.
#[derive(Default)]
struct Texts {
    known: HashMap<i64, String>,
    bytes: usize,
}

impl Database {
    fn open(path: &Path, time: Duration) -> Result<Self, SqliteExportError> {
        // SQLite ignores these files when it opens a database as immutable.
        for end in ["-wal", "-journal"] {
            let mut beside = path.as_os_str().to_owned();
            beside.push(end);
            if std::fs::metadata(&beside).is_ok_and(|found| found.len() > 0) {
                let name = Path::new(&beside).file_name().unwrap_or_default();
                return Err(SqliteExportError::NotClosed(name.to_string_lossy().into_owned()));
            }
        }
        let mut uri = "file:".to_owned();
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                    uri.push(char::from(*byte));
                }
                other => {
                    let _ = write!(uri, "%{other:02x}");
                }
            }
        }
        uri.push_str("?mode=ro&immutable=1");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&uri, flags)?;
        for (setting, value) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        ] {
            connection.set_db_config(setting, value)?;
        }
        for (limit, value) in [
            (Limit::SQLITE_LIMIT_LENGTH, MAX_LENGTH),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
            (Limit::SQLITE_LIMIT_EXPR_DEPTH, 20),
        ] {
            connection.set_limit(limit, value)?;
        }
        let end = Instant::now() + time;
        connection.progress_handler(CHECK_EVERY, Some(move || Instant::now() >= end))?;
        connection.execute_batch("PRAGMA query_only = 1; PRAGMA cell_size_check = 1;")?;
        Ok(Self { connection })
    }

    /// Returns the columns of a table. Returns `None` if the export does not have the table.
    fn columns(&self, table: &'static str) -> Result<Option<Vec<String>>, SqliteExportError> {
        // A table of the file may have the name of a table-valued pragma, but not that of the schema.
        let kinds = "SELECT rootpage > 0 AND sql LIKE 'CREATE TABLE%' FROM main.sqlite_schema \
                     WHERE name = ?1 AND type IN ('table', 'view')";
        let mut kinds = self.connection.prepare(kinds)?;
        let mut rows = kinds.query([table])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        if row.get_ref(0)? != ValueRef::Integer(1) {
            return Err(SqliteExportError::NoTable(table));
        }
        let mut columns =
            self.connection.prepare(&format!("PRAGMA main.table_xinfo(\"{table}\")"))?;
        // In `hidden`, 2 and 3 mean generated columns, whose expressions must not run.
        let named =
            |row: &Row<'_>| Ok((row.get::<_, String>("name")?, row.get::<_, i64>("hidden")?));
        let columns = columns.query_map([], named)?.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(
            columns.into_iter().filter(|(_, hidden)| *hidden == 0).map(|(name, _)| name).collect(),
        ))
    }

    /// Compiles a statement that reads one plain table, and nothing else: its program has only
    /// instructions that read cells. Views, virtual tables and expressions need others.
    fn reading(&self, statement: &str) -> Result<Statement<'_>, SqliteExportError> {
        let mut program = self.connection.prepare(&format!("EXPLAIN {statement}"))?;
        let empty = vec![rusqlite::types::Null; program.parameter_count()];
        let opcodes = program
            .query_map(rusqlite::params_from_iter(empty), |row| row.get::<_, String>("opcode"))?;
        for opcode in opcodes {
            let opcode = opcode?;
            if !READING.contains(&opcode.as_str()) {
                return Err(SqliteExportError::Runs(opcode));
            }
        }
        Ok(self.connection.prepare(statement)?)
    }

    /// Calls `take` for each row of a table. A column that the table lacks has no value.
    fn each(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        mut take: impl FnMut(&Cells<'_>) -> Result<(), SqliteExportError>,
    ) -> Result<(), SqliteExportError> {
        let Some(known) = self.columns(table)? else { return Ok(()) };
        let is_known = |column: &&str| known.iter().any(|known| known == column);
        let of_time = columns.iter().filter(|column| ["start", "end"].contains(*column));
        if let Some(column) = of_time.copied().find(|column| !is_known(column)) {
            return Err(SqliteExportError::NoColumn { table, column });
        }
        let list: Vec<String> = columns
            .iter()
            .map(|column| match is_known(column) {
                true => format!("\"{column}\""),
                false => "NULL".to_owned(),
            })
            .collect();
        let mut statement =
            self.reading(&format!("SELECT {} FROM \"{table}\"", list.join(", ")))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            take(&Cells { row, table, columns })?;
        }
        Ok(())
    }

    /// Returns the names of the devices by their numbers. The names are in the format of the
    /// reports of `nsys stats`.
    fn devices(&self) -> Result<HashMap<u64, String>, SqliteExportError> {
        let mut devices = HashMap::new();
        self.each("TARGET_INFO_GPU", &["id", "name"], |cells| {
            if let (Some(id), Some(name)) = (cells.number(0)?, cells.text(1)?)
                && devices.len() < 1_000
            {
                devices.insert(id, format!("{name} ({id})"));
            }
            Ok(())
        })?;
        Ok(devices)
    }

    fn kernels(
        &self,
        export: &mut NsysExport,
        texts: &mut Texts,
        devices: &HashMap<u64, String>,
    ) -> Result<(), SqliteExportError> {
        const TABLE: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
        let columns = &[
            "start",
            "end",
            "deviceId",
            "streamId",
            "correlationId",
            "demangledName",
            "shortName",
            "registersPerThread",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
        ];
        self.each(TABLE, columns, |cells| {
            let name = cells.integer(5)?.or(cells.integer(6)?);
            let extents = |first: usize| {
                let mut extents = [1; 3];
                for (index, extent) in extents.iter_mut().enumerate() {
                    *extent = cells.number(first + index)?.unwrap_or(1);
                }
                Ok::<_, SqliteExportError>(extents)
            };
            let activity = ExportedActivity {
                name: texts.get(&self.connection, name)?,
                device: &device(devices, cells.number(2)?),
                start: cells.required(0)?,
                end: cells.required(1)?,
                correlation: cells.number(4)?,
                stream: cells.number(3)?,
                grid: Some(extents(8)?),
                block: Some(extents(11)?),
                registers: cells.number(7)?,
                bytes: None,
            };
            export.activity(&activity).map_err(|error| cells.refuse(error))
        })
    }

    fn copies(
        &self,
        export: &mut NsysExport,
        devices: &HashMap<u64, String>,
    ) -> Result<(), SqliteExportError> {
        let columns =
            &["start", "end", "deviceId", "streamId", "correlationId", "bytes", "copyKind"];
        self.each("CUPTI_ACTIVITY_KIND_MEMCPY", columns, |cells| {
            let kind = cells.integer(6)?;
            let name = COPIES.iter().find(|(number, _)| Some(*number) == kind);
            let name = name.map_or("[CUDA memcpy Unknown]", |(_, name)| name);
            self.transfer(export, devices, cells, name)
        })
    }

    fn fillings(
        &self,
        export: &mut NsysExport,
        devices: &HashMap<u64, String>,
    ) -> Result<(), SqliteExportError> {
        let columns = &["start", "end", "deviceId", "streamId", "correlationId", "bytes"];
        self.each("CUPTI_ACTIVITY_KIND_MEMSET", columns, |cells| {
            self.transfer(export, devices, cells, "[CUDA memset]")
        })
    }

    fn transfer(
        &self,
        export: &mut NsysExport,
        devices: &HashMap<u64, String>,
        cells: &Cells<'_>,
        name: &str,
    ) -> Result<(), SqliteExportError> {
        let activity = ExportedActivity {
            name,
            device: &device(devices, cells.number(2)?),
            start: cells.required(0)?,
            end: cells.required(1)?,
            correlation: cells.number(4)?,
            stream: cells.number(3)?,
            bytes: cells.number(5)?,
            ..ExportedActivity::default()
        };
        export.activity(&activity).map_err(|error| cells.refuse(error))
    }

    fn calls(&self, export: &mut NsysExport, texts: &mut Texts) -> Result<(), SqliteExportError> {
        let columns = &["start", "end", "nameId"];
        for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"] {
            self.each(table, columns, |cells| {
                let name = texts.get(&self.connection, cells.integer(2)?)?;
                let (start, end) = (cells.required(0)?, cells.required(1)?);
                export.call(name, start, end).map_err(|error| cells.refuse(error))
            })?;
        }
        Ok(())
    }

    /// Returns the number of launches of CUDA graphs whose kernels are not recorded.
    fn graphs(&self) -> Result<u64, SqliteExportError> {
        let mut graphs = 0;
        self.each("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &["start", "end"], |_| {
            graphs += 1;
            Ok(())
        })?;
        Ok(graphs)
    }

    /// Reads the ranges. Returns the number of ranges without an end.
    fn ranges(&self, export: &mut NsysExport, texts: &mut Texts) -> Result<u64, SqliteExportError> {
        let mut open = 0;
        let columns = &["start", "end", "eventType", "text", "textId"];
        self.each("NVTX_EVENTS", columns, |cells| {
            if !cells.integer(2)?.is_some_and(|kind| RANGES.contains(&kind)) {
                return Ok(());
            }
            let (Some(start), Some(end)) = (cells.integer(0)?, cells.integer(1)?) else {
                open += 1;
                return Ok(());
            };
            let name = match cells.text(3)? {
                Some(text) => text,
                None => texts.get(&self.connection, cells.integer(4)?)?,
            };
            export.range(name, start, end).map_err(|error| cells.refuse(error))
        })?;
        Ok(open)
    }
}

fn device(devices: &HashMap<u64, String>, id: Option<u64>) -> String {
    match id {
        Some(id) => devices.get(&id).cloned().unwrap_or_else(|| format!("GPU ({id})")),
        None => "GPU".to_owned(),
    }
}

impl Texts {
    /// Returns the text of an id. Returns an empty text if the export lacks it.
    fn get(&mut self, connection: &Connection, id: Option<i64>) -> Result<&str, SqliteExportError> {
        const TABLE: &str = "StringIds";
        let Some(id) = id else { return Ok("") };
        if !self.known.contains_key(&id) {
            let mut statement = connection.prepare(TEXT)?;
            let mut rows = statement.query([id])?;
            let text = match rows.next()? {
                Some(row) => Cells { row, table: TABLE, columns: &["value"] }
                    .text(0)?
                    .unwrap_or_default()
                    .to_owned(),
                None => String::new(),
            };
            self.bytes += text.len();
            if self.known.len() == MAX_TEXTS || self.bytes > MAX_TEXT_BYTES {
                let error = ExportError::TooManyNames;
                return Err(SqliteExportError::Row { table: TABLE, error });
            }
            self.known.insert(id, text);
        }
        Ok(self.known.get(&id).map_or("", String::as_str))
    }
}

/// Cells of a row.
struct Cells<'r> {
    row: &'r Row<'r>,
    table: &'static str,
    columns: &'static [&'static str],
}

impl Cells<'_> {
    fn wrong(&self, index: usize, what: &'static str) -> SqliteExportError {
        let column = self.columns.get(index).copied().unwrap_or_default();
        SqliteExportError::Cell { table: self.table, column, what }
    }

    fn refuse(&self, error: ExportError) -> SqliteExportError {
        SqliteExportError::Row { table: self.table, error }
    }

    fn integer(&self, index: usize) -> Result<Option<i64>, SqliteExportError> {
        match self.row.get_ref(index)? {
            ValueRef::Integer(number) => Ok(Some(number)),
            ValueRef::Null => Ok(None),
            _ => Err(self.wrong(index, "a whole number")),
        }
    }

    fn required(&self, index: usize) -> Result<i64, SqliteExportError> {
        self.integer(index)?.ok_or_else(|| self.wrong(index, "a whole number"))
    }

    fn number<T: TryFrom<i64>>(&self, index: usize) -> Result<Option<T>, SqliteExportError> {
        let number = self.integer(index)?;
        let converted = number.map(|number| T::try_from(number));
        converted.transpose().map_err(|_| self.wrong(index, "a number in the range of this column"))
    }

    fn text(&self, index: usize) -> Result<Option<&str>, SqliteExportError> {
        match self.row.get_ref(index)? {
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text);
                text.map(Some).map_err(|_| self.wrong(index, "text in UTF-8"))
            }
            ValueRef::Null => Ok(None),
            _ => Err(self.wrong(index, "a text")),
        }
    }
}

#[cfg(test)]
mod tests;
