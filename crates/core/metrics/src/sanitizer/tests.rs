use proptest::prelude::*;
use warpgauge_model::Cause;

use super::*;

const REAL: &str =
    include_str!("../../../../../tests/fixtures/profile/sanitizer/2025.3.1-h200.txt");

/// Returns the parsed output of one of the fixture's runs.
fn run(name: &str) -> SanitizerLog {
    let after = REAL.split_once(&format!("#### {name}\n")).unwrap().1;
    parse_log(after.split("####").next().unwrap())
}

fn checks(log: &SanitizerLog) -> Vec<(&'static str, u64)> {
    log.findings.iter().map(|finding| (finding.check, finding.count)).collect()
}

#[test]
fn a_real_access_out_of_bounds() {
    let log = run("memcheck 1");
    assert_eq!(checks(&log), [("out_of_bounds", 1), ("api_error", 2)]);
    assert_eq!((log.errors, log.complete(), log.left_out), (Some(3), true, None));
    let finding = &log.findings[0];
    assert_eq!(finding.kernel, "oob(float *, int)");
    assert_eq!(finding.source.as_deref(), Some("k.cu:9"));
    assert_eq!((finding.thread, finding.block), (Some([5, 0, 0]), Some([0, 0, 0])));
    assert_eq!((finding.address, finding.bytes), (Some(0x7fe7_7e00_0014), Some(4)));
    assert_eq!(
        finding.message,
        "Invalid __global__ write of size 4 bytes: Access to 0x7fe77e000014 is out of bounds and \
         is 201,326,613 bytes after the nearest allocation at 0x7fe76e000000 of size 67,108,864 \
         bytes"
    );
}

#[test]
fn other_real_runs() {
    for name in ["memcheck 0", "memcheck 2", "racecheck 1", "initcheck 0", "synccheck 1"] {
        let log = run(name);
        assert_eq!((log.findings.len(), log.errors), (0, Some(0)), "{name}");
    }
    let race = run("racecheck 2");
    assert_eq!(checks(&race), [("shared_race", 256)]);
    assert_eq!((race.errors, race.warnings), (Some(1), Some(0)));
    assert_eq!(race.findings[0].kernel, "race(float *)");
    assert_eq!(race.findings[0].source.as_deref(), Some("k.cu:10"));
    let uninitialised = run("initcheck 1");
    assert_eq!(checks(&uninitialised), [("host_access", 5)]);
    assert!(!uninitialised.complete(), "the tool did not come to its summary");
    assert!(!run("racecheck 0").complete());
}

/// Other versions and checks have these forms.
#[test]
fn forms_of_other_versions() {
    let log = parse_log(
        "========= COMPUTE-SANITIZER\n\
         ========= Invalid __shared__ write of size 16 bytes\n\
         =========     at cp_async(void *, const void *)+0x390 in /src/dir/fa.cu:97\n\
         =========     by thread (1,0,0) in block (0,2,0)\n\
         =========     Address 0x82 is misaligned\n\
         =========         Device Frame: outer_kernel(float *)+0x310 in /src/dir/fa.cu:214\n\
         ========= \n\
         ========= Uninitialized __global__ memory read of size 4 bytes\n\
         =========     at 0x100 in /home/x/sum.cl:30:sum(const int *, int *)\n\
         =========     by thread (98, 0, 0) in block (194, 0, 0)\n\
         =========     Address 0x7fbbca800000\n\
         =========\n\
         ========= Barrier error detected. Divergent thread(s) in warp.\n\
         =========     at 0x00000058 in test(int*, int*)\n\
         ========= Barrier error detected. Invalid arguments.\n\
         =========     at __syncwarp(unsigned int)+0xe0 in sm_30_intrinsics.hpp:110\n\
         ========= Error: Potential WAR hazard detected at __shared__ 0x410 in block (11,0,0) :\n\
         =========     Read Thread (127,0,0) at prefix+0x860\n\
         =========     Write Thread (0,0,0) at prefix+0x9d0\n\
         =========     Current Value : 0, Incoming Value : 181\n\
         ========= Leaked 1,024 bytes at 0x7fbb00000000\n\
         ========= Malloc/Free error encountered : Double free\n\
         =========     at 0x10 in k(int *)\n\
         ========= something that no version had\n\
         ========= LEAK SUMMARY: 1,024 bytes leaked in 1 allocations\n\
         ========= ERROR SUMMARY: 257 errors\n\
         ========= ERROR SUMMARY: 157 errors were not printed. Use --print-limit option\n",
    );
    let found: Vec<(&str, &str, Option<&str>)> =
        log.findings.iter().map(|f| (f.check, f.kernel.as_str(), f.source.as_deref())).collect();
    assert_eq!(
        found,
        [
            ("misaligned", "outer_kernel(float *)", Some("fa.cu:97 (called from fa.cu:214)")),
            ("uninitialised_read", "sum(const int *, int *)", Some("sum.cl:30")),
            ("divergent_barrier", "test(int*, int*)", None),
            ("invalid_barrier", "__syncwarp(unsigned int)", Some("sm_30_intrinsics.hpp:110")),
            ("shared_race", "prefix", None),
            ("leak", "", None),
            ("bad_free", "k(int *)", None),
        ]
    );
    assert_eq!(log.findings[0].block, Some([0, 2, 0]));
    assert_eq!(log.findings[1].thread, Some([98, 0, 0]));
    let race = &log.findings[4];
    assert_eq!((race.block, race.thread), (Some([11, 0, 0]), Some([127, 0, 0])));
    assert_eq!(race.address, Some(0x410));
    assert_eq!((log.errors, log.left_out, log.leaked), (Some(257), Some(157), Some([1024, 1])));
    assert_eq!(log.findings[0].line(), Some("fa.cu:97"));
    assert!(
        log.notes[0].contains("counts 257 errors and warnings, but the log has 164"),
        "{log:?}"
    );
    assert_eq!(
        log.notes[1],
        "line 24: `something that no version had` is not a finding in a known format: it is left out"
    );
}

#[test]
fn the_same_finding_is_counted_and_others_are_bounded() {
    let record = |line: usize, thread: usize| {
        format!(
            "========= Invalid __global__ read of size 4 bytes\n\
             =========     at k(int *)+0x10 in k.cu:{line}\n\
             =========     by thread ({thread},0,0) in block (0,0,0)\n========= \n"
        )
    };
    let same: String = (0..50).map(|thread| record(7, thread)).collect();
    let log = parse_log(&same);
    assert_eq!(checks(&log), [("out_of_bounds", 50)]);
    assert_eq!(log.findings[0].thread, Some([0, 0, 0]), "the first");
    let different: String = (0..MAX_FINDINGS + 3).map(|line| record(line, 0)).collect();
    let log = parse_log(&different);
    assert_eq!((log.findings.len(), log.left_out), (MAX_FINDINGS, Some(3)));
}

#[test]
fn causes_are_told_apart_from_findings() {
    let failed = "========= COMPUTE-SANITIZER\n========= Error: Target application terminated \
                  before first instrumented API call\n";
    assert_eq!(cause(failed), Some(Cause::NoKernel));
    assert_eq!(parse_log(failed).findings, []);
    assert_eq!(cause("Error: Target application terminated before first instrumented"), None);
    assert_eq!(cause(REAL), None);
}

/// Lines of a program without the tool's prefix are ignored.
#[test]
fn output_of_programs_is_skipped() {
    let hostile = " ========= Invalid __global__ read of size 4 bytes\n==== \nERROR SUMMARY: 0 errors\n\
                   ========================================\n========== ERROR SUMMARY: 9 errors\n";
    assert_eq!(parse_log(hostile), SanitizerLog::default());
    let after = REAL.split_once("#### memcheck 1\n").unwrap().1.split("####").next().unwrap();
    let mixed: String = after.lines().map(|line| format!("{line}\n{hostile}")).collect();
    assert_eq!(parse_log(&mixed), parse_log(after));
}

proptest! {
    #[test]
    fn what_is_written_is_read(findings in prop::collection::vec(
        ("[a-z]{1,8}", 1u32..10_000, [0u32..1024, 0u32..64, 0u32..64],
         [0u32..9999, 0u32..9, 0u32..9],
         1u64..=16, 1u64..u64::MAX), 1..20,
    )) {
        let mut text = "========= COMPUTE-SANITIZER\n".to_owned();
        for (name, line, [tx, ty, tz], [bx, by, bz], bytes, address) in &findings {
            text.push_str(&format!(
                "========= Invalid __global__ read of size {bytes} bytes\n\
                 =========     at {name}(int *)+0x10 in k.cu:{line}\n\
                 =========     by thread ({tx},{ty},{tz}) in block ({bx},{by},{bz})\n\
                 =========     Access to {address:#x} is out of bounds\n========= \n"
            ));
        }
        let log = parse_log(&text);
        let total: u64 = log.findings.iter().map(|finding| finding.count).sum();
        prop_assert_eq!(total, findings.len() as u64);
        let (name, line, thread, block, bytes, address) = &findings[0];
        let first = &log.findings[0];
        prop_assert_eq!(&first.kernel, &format!("{name}(int *)"));
        let source = format!("k.cu:{line}");
        prop_assert_eq!(first.source.as_deref(), Some(source.as_str()));
        prop_assert_eq!((first.thread, first.block), (Some(*thread), Some(*block)));
        prop_assert_eq!((first.bytes, first.address), (Some(*bytes), Some(*address)));
    }

    #[test]
    fn any_text_is_read(text in "(=========)?[ ]{0,5}[a-zA-Z0-9x:(),.+\\[\\] \n]{0,80}") {
        let log = parse_log(&text);
        prop_assert!(log.findings.iter().all(|finding| finding.message.len() <= 4 * MAX_MESSAGE));
        let _ = cause(&text);
    }
}

/// The real log has the runs of several checkers, one after the other.
#[test]
fn errors_of_all_runs_are_added() {
    let log = parse_log(include_str!(
        "../../../../../tests/fixtures/profile/sanitizer/2025.3.1-h200.txt"
    ));
    assert_eq!(log.errors, Some(7));
    assert!(
        log.notes[0].contains("13 runs") && log.notes[1].contains("3 of 13"),
        "{:?}",
        log.notes
    );
}

/// A web page lost the indentation, and a program printed after the tool's mark.
#[test]
fn details_without_indentation() {
    let log = parse_log(
        "========= COMPUTE-SANITIZER\n\
         ========= Invalid __global__ write of size 4 bytes\n\
         ========= at scatter()+0x100 in demo.cu:34\n\
         ========= by thread (0,0,0) in block (0,0,0)\n\
         ========= Address 0x7cc43aa00001 is misaligned\n\
         ========= and is inside the nearest allocation at 0x7cc43aa00000 of size 4 bytes\n\
         ========= Saved host backtrace up to driver entry point at kernel launch time\n\
         ========= Host Frame: main [0xae61] in demo\n\
         ========= Running scatter: no error\n\
         ========= Invalid __global__ write of size 4 bytes\n\
         ========= at put(int)+0xb0 in demo.cu:39\n\
         ========= Address 0x87654320 is out of bounds\n\
         ========= Device Frame: outer()+0x30 in demo.cu:44\n\
         ========= ERROR SUMMARY: 2 errors\n",
    );
    assert_eq!(checks(&log), [("misaligned", 1), ("out_of_bounds", 1)]);
    assert_eq!(log.findings[0].source.as_deref(), Some("demo.cu:34"));
    assert_eq!(log.findings[1].kernel, "outer()");
    assert_eq!(log.findings[1].source.as_deref(), Some("demo.cu:39 (called from demo.cu:44)"));
    assert_eq!(log.notes.len(), 1, "{:?}", log.notes);
    assert!(log.notes[0].contains("Running scatter"));
}

#[test]
fn both_sides_of_a_hazard_in_the_tail_of_a_log() {
    let text = "========= Error: Race reported between Write access at k(int *)+0x90 in a.cu:4\n\
                =========     and Read access at k(int *)+0x100 in a.cu:5 [4 hazards]\n\
                =========     and Write access at k(int *)+0x120 in b.cu:6 [3 hazards]\n\
                =========\n\
                ========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n";
    assert!(looks_like_log(text));
    let log = parse_log(text);
    assert_eq!(checks(&log), [("shared_race", 7)]);
    let race = &log.findings[0];
    assert_eq!((race.kernel.as_str(), race.source.as_deref()), ("k(int *)", Some("a.cu:4")));
    assert_eq!(race.other.as_deref(), Some("a.cu:5, b.cu:6"));
    assert_eq!(log.notes, Vec::<String>::new());
}

#[test]
fn clones_callers_and_namespaces() {
    let of = |lines: &str| {
        let text =
            format!("========= Barrier error detected. Divergent thread(s) in block.\n{lines}");
        let found = parse_log(&text).findings.remove(0);
        (found.kernel, found.source)
    };
    let pair = |kernel: &str, source: Option<&str>| (kernel.to_owned(), source.map(str::to_owned));
    assert_eq!(
        of("=========     at [clone top(int *)] inner()+0x11f0 in t.cu:42\n\
            =========     by thread (32,0,0) in block (0,0,0)\n\
            =========         Device Frame: top(int *)+0xe40 in t.cu:60\n"),
        pair("top(int *)", Some("t.cu:42 (called from t.cu:60)"))
    );
    assert_eq!(
        of("=========     at [clone top(int *)] inner()+0x11f0\n"),
        pair("top(int *)", None)
    );
    assert_eq!(
        of("=========     at 0x150 in a::b::run<int>(int *)\n"),
        pair("a::b::run<int>(int *)", None)
    );
    assert_eq!(
        of("=========     at 0x150 in /d/k.cu:9:a::run(int *)\n\
            =========     Device Frame:/d/k.cu:30:a::top(int *) [0x30]\n"),
        pair("a::top(int *)", Some("k.cu:9 (called from k.cu:30)"))
    );
    assert_eq!(
        of("=========     at 0x58 in f(void (*)(int))\n\
            =========     Device Frame:f(void (*)(int)) (f(void (*)(int)) : 0x60)\n"),
        pair("f(void (*)(int))", None)
    );
    assert_eq!(
        of("=========     at 0x150 in C:\\d\\k.cu:9:a::run(int *)\n"),
        pair("a::run(int *)", Some("k.cu:9"))
    );
}

const OUT_OF_BOUNDS: &str = "\
========= Invalid __global__ write of size 4 bytes
=========     at k(int *)+0x10 in a.cu:4
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000000 is out of bounds
=========
========= ERROR SUMMARY: 1 error
";

/// A shell script runs the tool several times, and one of its programs launches nothing.
#[test]
fn a_run_that_checked_nothing_hides_no_other_run() {
    let start = "========= COMPUTE-SANITIZER\n";
    let empty = format!(
        "{start}========= Error: Target application terminated before first instrumented API call\n\
         ========= Default timeout can be adjusted with --launch-timeout\n\
         ========= Tracking kernels launched by child processes requires the --target-processes \
         all option.\n"
    );
    let why = nothing(&format!("{empty}{empty}")).unwrap();
    assert_eq!(why.code, "no_kernel");
    assert!(why.reason.contains("first instrumented API call; Tracking kernels"), "{why:?}");
    assert!(why.reason.ends_with("requires the --target-processes all option"), "{why:?}");
    for text in [format!("{start}{OUT_OF_BOUNDS}{empty}"), format!("{empty}{start}{OUT_OF_BOUNDS}")]
    {
        assert_eq!(nothing(&text), None);
        let log = parse_log(&text);
        assert_eq!((checks(&log), log.errors), (vec![("out_of_bounds", 1)], Some(1)));
        let about: Vec<&String> =
            log.notes.iter().filter(|note| note.contains("checked nothing")).collect();
        assert_eq!(log.notes.len(), 3, "the timeout is no finding: {:?}", log.notes);
        assert!(about.len() == 1 && about[0].contains("--target-processes all"), "{log:?}");
    }
    let stopped = format!("{start}{OUT_OF_BOUNDS}========= Internal Sanitizer Error\n");
    assert_eq!(nothing(&stopped), None);
    assert!(parse_log(&stopped).notes[0].contains("may be incomplete"));
}

#[test]
fn a_program_that_failed_may_have_more_findings() {
    let failed = |details: &str, errors: u64| {
        parse_log(&format!(
            "========= COMPUTE-SANITIZER\n\
             ========= Error: process didn't terminate successfully\n{details}\
             ========= Target application returned an error\n\
             ========= ERROR SUMMARY: {errors} errors\n"
        ))
    };
    let clean = failed("", 0);
    assert_eq!((checks(&clean), clean.errors), (vec![], Some(0)));
    assert_eq!(clean.notes.len(), 1, "{:?}", clean.notes);
    assert!(clean.notes[0].starts_with("line 2: the program failed"), "{:?}", clean.notes);
    let explained = "=========     The application may have hit an error on the host.\n";
    let crashed = failed(explained, 1);
    assert_eq!((checks(&crashed), crashed.errors), (vec![("other", 1)], Some(1)));
    assert!(crashed.findings[0].message.ends_with("an error on the host."));
    assert!(crashed.notes.len() == 1 && crashed.notes[0].contains("failed"), "{crashed:?}");
}

#[test]
fn runs_of_the_old_tool_are_counted() {
    let run = format!("========= CUDA-MEMCHECK\n{OUT_OF_BOUNDS}");
    let log = parse_log(&run.repeat(2));
    assert_eq!((checks(&log), log.errors), (vec![("out_of_bounds", 2)], Some(2)));
    assert!(log.notes.len() == 1 && log.notes[0].contains("2 runs"), "{:?}", log.notes);
}
