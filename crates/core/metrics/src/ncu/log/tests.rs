use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../../tests/fixtures/profile/ncu/2025.3.1-h200-", $name))
    };
}

fn codes(text: &str) -> Vec<String> {
    parse_log(text).problems.into_iter().map(|problem| problem.code).collect()
}

#[test]
fn progress_of_several_versions() {
    let log = parse_log(
        "==PROF== Connected to process 12 (/opt/k)\n\
         ==PROF== Profiling \"k\" - 0: 0%....50%....100% - 8 passes\n\
         ==PROF== Profiling \"a \"quoted\" name...\": 0%....50%....100% - 1 pass\n\
         ==PROF== Profiling \"cut\" - 2: 0%....50%\n\
         hello\n\
         ==WARNING== Unable to access the following 2 metrics: a.sum, b.avg.\n\n\
         ==PROF== Disconnected from process 12\n\
         ==PROF== Report: /tmp/x.ncu-rep\n",
    );
    let kernels = [("k".to_owned(), 8), ("a \"quoted\" name...".to_owned(), 1)];
    assert_eq!(log.kernels, kernels);
    assert_eq!(log.unreadable, ["a.sum", "b.avg"]);
    assert_eq!(log.reports, ["/tmp/x.ncu-rep"]);
    assert_eq!(log.problems, []);
}

#[test]
fn real_logs() {
    assert_eq!(
        codes(fixture!("err_metric.csv")),
        ["unknown_metric", "kernel_not_profiled", "application_failed"]
    );
    assert_eq!(parse_log(fixture!("err_metric.csv")).application_code, Some(9));
    assert_eq!(codes(fixture!("err_name.csv")), ["no_kernel"]);
    assert_eq!(codes(fixture!("err_no_kernels.csv")), ["no_kernel"]);
    let full = parse_log(fixture!("raw_full_base.csv"));
    assert_eq!(full.unreadable.len(), 6);
    assert_eq!(full.unreadable[0], "ctc__rx_bytes_data_user.sum");
    assert_eq!(full.problems, []);
}

/// Texts of the tool's versions, with the code of each.
#[test]
fn each_text_has_its_code() {
    let table = [
        (
            "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance \
          Counters on the target device 0.",
            "no_permission",
        ),
        (
            "Profiling failed because a driver resource was unavailable. Ensure that no other tool \
          (like DCGM) is concurrently collecting profiling data.",
            "counters_busy",
        ),
        ("Failed to initialize the profiler: LibraryNotLoaded", "no_profiler_library"),
        ("Cuda driver is not compatible with Nsight Compute.", "driver_mismatch"),
        (
            "Profiling is not supported on device 0. To find out supported GPUs refer --list-chips",
            "unsupported_device",
        ),
        (
            "Nsight Compute failed to connect to the CUDA driver (stub libcuda.so on path?)",
            "no_driver",
        ),
        ("No kernels were profiled.", "no_kernel"),
        ("Failed to prepare kernel for profiling", "kernel_not_profiled"),
        ("Failed to profile \"k\" in process 3", "kernel_not_profiled"),
        ("Unknown Error on device 0.", "kernel_not_profiled"),
        ("Failed to find metric bogus", "unknown_metric"),
        ("Confidential computing mode detected", "unsupported_mode"),
        ("Could not deploy stock section files to /root", "no_tool_files"),
        ("Failed to add rules search path", "no_tool_files"),
        ("The application returned an error code (1).", "application_failed"),
        ("something nobody has seen", "tool_failed"),
    ];
    for (text, code) in table {
        let problems = parse_log(&format!("==ERROR== {text}\n")).problems;
        assert_eq!(problems.len(), 1, "{text}");
        assert_eq!(problems[0].code, code, "{text}");
        assert!(!problems[0].remedy.is_empty() && problems[0].reason.contains("Nsight Compute"));
    }
}

#[test]
fn the_cause_comes_before_what_follows_from_it() {
    let text = "==ERROR== The application returned an error code (1).\n\
                ==ERROR== odd\n\
                ==WARNING== No kernels were profiled.\n\
                ==ERROR== Nsight Compute failed to connect to the CUDA driver\n";
    assert_eq!(codes(text), ["no_driver", "application_failed", "no_kernel", "tool_failed"]);
}

#[test]
fn what_does_not_begin_as_the_tools_lines_do_says_nothing() {
    let text = "ERR_NVGPUCTRPERM\n [==ERROR== ERR_NVGPUCTRPERM\n==OTHER== ERR_NVGPUCTRPERM\n==";
    assert_eq!(parse_log(text), NcuLog::default());
}
