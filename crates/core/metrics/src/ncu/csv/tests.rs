use proptest::prelude::*;

use super::*;
use crate::catalogue::CATALOGUE;
use crate::types::{Conditions, MetricSource};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../../tests/fixtures/profile/ncu/2025.3.1-h200-", $name))
    };
}

const BASE: &str = fixture!("raw_full_base.csv");
const SCALED: &str = fixture!("import_raw.csv");
const FEW: &str = fixture!("raw_metrics.csv");
const DETAILS: &str = fixture!("details_full.csv");
const DURATION: &str = "gpu__time_duration.sum";

fn first(text: &str) -> NcuKernel {
    parse_csv(text).unwrap().kernels.swap_remove(0)
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs()
}

#[test]
fn a_raw_page_in_base_units() {
    let report = parse_csv(BASE).unwrap();
    assert_eq!((report.pages, report.kernels.len()), (vec![NcuPage::Raw], 6));
    let names: Vec<&str> = report.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names[0], "vector_add(const float *, const float *, float *, int)");
    assert!(names.contains(&"void tmpl<float>(T1 *, int)"));
    let kernel = &report.kernels[0];
    assert_eq!(kernel.block, Some([256, 1, 1]));
    assert_eq!(kernel.grid, Some([65_536, 1, 1]));
    assert_eq!((kernel.capability, kernel.device), (Some(90), Some(0)));
    assert!(close(kernel.values[DURATION], 58.912e-6));
    assert!(close(kernel.values["dram__bytes_read.sum"], 134_227_968.0));
    assert!(close(kernel.values["launch__waves_per_multiprocessor"], 62.06));
    assert!(kernel.missing["sass__inst_executed_register_spilling_mem_local"].contains("no data"));
    assert!(kernel.missing["derived_tempMetric4"].contains("nan"));
    assert_eq!(kernel.texts["launch__func_cache_config"], "CachePreferNone");
}

/// Both pages contain the same launch, one with scaled units and the other with base units.
#[test]
fn scaled_units_are_brought_to_base() {
    let (base, scaled) = (first(BASE), first(SCALED));
    assert!(close(scaled.values[DURATION], 58.848e-6));
    assert!(close(scaled.values["dram__bytes.sum.per_second"], 3.214534e12));
    assert!(close(scaled.values["dram__cycles_elapsed.avg.per_second"], 3.197752e9));
    let mut compared = 0;
    for name in [
        "launch__shared_mem_config_size",
        "launch__shared_mem_per_block_driver",
        "dram__bytes.sum.peak_sustained",
        "launch__persisting_l2_cache_size",
        "launch__grid_size",
        "derived__lts__lts2xbar_bytes.sum.peak_sustained",
    ] {
        let (base, scaled) = (base.values[name], scaled.values[name]);
        assert!((base - scaled).abs() <= 1e-3 * base, "{name}: {base} {scaled}");
        compared += 1;
    }
    assert_eq!(compared, 6);
}

/// Every catalogue entry with a base unit has the same unit in a real page.
#[test]
fn units_of_the_catalogue_are_those_of_the_tool() {
    use crate::catalogue::{Formula, MetricUnit};
    let kernel = first(BASE);
    let in_range = |unit: MetricUnit, value: f64| match unit {
        MetricUnit::Seconds => (1e-7..10.0).contains(&value),
        MetricUnit::Percent => (0.0..=200.0).contains(&value),
        MetricUnit::Hertz => (1e8..1e10).contains(&value),
        MetricUnit::BytesPerSecond => (1e6..1e14).contains(&value),
        _ => value >= 0.0,
    };
    let mut checked = 0;
    for info in CATALOGUE {
        for source in info.sources_for(90) {
            let Formula::Metric(name) = source.formula else { continue };
            if let Some(value) = kernel.values.get(name) {
                assert!(in_range(info.unit, *value), "{}: {name} = {value}", info.id);
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn a_details_page() {
    let report = parse_csv(DETAILS).unwrap();
    assert_eq!((report.pages.as_slice(), report.kernels.len()), ([NcuPage::Details].as_slice(), 6));
    let kernel = &report.kernels[0];
    assert!(close(kernel.values[DURATION], 59.744e-6));
    let throughput = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
    assert!(close(kernel.values[throughput], 65.82), "in percent");
    let bandwidth = kernel.values["dram__bytes.sum.per_second"];
    assert!(close(bandwidth, 3_166_504_552_758.44), "the same label in bytes per second");
    assert!(close(kernel.values["sm__maximum_warps_per_active_cycle_pct"], 100.0));
    assert!(close(kernel.values["PM Sampling / Maximum Sampling Interval"], 1.5e-6));
    assert!(kernel.rules.iter().any(|rule| rule.name == "SOLBottleneck" && rule.kind == "OPT"));
}

/// If one section lacks the number of a metric and another section has it, the metric has a value
/// and no reason.
#[test]
fn sections_repeat_metrics() {
    let columns =
        ["ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value"];
    let sol = "GPU Speed Of Light Throughput";
    let row = |section, cell| ["0", "k", section, "Duration", "ns", cell];
    let rows = [row(sol, "n/a"), row("GPU Speed Of Light", "5"), row(sol, "5")];
    let rows: Vec<&[&str]> = rows.iter().map(<[&str; 6]>::as_slice).collect();
    let text = page(&columns, rows[0], &rows[1..]);
    let kernel = first(&text);
    assert!(close(kernel.values[DURATION], 5e-9), "the first that tells it");
    assert!(!kernel.missing.contains_key(DURATION));
}

#[test]
fn what_was_asked_for_and_is_not_there_is_listed() {
    let kernel = first(FEW);
    let requested = [DURATION, "bogus__metric.sum", "smsp__refused.sum"].into();
    let refused = ["smsp__refused.sum".to_owned()];
    let conditions = Conditions::default();
    let collected = kernel.collected("Nsight Compute 2025.3.1", &conditions, &requested, &refused);
    assert_eq!(collected.source, MetricSource::Ncu);
    assert!(close(collected.values[DURATION], 58.848e-6));
    assert!(collected.missing["bogus__metric.sum"].contains("left it out"));
    assert!(collected.missing["smsp__refused.sum"].contains("cannot read it"));
    assert!(collected.missing["launch__func_cache_config"].contains("CachePreferNone"));
    let passes = first(BASE).collected("t", &conditions, &[].into(), &[]).conditions.passes;
    assert_eq!(passes, Some(38));
}

#[test]
fn errors_of_the_tool_are_no_page() {
    for text in
        [fixture!("err_metric.csv"), fixture!("err_name.csv"), fixture!("err_no_kernels.csv"), ""]
    {
        assert_eq!(parse_csv(text), Err(NcuCsvError::NoHeader));
    }
}

/// Returns a page in the format of a version, from column names, units and rows.
fn page(columns: &[&str], units: &[&str], rows: &[&[&str]]) -> String {
    let line = |fields: &[&str]| {
        let quoted = fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\"")));
        quoted.collect::<Vec<_>>().join(",")
    };
    let mut text = line(columns) + "\n" + &line(units) + "\n";
    for row in rows {
        text.push_str(&(line(row) + "\n"));
    }
    text
}

/// The first version with a raw CSV page has no block, grid, device or capability. It has long unit
/// names, and NVTX ranges before the kernel's name.
#[test]
fn old_versions_and_ranges() {
    let range = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg";
    let text = page(
        &["ID", "Process ID", range, "Kernel Name", "Kernel Time", DURATION, "dram__bytes.sum"],
        &["", "", "", "", "", "usecond", "Mbyte"],
        &[
            &["0", "7", "\"<default domain>:r\"", "k<a, b>(int)", "2020-Feb-01", "58.85", "1.5"],
            &["1", "7", "", "k2", "2020-Feb-01", "n/a", "(!) n/a"],
            &["2", "7", "", "k3"],
        ],
    );
    let text = format!("\u{feff}==PROF== Connected to process 7\r\n{}", text.replace('\n', "\r\n"));
    let report = parse_csv(&text).unwrap();
    assert_eq!(report.other_lines, 1);
    let [first, second, third] = report.kernels.as_slice() else { panic!("{report:?}") };
    assert_eq!(first.name, "k<a, b>(int)");
    assert_eq!(first.ranges, ["\"<default domain>:r\""]);
    assert!(
        close(first.values[DURATION], 58.85e-6) && close(first.values["dram__bytes.sum"], 1.5e6)
    );
    assert_eq!((first.block, first.capability), (None, None));
    assert!(second.values.is_empty() && second.missing[DURATION].contains("n/a"));
    assert!(third.missing["dram__bytes.sum"].contains("ends before"));
}

#[test]
fn locales_are_inferred_or_refused() {
    let of = |cells: &[&str]| {
        let mut row = vec!["0", "k"];
        row.extend(cells);
        let columns = ["ID", "Kernel Name", DURATION, "a__b.sum", "a__c.pct"];
        parse_csv(&page(&columns, &["", "", "ns", "byte", "%"], &[&row]))
    };
    let values = |cells: &[&str]| {
        let kernel = of(cells).unwrap().kernels.remove(0);
        [kernel.values[DURATION] * 1e9, kernel.values["a__b.sum"], kernel.values["a__c.pct"]]
    };
    let expected = [8930.0, 1_209_119_616.0, 25.4];
    for cells in [
        ["8930", "1209119616", "25.40"],
        ["8,930", "1,209,119,616", "25.40"],
        ["8.930", "1.209.119.616", "25,40"],
        ["8\u{202f}930", "1\u{202f}209\u{202f}119\u{202f}616", "25,40"],
    ] {
        let found = values(&cells);
        assert!(found.iter().zip(expected).all(|(a, b)| close(*a, b)), "{cells:?} {found:?}");
    }
    let error = of(&["8.930", "12", "25"]).unwrap_err();
    assert!(matches!(&error, NcuCsvError::Ambiguous { column, .. } if column == DURATION));
    assert!(error.to_string().contains("8.930") && error.to_string().contains("LC_ALL=C"));
    assert!(matches!(of(&["1.5", "1", "25,40"]), Err(NcuCsvError::MixedLocales { .. })));
}

#[test]
fn numbers_without_a_known_unit_are_no_values() {
    let columns = ["ID", "Kernel Name", DURATION, "a__b.sum"];
    let text = page(&columns, &["", "", "", "Kfrob"], &[&["0", "k", "5", "5"]]);
    let kernel = first(&text);
    assert!(kernel.values.is_empty());
    assert!(kernel.missing[DURATION].contains("not a time"));
    assert!(kernel.missing["a__b.sum"].contains("`Kfrob` is not known"));
    let no_units = page(&columns, &["0", "k", "5", "5"], &[]);
    assert_eq!(parse_csv(&no_units), Err(NcuCsvError::NoUnits { line: 1 }));
    let twice = page(&["ID", "Kernel Name", "a", "a"], &[""; 4], &[&["0", "k", "1", "2"]]);
    assert!(matches!(parse_csv(&twice), Err(NcuCsvError::ColumnTwice { .. })));
}

/// Lines that a program prints between the lines of Nsight Compute change no value.
#[test]
fn a_program_that_prints_lines_like_the_tools() {
    let hostile = "==PROF== Profiling \"x\" - 0: 100% - 1 pass\n\u{1b}[31m\"ID\"\n\"open\n,,,\n\
                   \"x\",\"not a number of a kernel\",\"1\"\n";
    let mut lines: Vec<&str> = BASE.lines().collect();
    let header = lines.iter().position(|line| line.starts_with("\"ID\"")).unwrap();
    let spoiled = [
        &lines[..header],
        &[hostile],
        &lines[header..header + 3],
        &[hostile],
        &lines[header + 3..],
    ]
    .concat()
    .join("\n");
    lines.truncate(0);
    let (clean, spoiled) = (parse_csv(BASE).unwrap(), parse_csv(&spoiled).unwrap());
    assert_eq!(clean.kernels, spoiled.kernels);
}

#[test]
fn too_much_is_an_error() {
    let columns: Vec<String> = (0..=MAX_COLUMNS).map(|index| format!("c{index}")).collect();
    let text = format!("ID,Kernel Name,{}\n", columns.join(","));
    assert_eq!(parse_csv(&text), Err(NcuCsvError::TooManyColumns { line: 1 }));
    let long = format!("ID,Kernel Name\n,\n0,{}\n", "x".repeat(70_000));
    assert_eq!(parse_csv(&long), Err(NcuCsvError::FieldTooLong { line: 3 }));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        kernels in prop::collection::vec(
            ("[a-z<>(), *\"]{1,20}", prop::collection::vec(0u32..2_000_000_000, 4)), 1..5,
        ),
    ) {
        let columns =
            ["ID", "Kernel Name", "Grid Size", DURATION, "a__b.sum", "a__c.pct", "a__d.sum"];
        let units = ["", "", "", "ns", "Kbyte", "%", "inst"];
        let rows: Vec<Vec<String>> = kernels.iter().enumerate().map(|(id, (name, v))| vec![
            id.to_string(), name.clone(), format!("({}, 2, 3)", v[0]), v[0].to_string(),
            format!("{}.25", v[1]), format!("{}.50", v[2] % 100), v[3].to_string(),
        ]).collect();
        let rows: Vec<Vec<&str>> =
            rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
        let report = parse_csv(&page(&columns, &units, &rows)).unwrap();
        prop_assert_eq!(report.kernels.len(), kernels.len());
        for (kernel, (name, v)) in report.kernels.iter().zip(&kernels) {
            prop_assert_eq!(&kernel.name, name.trim());
            prop_assert_eq!(kernel.grid, Some([v[0], 2, 3]));
            prop_assert!(close(kernel.values[DURATION], f64::from(v[0]) * 1e-9));
            prop_assert!(close(kernel.values["a__b.sum"], (f64::from(v[1]) + 0.25) * 1e3));
            prop_assert!(close(kernel.values["a__c.pct"], f64::from(v[2] % 100) + 0.5));
            prop_assert!(close(kernel.values["a__d.sum"], f64::from(v[3])));
        }
    }

    /// A real page that is truncated at any byte is rejected, or gives only values of the whole
    /// page.
    #[test]
    fn a_page_that_is_cut_off_invents_nothing(cut in 0usize..FEW.len()) {
        let whole = first(FEW);
        let mut cut = cut;
        while !FEW.is_char_boundary(cut) { cut -= 1; }
        if let Ok(report) = parse_csv(&FEW[..cut]) {
            for kernel in report.kernels {
                // The last field may have lost digits.
                let other = kernel.values.iter().filter(|(name, value)| {
                    whole.values.get(*name) != Some(value)
                }).count();
                prop_assert!(other <= 1, "{other}");
            }
        }
    }
}
