use super::*;
use crate::select;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../tests/fixtures/profile/", $name))
    };
}

const FULL: &str = fixture!("ncu/2025.3.1-h200-raw_full_base.csv");

fn of(text: &str) -> Imported {
    import(text, &select(&[])).unwrap()
}

#[test]
fn a_page_of_several_kernels() {
    let Imported::Ncu { device_metrics: metrics, rules, notes } = of(FULL) else { panic!() };
    assert_eq!(metrics.kernel, "5 kernels");
    assert_eq!((rules, notes), (Vec::new(), Vec::<String>::new()));
    assert_eq!(metrics.kernels.len(), 5);
    assert!(metrics.kernels[0].kernel.starts_with("matmul_tiled"), "the longest first");
    let vector_add = metrics.kernels.iter().find(|k| k.kernel.starts_with("vector_add")).unwrap();
    assert_eq!(vector_add.launches, 2);
    let value = |id: &str| vector_add.metrics[id].value.unwrap();
    assert!((value("duration") - (58_912.0 + 58_944.0) * 1e-9).abs() < 1e-15);
    let read = 134_227_968.0 + 134_229_248.0;
    assert!((value("dram_read_bytes") - read).abs() < 1.0);
    let written = 54_883_328.0 + 54_909_952.0;
    assert!((value("dram_bytes") - read - written).abs() < 1.0, "read and written");
    // The values are 100·54.40/67.33 and 100·55.75/67.24, with nearly equal weights.
    assert!((value("stall_long_scoreboard") - 81.86).abs() < 0.05);
    assert_eq!(value("registers_per_thread"), 16.0);
    assert!(vector_add.metrics["flop_count"].reason.is_some(), "the set has no such counters");
}

#[test]
fn pages_with_labels_and_with_rules() {
    let text = fixture!("ncu/2025.3.1-h200-details_full.csv");
    let Imported::Ncu { device_metrics: metrics, rules, notes } = of(text) else { panic!() };
    assert_eq!(notes, Vec::<String>::new());
    assert!(metrics.metrics["duration"].value.is_some());
    assert!(metrics.metrics["achieved_occupancy"].value.is_some());
    assert!(
        rules
            .iter()
            .any(|rule| rule.kernel.starts_with("vector_add") && rule.rule.name == "SOLBottleneck")
    );
}

#[test]
fn tables_and_logs_are_known_by_their_content() {
    let text = fixture!("nsys/2025.3.1-cuda_gpu_trace.txt");
    let Imported::Nsys { report, timelines } = of(text) else { panic!() };
    assert_eq!(report.trace.len(), 9);
    assert_eq!(timelines[0].device, "NVIDIA H200 (0)");
    assert!((timelines[0].utilisation_pct.unwrap() - 99.2).abs() < 1.0);
    let text = fixture!("sanitizer/2025.3.1-h200.txt");
    let Imported::Sanitizer(log) = of(text) else { panic!() };
    assert!(log.findings.iter().any(|finding| finding.check == "shared_race"));
    let json = serde_json::to_value(of(text)).unwrap();
    assert_eq!(json["kind"], "sanitizer");
}

#[test]
fn a_tool_that_failed_says_why() {
    let error = |text: &str| import(text, &select(&[])).unwrap_err();
    let nothing = |text: &str| match error(text) {
        ImportError::Nothing(why) => why.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(nothing(fixture!("ncu/2025.3.1-h200-err_name.csv")), "no_kernel");
    assert_eq!(nothing(fixture!("ncu/2025.3.1-h200-err_metric.csv")), "unknown_metric");
    assert_eq!(nothing(fixture!("nsys/2025.3.1-none.txt")), "no_data");
    assert_eq!(error("SQLite format 3\0\u{1}"), ImportError::NsysReport);
    assert_eq!(error("hello"), ImportError::UnknownContent);
    assert_eq!(error(""), ImportError::UnknownContent);
}

/// Old versions write pages without the column of the compute capability.
#[test]
fn a_device_that_is_not_told() {
    let text = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\
                \"\",\"\",\"usecond\",\"Kbyte\"\n\"0\",\"k\",\"1.5\",\"2.5\"\n";
    let Imported::Ncu { device_metrics: metrics, .. } = of(text) else { panic!() };
    assert!((metrics.metrics["duration"].value.unwrap() - 1.5e-6).abs() < 1e-15);
    assert_eq!(metrics.metrics["dram_bytes"].value, Some(2500.0));
    let reason = metrics.metrics["l1_hit_rate"].reason.as_ref().unwrap();
    assert!(reason.contains("l1tex__t_sector_hit_rate.pct is not among"), "{reason}");
}

#[test]
fn files_of_windows() {
    let wide: Vec<u8> = [0xfeff_u16]
        .into_iter()
        .chain("\"ID\"é".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(decode(&wide), "\"ID\"é");
    assert_eq!(decode(&wide[2..]), "\"ID\"é", "without the mark");
    assert_eq!(decode(b"a\rb\r"), "a\nb\n", "lines of old systems");
    assert_eq!(decode(b"a\xffb"), "a\u{fffd}b");
    assert!(is_ncu_report(b"NVR\0\x08") && !is_ncu_report(b"\"ID\""));
}
