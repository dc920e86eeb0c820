use super::*;

const TABLES: &str = "
    CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, busLocation TEXT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
        deviceId INTEGER NOT NULL, contextId INTEGER, streamId INTEGER, correlationId INTEGER,
        globalPid INTEGER, demangledName INTEGER, shortName INTEGER, registersPerThread INTEGER,
        gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
        streamId INTEGER, correlationId INTEGER, bytes INTEGER, copyKind INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER,
        globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
    CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
        textId INTEGER);
    INSERT INTO StringIds VALUES (1, 'add(float *, int)'), (2, 'cudaLaunchKernel_v7000'),
        (3, 'epoch');
    INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', '');
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (1000, 1400, 0, 1, 7, 11, 0, 1, 1, 32, 64, 2, 1, 256, 1, 1),
        (2000, 2200, 0, 1, 7, 12, 0, 1, 1, 32, 64, 2, 1, 256, 1, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (100, 600, 0, 7, 9, 1000000, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (900, 950, 0, 0, 11, 2, 0);
    INSERT INTO NVTX_EVENTS VALUES (50, 2500, 59, 'step', NULL), (60, 70, 60, NULL, 3),
        (80, NULL, 59, 'open', NULL), (90, NULL, 34, 'mark', NULL);";

fn written(sql: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    // The name has what a URI could take for its own.
    let path = directory.path().join("re port?mode=rwc#1.sqlite");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (directory, path)
}

fn read(sql: &str) -> Result<NsysReport, SqliteExportError> {
    let (_directory, path) = written(sql);
    read_export(&path)
}

fn refused(sql: &str) -> String {
    read(sql).unwrap_err().to_string()
}

#[test]
fn an_export_has_what_its_tables_have() {
    let report = read(TABLES).unwrap();
    let kernel = &report.kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.count), ("add(float *, int)", 2));
    assert!((kernel.total - 600e-9).abs() < 1e-18 && kernel.median.unwrap() > 299e-9);
    assert_eq!(report.memory_time[0].name, "[CUDA memcpy Host-to-Device]");
    assert_eq!(report.memory_size[0].total, 1e6);
    assert_eq!((report.api[0].name.as_str(), report.api[0].count), ("cudaLaunchKernel", 1));
    let ranges: Vec<&str> = report.ranges.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(ranges, ["step", "epoch"]);
    assert_eq!(report.notes, ["1 ranges have no end: they are left out"]);
    let event = &report.trace[0];
    assert_eq!((event.grid, event.block), (Some([64, 2, 1]), Some([256, 1, 1])));
    assert_eq!((event.registers, event.correlation, event.stream), (Some(32), Some(11), Some(7)));
    assert_eq!(event.device, "NVIDIA H200 (0)");
    let (_, timeline) = &report.timelines[0];
    assert!((timeline.busy - 1100e-9).abs() < 1e-15 && timeline.gaps == 2);
}

#[test]
fn databases_that_are_no_exports_are_refused_by_name() {
    assert!(refused("CREATE TABLE t (a)").contains("not an export of Nsight Systems"));
    let empty = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)";
    assert!(refused(empty).contains("no kernels"));
    let view = format!(
        "{TABLES} ALTER TABLE NVTX_EVENTS RENAME TO n; CREATE VIEW NVTX_EVENTS AS SELECT * FROM n;"
    );
    assert!(refused(&view).contains("`NVTX_EVENTS` is not a plain table"), "{}", refused(&view));
    let cell = format!("{TABLES} UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET start = 'soon';");
    assert!(refused(&cell).contains("column `start`"), "{}", refused(&cell));
    let backwards = format!("{TABLES} UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = 1;");
    assert!(refused(&backwards).contains("ends before it starts"));
    let register = format!("{TABLES} UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = -1;");
    assert!(refused(&register).contains("column `gridX`"));
    let long = format!("{TABLES} UPDATE StringIds SET value = hex(zeroblob(600000));");
    assert!(refused(&long).contains("more than 1048576 bytes"), "{}", refused(&long));
}

/// A generated column can hide a computation that never ends.
#[test]
fn a_computed_column_is_not_computed() {
    let sql = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,
            nameId INTEGER AS (start + 1));
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end) VALUES (1, 2);";
    let report = read(sql).unwrap();
    assert_eq!((report.api[0].name.as_str(), report.api[0].count), ("", 1));
}

#[test]
fn reading_ends_with_its_time_and_changes_nothing() {
    let many = format!(
        "{TABLES} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i, i + 1, 0, 0, i, 2, 0 FROM n;"
    );
    let (directory, path) = written(&many);
    let before = std::fs::read(&path).unwrap();
    let error = read_within(&path, Duration::ZERO).unwrap_err();
    assert!(matches!(error, SqliteExportError::TooSlow), "{error}");
    assert_eq!(read_export(&path).unwrap().api[0].count, 20_001);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let files = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(files, 1, "no journal and no other file");
}

/// A database that is cut, or has a changed byte anywhere, is refused or read, and nothing else.
#[test]
fn damaged_databases_do_no_harm() {
    let (directory, path) = written(TABLES);
    let whole = std::fs::read(&path).unwrap();
    let damaged = directory.path().join("damaged.sqlite");
    for step in 0..whole.len() / 61 {
        let mut bytes = whole.clone();
        bytes[step * 61] ^= 1 << (step % 8);
        std::fs::write(&damaged, &bytes).unwrap();
        let _ = read_export(&damaged);
        if step % 8 == 0 {
            std::fs::write(&damaged, &whole[..step * 61]).unwrap();
            let _ = read_export(&damaged);
        }
    }
}

#[test]
fn code_in_a_database_does_not_run() {
    let generated = TABLES.replace(
        "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, other TEXT, \
         value AS (instr(hex(zeroblob(50)), 'x')))",
    );
    let generated = generated.replace("INTO StringIds VALUES", "INTO StringIds (id, other) VALUES");
    assert!(refused(&generated).contains("no table `StringIds` with the columns"));
    let mut database = Database { connection: Connection::open_in_memory().unwrap() };
    let tables = "CREATE TABLE a (x INTEGER, y AS (abs(x))); CREATE VIRTUAL TABLE r USING \
                  rtree_i32(id, low, high); CREATE VIEW v AS SELECT x FROM a WHERE abs(x) > 1;";
    database.connection.execute_batch(tables).unwrap();
    for statement in ["SELECT y FROM a", "SELECT id FROM r", "SELECT x FROM v"] {
        let error = database.reading(statement).err().unwrap_or_else(|| panic!("{statement}"));
        assert!(matches!(error, SqliteExportError::Runs(_)), "{statement}: {error}");
    }
    assert!(database.reading("SELECT x FROM a").is_ok());
    // A table that has the name of a table-valued pragma does not decide what a table is.
    let (_directory, path) = written(
        "CREATE TABLE pragma_table_list (schema, name, type); INSERT INTO pragma_table_list VALUES \
         ('main', 'r', 'table'), ('main', 'v', 'table'); CREATE TABLE a (x INTEGER); CREATE VIRTUAL \
         TABLE r USING rtree_i32(id, low, high); CREATE VIEW v AS SELECT x FROM a;",
    );
    database = Database::open(&path, TIME).unwrap();
    for table in ["r", "v"] {
        let error = database.columns(table).unwrap_err();
        assert!(matches!(error, SqliteExportError::NoTable(_)), "{table}: {error}");
    }
    assert_eq!(database.columns("a").unwrap().unwrap(), ["x"]);
    assert!(database.columns("none").unwrap().is_none());
}

#[test]
fn a_database_that_is_still_written_is_refused() {
    let (_directory, path) = written(TABLES);
    for end in ["-wal", "-journal"] {
        let mut beside = path.clone().into_os_string();
        beside.push(end);
        std::fs::write(&beside, "").unwrap();
        read_export(&path).unwrap();
        std::fs::write(&beside, "pages").unwrap();
        let error = read_export(&path).unwrap_err().to_string();
        assert!(error.contains(end) && error.contains("wal_checkpoint"), "{error}");
        std::fs::remove_file(&beside).unwrap();
    }
}

#[test]
fn graphs_that_are_recorded_as_a_whole_are_named() {
    let graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, graphId INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2, 1), (3, 4, 1);";
    let report = read(&format!("{TABLES}{graphs}")).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("2 launches of CUDA graphs")));
    let only = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);";
    assert!(refused(&format!("{only}{graphs}")).contains("--cuda-graph-trace=node"));
}

#[test]
fn missing_columns_and_long_texts_have_their_own_reasons() {
    let without = TABLES.replace(
        "NVTX_EVENTS (start INTEGER, end INTEGER,",
        "NVTX_EVENTS (start INTEGER, stop INTEGER,",
    );
    assert!(refused(&without).contains("table `NVTX_EVENTS` has no column `end`"));
    let long =
        format!("{TABLES} UPDATE StringIds SET value = hex(zeroblob(1000000)) WHERE id = 1;");
    assert!(refused(&long).contains("more than 1048576 bytes"), "{}", refused(&long));
}
