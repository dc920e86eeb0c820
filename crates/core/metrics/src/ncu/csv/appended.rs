//! Tests with files that users concatenated, truncated, or saved with another program.

use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../../tests/fixtures/profile/ncu/2025.3.1-h200-", $name))
    };
}

const RAW: &str = fixture!("raw_full_base.csv");
const DETAILS: &str = fixture!("details_full.csv");
const DURATION: &str = "gpu__time_duration.sum";
const REGISTERS: &str = "launch__registers_per_thread";

fn duration(kernel: &NcuKernel) -> f64 {
    (kernel.values[DURATION] * 1e9).round()
}

/// The pages are from different runs. They differ in the base units, in the metrics, and in the
/// order of columns. A marker separates them.
#[test]
fn each_page_is_read_with_its_own_header_and_units() {
    let first = "ID,Process ID,Kernel Name,gpu__time_duration.sum,launch__registers_per_thread\n\
                 ,,,msecond,register/thread\n0,7,k,5.5850,32\n";
    let second = "ID,Process ID,Kernel Name,dram__bytes.sum,launch__registers_per_thread,\
                  gpu__time_duration.sum\n,,,Mbyte,register/thread,usecond\n0,8,k,33.5,16,5.5850\n";
    for between in ["", "\n", "==PROF== Disconnected\r\n", "\u{feff}"] {
        let report = parse_csv(&format!("{first}{between}{second}")).unwrap();
        assert_eq!(report.pages, [NcuPage::Raw; 2]);
        let told: Vec<(f64, f64)> =
            report.kernels.iter().map(|k| (duration(k), k.values[REGISTERS])).collect();
        assert_eq!(told, [(5_585_000.0, 32.0), (5585.0, 16.0)], "{between:?}");
        assert!(report.notes[0].contains("another page begins"), "{:?}", report.notes);
    }
}

/// The launches of a report that was exported twice are merged. Launches of two runs stay separate,
/// even if the process numbers are equal.
#[test]
fn a_launch_in_two_pages_is_one_launch() {
    let twice = parse_csv(&format!("{RAW}\n{RAW}")).unwrap();
    assert_eq!(twice.kernels, parse_csv(RAW).unwrap().kernels);
    assert!(twice.notes[0].contains("6 of its launches are also in an earlier page"), "{twice:?}");

    let page = |metric: &str, unit: &str, value: &str| {
        format!(
            "\"ID\",\"Process ID\",\"Kernel Name\",\"{DURATION}\",\"{metric}\"\n\"\",\"\",\"\",\
             \"ns\",\"{unit}\"\n\"0\",\"7\",\"k\",{value}\n"
        )
    };
    let other = page("dram__bytes.sum", "byte", "\"1000.00\",\"64\"");
    let same = page("smsp__inst_executed.sum", "inst", "\"1001.00\",\"5\"");
    let merged = parse_csv(&format!("{other}{same}")).unwrap().kernels;
    assert_eq!(merged.len(), 1);
    assert_eq!(merged[0].values.len(), 3, "both sets: {merged:?}");
    let rerun = page("smsp__inst_executed.sum", "inst", "\"1400.00\",\"5\"");
    let apart = parse_csv(&format!("{other}{rerun}")).unwrap();
    assert_eq!(apart.kernels.len(), 2);
    assert!(apart.notes[0].contains("separate launches"), "{:?}", apart.notes);

    // Details and raw pages of two real runs give the kernels of both runs, without merging them.
    let both = parse_csv(&format!("{DETAILS}\n{RAW}")).unwrap();
    assert_eq!((both.pages.len(), both.kernels.len()), (2, 12));
    assert_eq!(both.kernels[6..], parse_csv(RAW).unwrap().kernels);
}

#[test]
fn rows_of_another_page_are_refused() {
    let header = "ID,Kernel Name,gpu__time_duration.sum,dram__bytes.sum\n";
    let units = ",,ns,byte\n";
    let of = |rest: &str| parse_csv(&format!("{header}{units}{rest}"));
    let error = of("0,k,5,6,7\n").unwrap_err().to_string();
    assert!(error.starts_with("line 3: the row has 5 fields, and the header in line 1"), "{error}");
    let error = of("0,k,5\n1,k,5,6\n").unwrap_err().to_string();
    assert!(error.starts_with("line 3: the row has 3 fields"), "{error}");
    let error = of("0,k,5,6\n,,us,byte\n1,k,5,6\n").unwrap_err();
    assert_eq!(error, NcuCsvError::UnitsTwice { line: 4, header: 1 });
    // Trailing separators and repeated units are harmless.
    assert_eq!(of("0,k,5,6,,\n").unwrap().kernels[0].values.len(), 2);
    assert_eq!(of("0,k,5,6\n,,ns,byte\n1,k,7,8\n").unwrap().kernels.len(), 2);
    let short = parse_csv(&format!("{header}{units}0,k,5,6\n1,k,5\n{header}{units}0,k,5,6\n"));
    assert!(matches!(short, Err(NcuCsvError::RowLength { line: 4, .. })), "{short:?}");
}

#[test]
fn lines_that_are_left_out_are_told() {
    let text = "ID,Kernel Name,gpu__time_duration.sum\n,,ns\n0,k,5\n\n\n==PROF== done\n1,k,6\n\
                \"2\",\"k\n3,k,7\nhello, world\n";
    let report = parse_csv(text).unwrap();
    assert_eq!(report.kernels.len(), 3, "empty lines and the log end nothing");
    assert_eq!(
        report.notes,
        [
            "line 8: `\"2\",\"k` is cut off, or has an unclosed quote: it is left out",
            "line 10: `hello, world` is not a row of the page: it is left out",
        ]
    );
    // The last row of the file was truncated, so digits of its last number may be missing.
    let cut = parse_csv("ID,Kernel Name,a__b.sum,a__c.sum\n,,,\n0,k,1,2\n1,k,12").unwrap();
    assert!(cut.kernels[1].values.is_empty(), "{cut:?}");
    assert!(cut.kernels[1].missing["a__b.sum"].contains("digits may be cut off"));
    assert!(cut.notes[0].starts_with("line 4: the row is cut off after 3 of 4 fields"), "{cut:?}");
    let summary = "\"Process ID\",\"Kernel Name\",\"Invocations\",\"Metric Name\",\"Minimum\",\
                   \"Maximum\",\"Average\"\n";
    assert_eq!(parse_csv(summary), Err(NcuCsvError::Summary { line: 1 }));
}

/// A spreadsheet with a German locale saved the page, or a program added an index column.
#[test]
fn pages_that_were_saved_anew() {
    let header = "ID;Kernel Name;launch__block_size;gpu__time_duration.sum;a__b.pct\n;;;ns;%\n";
    let of =
        |row: &str| parse_csv(&format!("sep=;\n{header}{row}\n")).map(|r| r.kernels[0].clone());
    let german = of("0;k;1.024;58.912;25,40").unwrap();
    assert_eq!((german.values["launch__block_size"], duration(&german)), (1024.0, 58_912.0));
    // The block size shows that the dot groups digits, because no block has 1.024 threads.
    let alone = of("0;k;1.024;58.912;25").unwrap();
    assert_eq!((alone.values["launch__block_size"], duration(&alone)), (1024.0, 58_912.0));
    let ambiguous = of("0;k;256;58.912;25").unwrap_err().to_string();
    assert!(ambiguous.starts_with("line 4, gpu__time_duration.sum: `58.912`"), "{ambiguous}");
    let mixed = of("0;k;1.024;58.91;25").unwrap_err().to_string();
    assert!(mixed.contains("`58.91` (line 4, gpu__time_duration.sum)"), "{mixed}");
    assert!(mixed.contains("`1.024` (line 4, launch__block_size)"), "{mixed}");

    let indexed = ",ID,Process ID,Kernel Name,gpu__time_duration.sum\n0,,,,ns\n1,0.0,7.0,k,58.91\n";
    assert_eq!(duration(&parse_csv(indexed).unwrap().kernels[0]), 59.0);
    let tabs = "ID\tKernel Name\tgpu__time_duration.sum\n\t\tus\n0\tk(int, int)\t1.5\n";
    assert_eq!(duration(&parse_csv(tabs).unwrap().kernels[0]), 1500.0);
}

/// With `--set full` the header is longer than the longest field, and without commas it is one
/// field.
#[test]
fn wide_pages_that_were_saved_anew() {
    let expected = parse_csv(RAW).unwrap().kernels;
    for (separator, quote) in [(";", ""), (";", "\""), ("\t", ""), ("\t", "\"")] {
        let between = format!("{quote}{separator}{quote}");
        let line = |record: Record<'_>| format!("{quote}{}{quote}\n", record.fields.join(&between));
        let rows = Records::new(RAW).map(Result::unwrap).filter(|record| record.fields.len() > 100);
        let text: String = rows.map(line).collect();
        assert!(text.lines().next().unwrap().len() > 64 << 10);
        assert!(looks_like_page(&text), "{between}");
        assert_eq!(parse_csv(&text).unwrap().kernels, expected, "{between}");
        let mut launches = 0;
        let each = super::super::each_launch(&text, |_| {
            launches += 1;
            Ok(())
        });
        assert_eq!((each, launches), (Ok(Vec::new()), expected.len()), "{between}");
    }
}

#[test]
fn values_that_cannot_be_are_left_out_and_told() {
    for (metric, unit, cell, why) in [
        ("dram__cycles_elapsed.avg.per_second", "ns", "3.2", "its unit `ns` is not a frequency"),
        (DURATION, "ns", "-5", "it is negative"),
        ("dram__bytes.sum", "%", "5", "its unit `%` is not a number of bytes"),
        ("l1tex__t_sector_hit_rate.pct", "%", "250", "250 % exceeds the possible maximum"),
        (REGISTERS, "register/thread", "33554432", "33554432 is not between 0 and 255"),
        ("launch__block_size", "", "128", "its value is 128, but the column Block Size gives 256"),
    ] {
        let text = format!(
            "ID,Kernel Name,Block Size,{metric},a__b.sum\n,,,{unit},\n0,k,\"(256, 1, 1)\",{cell},1\n"
        );
        let report = parse_csv(&text).unwrap();
        let kernel = &report.kernels[0];
        assert_eq!(kernel.values.len(), 1, "{metric}");
        assert!(kernel.missing[metric].starts_with(why), "{:?}", kernel.missing);
        let note = format!("line 3, {metric}: {why}");
        assert!(report.notes[0].starts_with(&note), "{:?}", report.notes);
    }
    // The details page contains a metric twice, as if two pages had lost their headers.
    let row = |value: &str| format!("0,k,GPU Speed Of Light Throughput,Duration,us,{value}\n");
    let header = "ID,Kernel Name,Section Name,Metric Name,Metric Unit,Metric Value\n";
    let text = format!("{header}{}{}{}", row("5.58"), row("8.00"), row("8.00"));
    let report = parse_csv(&text).unwrap();
    assert!(report.kernels[0].missing[DURATION].contains("differently"), "{report:?}");
    assert!(report.notes[0].starts_with("line 3, gpu__time_duration.sum"), "{report:?}");
}

/// Units and values of real pages are all accepted.
#[test]
fn real_pages_have_no_notes() {
    for text in [RAW, DETAILS, fixture!("import_raw.csv"), fixture!("raw_metrics.csv")] {
        assert_eq!(parse_csv(text).unwrap().notes, Vec::<String>::new());
    }
}
