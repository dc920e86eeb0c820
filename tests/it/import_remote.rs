//! Reports of profilers, sent to a server.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::server::{Answer, Server, data_directory};

/// Fields of a form: name, file name (empty for a text), content.
type Fields<'a> = &'a [(&'a str, &'a str, &'a [u8])];

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");

fn fixture(name: &str) -> Vec<u8> {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read(format!("{root}/tests/fixtures/profile/{name}")).unwrap()
}

/// Sends a form.
fn send(server: &Server, path: &str, fields: Fields<'_>, accept: (&str, &str)) -> Answer {
    let mut body = Vec::new();
    for (name, file, content) in fields {
        let file = if file.is_empty() { String::new() } else { format!("; filename=\"{file}\"") };
        let head = format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--B--\r\n");
    server.post(path, &[("Content-Type", "multipart/form-data; boundary=B"), accept], &body)
}

fn json(server: &Server, path: &str, fields: Fields<'_>) -> (u16, Value) {
    let answer = send(server, path, fields, ("Accept", "*/*"));
    (answer.status, answer.json)
}

#[test]
fn a_server_reads_the_reports_that_the_command_line_reads() {
    let server = Server::start();
    let full = fixture("ncu/2025.3.1-h200-raw_full_base.csv");
    for name in [
        "ncu/2025.3.1-h200-raw_full_base.csv",
        "ncu/2025.3.1-h200-details_full.csv",
        "nsys/2025.3.1-cuda_gpu_trace.txt",
        "nsys/2025.3.1-cuda_gpu_kern_sum.txt",
        "sanitizer/2025.3.1-h200.txt",
    ] {
        let file = format!("{}/tests/fixtures/profile/{name}", env!("CARGO_MANIFEST_DIR"));
        let (code, text, error) = crate::support::run(&["import", "--json", &file]);
        assert_eq!(code, 0, "{error}");
        let here: Value = serde_json::from_str(&text).unwrap();
        let (status, there) = json(&server, "/import", &[("report", name, &fixture(name))]);
        assert_eq!((status, &there), (200, &here), "{name}");
    }
    let some = [("metrics", "", &b"timing, dram_bytes"[..]), ("report", "a.csv", &full)];
    let (status, answer) = json(&server, "/import", &some);
    assert_eq!((status, answer["kind"].as_str()), (200, Some("ncu")));
    assert_eq!(answer["device_metrics"]["metrics"].as_object().unwrap().len(), 3);

    // The order of the fields does not matter.
    let text = String::from_utf8(fixture("nsys/2025.3.1-cuda_gpu_kern_sum.txt")).unwrap();
    let slower = text.replace("2375257", "4750514");
    assert_ne!(text, slower);
    let (before, after) =
        (("against", "a.csv", text.as_bytes()), ("report", "b.csv", slower.as_bytes()));
    for fields in [[before, after], [after, before]] {
        let (status, changes) = json(&server, "/import/changes", &fields);
        assert_eq!(status, 200, "{changes}");
        let slow = &changes["kernels"][0];
        assert!((slow["time_ratio"].as_f64().unwrap() - 2.0).abs() < 1e-6, "{slow}");
        let page = send(&server, "/import/changes", &fields, BROWSER);
        let html = page.text;
        assert!(html.contains("Changes since") && html.contains("href=\"../assets/"), "{html}");
    }
    let page =
        send(&server, "/import", &[("report", "<b>.csv", &full), ("against", "", b"")], BROWSER);
    let html = page.text;
    assert_eq!(page.status, 200, "{html}");
    assert!(html.starts_with("<!DOCTYPE html>") && !html.contains("<b>.csv"), "{html}");
    assert!(html.contains("&lt;b&gt;.csv") && html.contains("href=\"./assets/"), "{html}");
}

#[test]
fn an_sqlite_export_and_a_compressed_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.sqlite");
    let database = rusqlite::Connection::open(&path).unwrap();
    let tables = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES (1, 'scale');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
            streamId INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER,
            gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER,
            blockZ INTEGER, registersPerThread INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1500, 0, 7, 1, 1, 1, 8, 1, 1, 64, 1, 1, 32);";
    database.execute_batch(tables).unwrap();
    drop(database);
    let bytes = std::fs::read(&path).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, &bytes).unwrap();
    let packed = encoder.finish().unwrap();
    let server = Server::start();
    for content in [&bytes, &packed] {
        let (status, answer) = json(&server, "/import", &[("report", "r.sqlite", content)]);
        assert_eq!((status, answer["kind"].as_str()), (200, Some("nsys")), "{answer}");
        assert_eq!(answer["kernels"][0]["name"], "scale");
        assert!((answer["kernels"][0]["total"].as_f64().unwrap() - 1.5e-6).abs() < 1e-15);
    }
}

#[test]
fn a_report_that_cannot_be_read_costs_its_caller_only() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let full = fixture("ncu/2025.3.1-h200-raw_full_base.csv");
    let table = fixture("nsys/2025.3.1-cuda_gpu_kern_sum.txt");
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..300 {
        std::io::Write::write_all(&mut bomb, &vec![b'x'; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    // Names of 16 KiB are accepted, whatever their bytes become in JSON.
    let [many, more] = [16 << 10, (16 << 10) + 1].map(|bytes| "\u{1}".repeat(bytes));
    let cases: [(&str, Fields<'_>, &str, &str); 14] = [
        ("/import", &[], "report", "no such field"),
        ("/import", &[("report", "a", b"")], "report", "is empty"),
        ("/import", &[("report", "a", b"hello")], "report", "ncu --import FILE"),
        ("/import", &[("report", "a.ncu-rep", b"NVR\0\x08\0")], "report", "ncu --import FILE"),
        ("/import", &[("report", "a", b"SQLite format 3\0 cut")], "report", "cannot be read"),
        ("/import", &[("report", "a.gz", &bomb)], "report", "longer than 256 MiB"),
        ("/import", &[("report", "a", &full), ("report", "b", &full)], "report", "more than one"),
        (
            "/import",
            &[("report", "a", &full), ("against", "b", &full)],
            "against",
            "/import/changes",
        ),
        ("/import", &[("report", "a", &full), ("x", "", b"1")], "x", "unknown field"),
        ("/import", &[("report", "a", &full), ("metrics", "", b"nope")], "metrics", "nope"),
        ("/import", &[("metrics", "", b"a"), ("metrics", "", b"b")], "metrics", "several"),
        (
            "/import",
            &[("metrics", "", many.as_bytes()), ("report", "a", b"b")],
            "metrics",
            "no metric",
        ),
        ("/import", &[("metrics", "", more.as_bytes())], "metrics", "more than 16384"),
        (
            "/import/changes",
            &[("report", "a", &full), ("against", "b", &table)],
            "against",
            "same tool",
        ),
    ];
    for (path, fields, field, text) in cases {
        let (status, answer) = json(&server, path, fields);
        assert_eq!((status, answer["path"].as_str()), (400, Some(field)), "{text}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(text), "{text}: {answer}");
        let page = send(&server, path, fields, BROWSER);
        assert_eq!(page.status, 400);
        assert!(page.text.starts_with("<!DOCTYPE html>"), "{text}");
    }
    let wrong = server.post("/import", &[("Content-Type", "text/csv")], b"a");
    assert_eq!(wrong.status, 415);
    assert!(wrong.text.contains("curl -F report=@FILE"));

    // The server works afterwards, and several imports take turns.
    std::thread::scope(|scope| {
        let ask = || json(&server, "/import", &[("report", "a", &full)]);
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        for answer in asked {
            assert_eq!(answer.join().unwrap().0, 200);
        }
    });
    assert_eq!(folders_of_imports(data.path()), Vec::<PathBuf>::new());
}

/// Returns the folders of imports below a folder.
fn folders_of_imports(data: &Path) -> Vec<PathBuf> {
    let mut folders = vec![data.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("import-") {
                found.push(entry.path());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn keys_are_needed_where_a_server_has_them() {
    let server = Server::start_with(&[], &[("WARPGAUGE_API_KEYS", "secret")]);
    let table = fixture("nsys/2025.3.1-cuda_gpu_kern_sum.txt");
    let (status, _) = json(&server, "/import", &[("report", "a", &table)]);
    assert_eq!(status, 401);
    let page = server.get_with("/import", &[BROWSER]);
    assert_eq!(page.status, 401);
    assert!(page.text.contains("API key"), "{}", page.text);
}
