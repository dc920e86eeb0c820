use super::*;

const NEW: &str = "\
==PROF== Connected to process 12 (/home/u/app)
==PROF== Profiling \"axpy\" - 0: 0%....50%....100% - 8 passes
the program prints
[12] app@127.0.0.1
  axpy(int, float *) (128, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.9
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Duration                         us       606.56
    DRAM Throughput                   %        86.36
    ----------------------- ----------- ------------

    OPT   Est. Speedup: 12%
          Device memory is the limit.

    Section: Occupancy
    ------------------ ----------- ------------
    Metric Name        Metric Unit Metric Value
    ------------------ ----------- ------------
    Achieved Occupancy           %        61.25
    ------------------ ----------- ------------

  axpy(int, float *) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.9
    Section: Command line profiler metrics
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    gpu__time_duration.sum           us        1,024
    dram__bytes.sum               Mbyte         2.50
    ----------------------- ----------- ------------
";

#[test]
fn kernels_sections_and_rules() {
    assert!(looks_like_console(NEW));
    let report = parse_console(NEW).unwrap();
    assert_eq!((report.kernels.len(), report.notes.len()), (2, 0), "{:?}", report.notes);
    let first = &report.kernels[0];
    assert_eq!((first.name.as_str(), first.capability), ("axpy(int, float *)", Some(89)));
    assert_eq!((first.grid, first.block), (Some([128, 1, 1]), Some([256, 1, 1])));
    let time = first.values["gpu__time_duration.sum"];
    assert!((time - 606.56e-6).abs() < 1e-12);
    let occupancy = "sm__warps_active.avg.pct_of_peak_sustained_active";
    assert_eq!(first.values[occupancy], 61.25);
    let rule = &first.rules[0];
    assert_eq!(
        (rule.kind.as_str(), rule.section.as_str()),
        ("OPT", "GPU Speed Of Light Throughput")
    );
    assert_eq!(rule.description, "Est. Speedup: 12% Device memory is the limit.");
    let second = &report.kernels[1];
    assert_eq!(second.values["dram__bytes.sum"], 2.5e6);
    assert!((second.values["gpu__time_duration.sum"] - 1024e-6).abs() < 1e-12);
}

/// Versions before 2022 have a date, no sizes, and no head above the rows.
#[test]
fn tables_of_old_versions() {
    let text = "\
  scale, 2021-Mar-03 10:00:00, Context 1, Stream 7
    Section: GPU Speed Of Light
    ---------------------------------------------------------------- --------------- ------------
    Duration                                                                 usecond         4.54
    Elapsed Cycles                                                             cycle        5,120
    ---------------------------------------------------------------- --------------- ------------
    WRN   This kernel grid is too small.

    Section: Launch Statistics
    ---------------------------------------------------------------- --------------- ------------
    Block Size                                                                                256
    Registers Per Thread                                             register/thread           16
    Waves Per SM                                                                             0.41
";
    let report = parse_console(text).unwrap();
    let kernel = &report.kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.capability), ("scale", None));
    assert_eq!(kernel.values["gpc__cycles_elapsed.max"], 5120.0);
    assert_eq!(kernel.values["launch__block_size"], 256.0);
    assert_eq!(kernel.values["launch__waves_per_multiprocessor"], 0.41);
    assert_eq!(kernel.rules[0].kind, "WRN");
    assert!(report.notes[0].contains("is cut off"), "{:?}", report.notes);
}

#[test]
fn other_tables_are_no_metrics() {
    let text = "\
  k (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: Memory Workload Analysis Tables
    ---------- ---- ---- ----
    Table      Hits Rate Sum
    ---------- ---- ---- ----
    Global        1    2    3
    ---------- ---- ---- ----
    Section: Occupancy
    ------------------ - -----
    Achieved Occupancy % 61.25
    ------------------ - -----
";
    let report = parse_console(text).unwrap();
    assert_eq!(report.kernels[0].values.len(), 1);
    assert!(!looks_like_console("a, Context 1, Stream 7\nno table\n"));
    assert!(!looks_like_console("--- --- ---\n"), "no launch");
    assert_eq!(parse_console("--- --- ---\n"), Err(NcuCsvError::NoHeader));
}

/// Programs cut launches and tables out of the text, and put them in other orders.
#[test]
fn an_excerpt_says_what_it_lacks() {
    let launch = |name: &str| {
        format!("  {name} (8, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.9\n")
    };
    let table = "    -------- ---- ----\n    Duration ms   4.30\n    -------- ---- ----\n";
    let section = format!("    Section: GPU Speed Of Light Throughput\n{table}");
    let notes = |text: &str| parse_console(text).unwrap().notes;
    let whole = format!("{}{section}{}{section}", launch("a"), launch("b"));
    assert_eq!(notes(&whole), [""; 0]);
    let apart = format!("{}{}{section}{section}", launch("a"), launch("b"));
    let told = notes(&apart);
    assert!(told[0].starts_with("line 1: 1 launches have no tables"), "{told:?}");
    let bare = notes(&format!("{}{table}", launch("a")));
    assert!(bare[0].starts_with("line 3: a table stands in no section"), "{bare:?}");
    let cut = notes(&format!("{}{section}{}", launch("a"), launch("b")));
    assert!(cut[0].contains("1 launches have no tables"), "{cut:?}");
}

#[test]
fn every_rule_of_a_section_is_kept() {
    let line = format!("    ----- {}\n", "-".repeat(40));
    let text = format!(
        "  k (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: Occupancy
    ------------------ - -----
    Achieved Occupancy % 61.25
    ------------------ - -----

    WRN   first
{line}    OPT   Est. Speedup: 5%
          second
{line}    INF   third
"
    );
    let report = parse_console(&text).unwrap();
    let rules: Vec<(&str, &str)> = report.kernels[0]
        .rules
        .iter()
        .map(|rule| (rule.kind.as_str(), rule.description.as_str()))
        .collect();
    assert_eq!(rules, [("WRN", "first"), ("OPT", "Est. Speedup: 5% second"), ("INF", "third")]);
    assert_eq!(report.notes, [""; 0]);
}

/// Numbers are aligned at the end of their column, so that a cut shows.
#[test]
fn a_number_that_is_cut_off_has_no_value() {
    let duration = "gpu__time_duration.sum";
    let cut = |at: &str| {
        let text = NEW.split_once(at).unwrap().0;
        parse_console(&format!("{text}{at}")).unwrap()
    };
    let whole = cut("606.56");
    assert!(whole.kernels[0].values.contains_key(duration), "{:?}", whole.notes);
    let open = "us       606.56\n    DRAM Throughput                   %        ";
    for end in ["86.3", "86.", "86", "8"] {
        let report = cut(&format!("{open}{end}"));
        assert_eq!(report.kernels[0].values.len(), 1, "{end}");
        assert!(
            report.notes.contains(
                &"line 11: the row is cut off at the end of the file; it has no value".to_owned()
            ),
            "{:?}",
            report.notes
        );
    }
    assert_eq!(cut(&format!("{open}86.36")).kernels[0].values.len(), 2);
    for end in ["606.56\n\n", "606.56\n    Section: Occupancy"] {
        let text = format!("{}{end}", NEW.split_once("606.56").unwrap().0);
        let notes = parse_console(&text).unwrap().notes;
        assert!(!notes.iter().any(|note| note.contains("the row")), "no row is cut: {notes:?}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    let text = NEW.split_once("[12] app@127.0.0.1\n").unwrap().1.trim_start();
    let report = parse_console(&format!("\u{feff}{text}")).unwrap();
    assert_eq!(report.kernels[0].name, "axpy(int, float *)");
}

#[test]
fn tables_of_print_details() {
    let text = "\
    k (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 10.0

      Table Name : GPU Throughput
      ---------------- ----------- ------------
      Metric Name      Metric Unit Metric Value
      ---------------- ----------- ------------
      Memory [%]                 %         4.37
      Compute (SM) [%]           %        10.09
      ---------------- ----------- ------------

      Table Name : Warp State (All Cycles)
      Table Description : Cycles of each reason.
      --------------------- ----------- ------------
      Metric Name           Metric Unit Metric Value
      --------------------- ----------- ------------
      Stall Long Scoreboard        inst        10.24
      Selected                     inst            1
      --------------------- ----------- ------------
    Section: GPU Speed Of Light Throughput
    ------------ - -----
    Waves Per SM   73.14
    ------------ - -----
";
    let report = parse_console(text).unwrap();
    assert_eq!(report.notes, [""; 0]);
    let values = &report.kernels[0].values;
    assert_eq!(values["sm__throughput.avg.pct_of_peak_sustained_elapsed"], 10.09);
    assert_eq!(values["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"], 4.37);
    let stalled = |reason: &str| {
        values[&format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio")]
    };
    assert_eq!((stalled("long_scoreboard"), stalled("selected")), (10.24, 1.0));
    assert_eq!(values["launch__waves_per_multiprocessor"], 73.14);
}
