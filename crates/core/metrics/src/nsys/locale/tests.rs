use super::super::parse_stats;
use super::*;

const HEADER: &str =
    "Time (%);Total Time (ns);Instances;Avg (ns);Med (ns);Min (ns);Max (ns);StdDev (ns);Name";
const DASHES: &str = "-------- --------------- --------- ---------------- ---------------- \
                      --------------- --------------- ---------------- ----------------";

/// Returns a console table with a row.
fn console(cells: &[&str]) -> String {
    let widths = [8, 15, 9, 16, 16, 15, 15, 16];
    let line = |cells: &[&str]| {
        let (name, numbers) = cells.split_last().unwrap();
        let numbers = numbers.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$} "));
        numbers.collect::<String>() + name
    };
    let header: Vec<&str> = HEADER.split(';').collect();
    format!("{}\n{DASHES}\n{}\n", line(&header), line(cells))
}

fn quoted(cells: &[&str], separator: &str) -> String {
    let row: Vec<String> = cells.iter().map(|cell| format!("\"{cell}\"")).collect();
    format!("{}\n{}\n", HEADER.replace(';', separator), row.join(separator))
}

#[test]
fn tables_of_all_locales_have_the_same_values() {
    for (locale, cells) in [
        ("C", ["100.0", "15993702", "2", "7996851.5", "5993702", "10000000", "2832812.4"]),
        ("en_US", ["100.0", "15,993,702", "2", "7,996,851.5", "5,993,702", "10,000,000", "2.5"]),
        ("de_DE", ["100,0", "15.993.702", "2", "7.996.851,5", "5.993.702", "10.000.000", "2,5"]),
        ("de, C", ["100,0", "15993702", "2", "7996851,5", "5993702", "10000000", "2832812,4"]),
        (
            "fr_FR",
            [
                "100,0",
                "15\u{202f}993\u{202f}702",
                "2",
                "7\u{202f}996\u{202f}851,5",
                "5\u{202f}993\u{202f}702",
                "10\u{202f}000\u{202f}000",
                "2,5",
            ],
        ),
        (
            "de_CH",
            [
                "100.0",
                "15\u{2019}993\u{2019}702",
                "2",
                "7\u{2019}996\u{2019}851.5",
                "5\u{2019}993\u{2019}702",
                "10\u{2019}000\u{2019}000",
                "2.5",
            ],
        ),
        ("zh_TW", ["100.0", "1599,3702", "2", "799,6851.5", "599,3702", "1000,0000", "2.5"]),
        ("en_IN", ["100.0", "1,59,93,702", "2", "79,96,851.5", "59,93,702", "1,00,00,000", "2.5"]),
    ] {
        let [share, total, instances, mean, min, max, deviation] = cells;
        let cells = [share, total, instances, mean, mean, min, max, deviation, "k(int, int)"];
        for text in [console(&cells), quoted(&cells, ","), quoted(&cells, ";")] {
            let report = parse_stats(&text).unwrap();
            assert_eq!(report.notes, [] as [&str; 0], "{locale}");
            let [row] = report.kernels.as_slice() else { panic!("{locale}: {text}") };
            let nanoseconds = |seconds: f64| (seconds * 1e10).round() / 10.0;
            assert_eq!((row.name.as_str(), row.count), ("k(int, int)", 2), "{locale}");
            assert_eq!(row.share_pct, Some(100.0), "{locale}");
            assert_eq!(nanoseconds(row.total), 15_993_702.0, "{locale}");
            assert_eq!(nanoseconds(row.mean.unwrap()), 7_996_851.5, "{locale}");
            assert_eq!(nanoseconds(row.min.unwrap()), 5_993_702.0, "{locale}");
            assert_eq!(nanoseconds(row.max.unwrap()), 10_000_000.0, "{locale}");
        }
    }
}

/// The first rows show no separator, so they are parsed again with that of the last.
#[test]
fn a_later_row_decides_for_all() {
    let header = "Start (ns);Duration (ns);CorrId;Bytes (MB);Device;Strm;Name\n";
    let text = format!("{header}5;7;1;67,109;GPU;7;a\n9;12.345;2;;GPU;7;b\n");
    let trace = parse_stats(&text).unwrap().trace;
    assert_eq!(trace[0].bytes, Some(67.109e6));
    assert!((trace[1].duration - 12_345e-9).abs() < 1e-15);
}

/// In versions of 2021, the column of bytes has no unit.
#[test]
fn traces_of_2021() {
    let text = "Start(sec);Duration(nsec);CorrId;Bytes;Thru(MB/s);Device;Strm;Name\n\
                0,000000;1.717.401;19;8.294.400;4.829,000;GPU (1);13;[CUDA memcpy HtoD]\n\
                0,000001;392;30;1.040;11,000;GPU (1);13;[CUDA memcpy HtoD]\n";
    let trace = parse_stats(text).unwrap().trace;
    assert_eq!((trace[0].bytes, trace[1].bytes), (Some(8_294_400.0), Some(1_040.0)));
    assert_eq!((trace[0].throughput, trace[1].throughput), (Some(4_829e6), Some(11e6)));
}

#[test]
fn what_could_be_two_numbers_is_refused() {
    let header = "Total (MB);Count;Avg (MB);Operation\n";
    let size = parse_stats(&format!("{header}67,109;1;67,109;[CUDA memset]\n")).unwrap_err();
    let text = size.to_string();
    assert!(text.starts_with("line 2, total: `67,109` may be"), "{text}");
    assert!(text.contains("LC_ALL=C"), "{text}");
    let report = parse_stats(&format!("{header}67,109;1;0,000;[CUDA memset]\n")).unwrap();
    assert_eq!(report.memory_size[0].total, 67.109e6);
    let report = parse_stats(&format!("{header}67.109;1;67.109;[CUDA memset]\n")).unwrap();
    assert_eq!(report.memory_size[0].total, 67.109e6, "sizes have three decimals");

    let mixed = format!("{HEADER}\n100,0;5;1;5,0;5,0;5;5;0,0;k\n100.0;5;1;5.0;5.0;5;5;0.0;k\n");
    let text = parse_stats(&mixed).unwrap_err().to_string();
    assert!(text.contains("`100.0` (line 3, time (%))") && text.contains("LC_ALL=C"), "{text}");
    let by_four = "Total Time (ns);Instances;Max (ns);Name\n599,3702;1;5;k\n";
    assert!(matches!(parse_stats(by_four), Err(NsysError::Ambiguous { .. })));
}

#[test]
fn counts_have_no_fraction() {
    let of = |cell| count::<u64>(cell, Convention::Dot);
    assert_eq!(of("9007199254740993"), Some(9_007_199_254_740_993));
    assert_eq!(of("1,024"), Some(1024));
    assert_eq!(count::<u64>("1.024", Convention::Comma), Some(1024));
    for cell in ["5.0", "5.5", "-5", "five", "1,02"] {
        assert_eq!(of(cell), None, "{cell}");
    }
}
