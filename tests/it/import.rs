//! `warpgauge import` with files of NVIDIA's tools.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{outcome, run, warpgauge};

#[path = "../../fuzz/src/harness.rs"]
mod harness;

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/profile/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn json(args: &[&str]) -> Value {
    let (code, text, error) = run(&[&["import", "--json"], args].concat());
    assert_eq!(code, 0, "{error}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_page_of_nsight_compute() {
    let file = fixture("ncu/2025.3.1-h200-raw_full_base.csv");
    let answer = json(&[&file]);
    assert_eq!(answer["kind"], "ncu");
    let metrics = &answer["device_metrics"];
    assert_eq!(metrics["source"], "ncu");
    assert_eq!(metrics["kernels"].as_array().unwrap().len(), 5);
    assert_eq!(metrics["metrics"]["duration"]["unit"], "s");
    assert!(metrics["metrics"]["flop_count"]["value"].is_number(), "it follows from the rates");
    let some = json(&[&file, "--metrics", "timing,dram_bytes"]);
    assert_eq!(some["device_metrics"]["metrics"].as_object().unwrap().len(), 3);

    let (code, table, _) = run(&["import", &file]);
    assert_eq!(code, 0);
    for text in [
        "kernels by total time",
        "2 ×  dram     vector_add(",
        "achieved_occupancy",
        "have no value",
    ] {
        assert!(table.contains(text), "{text} in\n{table}");
    }
}

#[test]
fn tables_of_nsight_systems_and_findings() {
    let answer = json(&[&fixture("nsys/2025.3.1-cuda_gpu_trace.txt")]);
    assert_eq!(answer["kind"], "nsys");
    assert!(answer["timelines"][0]["longest_gap"].as_f64().unwrap() > 1e-5);
    let (_, table, _) = run(&["import", &fixture("nsys/2025.3.1-cuda_gpu_kern_sum.txt")]);
    assert!(table.contains("matmul_tiled"), "{table}");
    let (_, table, _) = run(&["import", &fixture("sanitizer/2025.3.1-h200.txt")]);
    assert!(table.contains("256 × shared_race: race(float *) at k.cu:10"), "{table}");
}

#[test]
fn compressed_files_and_pages_of_what_was_imported() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).display().to_string();
    let table = fixture("nsys/2025.3.1-cuda_gpu_kern_sum.txt");
    let (packed, page) = (place("table.csv.gz"), place("page.html"));
    let file = std::fs::File::create(&packed).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    encoder.write_all(&std::fs::read(&table).unwrap()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(json(&[&packed]), json(&[&table]));

    let (code, shown, error) = run(&["import", &packed, "--html", &page]);
    assert_eq!(code, 0, "{error}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(shown.contains("matmul_tiled") && html.contains("matmul_tiled"));
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("import <span"), "{html}");
    let (code, _, error) = run(&["import", &table, "--against", &packed, "--html", &page]);
    assert_eq!(code, 0, "{error}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("Changes since") && html.contains("table.csv.gz"), "{html}");

    std::fs::write(&packed, &std::fs::read(&packed).unwrap()[..200]).unwrap();
    let (code, _, error) = run(&["import", &packed]);
    assert!(code != 0 && error.contains("cut off"), "{error}");
}

#[test]
fn an_sqlite_export_of_nsight_systems() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.sqlite");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
             CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
                 demangledName INTEGER);
             INSERT INTO StringIds VALUES (1, 'add(float *)');
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 400, 0, 1), (500, 600, 0, 1);",
        )
        .unwrap();
    drop(database);
    let path = path.display().to_string();
    let answer = json(&[&path]);
    assert_eq!(
        (&answer["kind"], &answer["kernels"][0]["name"]),
        (&"nsys".into(), &"add(float *)".into())
    );
    assert_eq!(
        (&answer["kernels"][0]["count"], &answer["timelines"][0]["gaps"]),
        (&2.into(), &1.into())
    );
    let (code, table, error) = run(&["import", &path]);
    assert!(code == 0 && table.contains("add(float *)"), "{table}{error}");
    std::fs::write(&path, b"SQLite format 3\0 and nothing else").unwrap();
    let (code, _, error) = run(&["import", &path]);
    assert!(code != 0 && error.contains("cannot be read"), "{error}");
}

#[test]
fn what_cannot_be_read_says_why() {
    let refused = |args: &[&str]| {
        let (code, out, error) = run(&[&["import"], args].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        error
    };
    let no_kernel = refused(&[&fixture("ncu/2025.3.1-h200-err_name.csv")]);
    assert!(no_kernel.contains("No kernels were profiled"), "{no_kernel}");
    assert!(refused(&[&fixture("ncu/none.csv")]).contains("could not read"));
    let file = fixture("ncu/2025.3.1-h200-raw_metrics.csv");
    assert!(refused(&[&file, "--metrics", "bogus"]).contains("`bogus`"));
    let near = refused(&[&file, "--metrics", "dram_throughputs"]);
    assert!(near.contains("similar names are dram_throughput,"), "{near}");
    let neither = refused(&[&format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"))]);
    assert!(neither.contains("neither a page of Nsight Compute"), "{neither}");
}

/// A text as a file that a user has.
fn saved(directory: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What was put together, cut or saved anew is right, refused or marked, in both forms.
#[test]
fn files_that_were_put_together() {
    let home = tempfile::tempdir().unwrap();
    let first = "ID,Process ID,Kernel Name,gpu__time_duration.sum,launch__registers_per_thread\n\
                 ,,,msecond,register/thread\n0,7,k,5.5850,32\n";
    let second = "ID,Process ID,Kernel Name,dram__bytes.sum,launch__registers_per_thread,\
                  gpu__time_duration.sum,l1tex__t_sector_hit_rate.pct\n,,,Mbyte,register/thread,\
                  usecond,%\n0,8,j,33.5,16,5.5850,250\n\"1\",\"9\n";
    let file = saved(&home, "both.csv", &format!("{first}{second}"));
    let answer = json(&[&file]);
    let kernels = answer["device_metrics"]["kernels"].as_array().unwrap();
    let told: Vec<(f64, f64)> = kernels
        .iter()
        .map(|kernel| {
            let value = |id: &str| kernel["metrics"][id]["value"].as_f64().unwrap();
            (value("duration"), value("registers_per_thread"))
        })
        .collect();
    assert_eq!(told, [(5.585e-3, 32.0), (5.585e-6, 16.0)]);
    let notes = answer["notes"].to_string();
    let (code, table, _) = run(&["import", &file]);
    assert_eq!(code, 0);
    for words in ["line 4, another page begins", "250 % exceeds the possible maximum", "is cut off"]
    {
        assert!(notes.contains(words), "{words} in {notes}");
        assert!(table.contains(words), "{words} in {table}");
    }
    let page = std::fs::read_to_string(fixture("ncu/2025.3.1-h200-raw_metrics.csv")).unwrap();
    let log = std::fs::read_to_string(fixture("sanitizer/2025.3.1-h200.txt")).unwrap();
    let file = saved(&home, "tools.txt", &(page + &log));
    let (code, _, error) = run(&["import", &file]);
    assert_eq!(code, 2);
    assert!(error.contains("a page of Nsight Compute and a log of compute-sanitizer"), "{error}");
}

/// Calls and other tables are not taken for what a GPU did.
#[test]
fn tables_of_other_things_are_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let calls = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n\
                 500,300,cudaLaunchKernel,0,101,1,1,20,python3\n";
    let system = "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n100.0,5,1,5.0,poll\n";
    let events = "Time (%),Total Time (ns),Count,Avg (ns),Name\n100.0,5,1,5.0,Wait@k.c:4\n";
    let kernels = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100.0,5,1,5.0,Parallel\n";
    for (name, text, what) in [
        ("calls.csv", calls, "calls of the CUDA API, one by one"),
        ("system.csv", system, "an API other than CUDA"),
        ("events.csv", events, "OpenACC"),
        ("report1_openmp_sum.csv", kernels, "OpenMP"),
    ] {
        let (code, out, error) = run(&["import", &saved(&home, name, text)]);
        assert_eq!((code, out.as_str()), (2, ""), "{name}: {error}");
        assert!(error.contains(what) && error.contains("line 1"), "{name}: {error}");
    }
    let answer = json(&[&saved(&home, "all.csv", &format!("{kernels}\n{system}\n{events}"))]);
    assert_eq!(answer["kernels"].as_array().unwrap().len(), 1);
    assert_eq!(answer["api"], serde_json::json!([]));
    assert_eq!(answer["notes"].as_array().unwrap().len(), 2, "{answer}");
}

/// A report that only Nsight Compute reads, where there is no Nsight Compute.
#[test]
fn a_report_without_the_tool_is_told_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let mut child = warpgauge(home.path(), &["import", "-"])
        .env("PATH", home.path())
        .env_remove("CUDA_HOME")
        .env_remove("CUDA_PATH")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"NVR\0\x01\x02").unwrap();
    let (code, _, error) = outcome(child.wait_with_output().unwrap());
    // Where the tool is in one of its usual places, it refuses the file.
    assert!(code == 1 || code == 2, "{code}: {error}");
    assert!(error.contains("--page raw") && error.contains("Nsight Compute"), "{error}");
}

/// Puts a text through a parser and panics if what must hold does not.
type Hold = fn(&[u8]);

/// The texts that are kept for the fuzzer, and the real ones, hold what the fuzzer looks for.
#[test]
fn seeds_and_real_texts_hold() {
    let targets: [(&str, &str, Hold); 4] = [
        ("ncu_csv", "ncu", harness::ncu_csv),
        ("ncu_log", "ncu", harness::ncu_log),
        ("nsys", "nsys", harness::nsys),
        ("sanitizer", "sanitizer", harness::sanitizer),
    ];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (target, real, hold) in targets {
        let seeds = root.join("fuzz/seeds").join(target);
        let mut texts = 0;
        for folder in [seeds, root.join("tests/fixtures/profile").join(real)] {
            for entry in folder.read_dir().unwrap() {
                hold(&std::fs::read(entry.unwrap().path()).unwrap());
                texts += 1;
            }
        }
        assert!(texts > 2, "{target}: {texts}");
    }
}
