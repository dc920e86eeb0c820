use super::super::import;
use super::*;
use crate::select::select;

fn page(kernel: &str, rows: &[(&str, &str, &str)]) -> Imported {
    let columns =
        |of: fn(&(&str, &str, &str)) -> String| rows.iter().map(of).collect::<Vec<_>>().join(",");
    let text = format!(
        "ID,Kernel Name,{}\n,,{}\n0,{kernel},{}\n",
        columns(|row| row.0.to_owned()),
        columns(|row| row.1.to_owned()),
        columns(|row| row.2.to_owned()),
    );
    import(&text, &select(&[])).unwrap()
}

/// Twice the bytes at the same rate explain twice the time; fewer registers do not.
#[test]
fn what_explains_the_time_comes_first() {
    let of = |time: &str, bytes: &str, registers: &str, clock: &str| {
        page(
            "k",
            &[
                ("gpu__time_duration.sum", "us", time),
                ("dram__bytes.sum", "Mbyte", bytes),
                ("launch__registers_per_thread", "register/thread", registers),
                ("sm__cycles_elapsed.avg.per_second", "Mhz", clock),
            ],
        )
    };
    let found = changes(&of("10", "40", "32", "1500"), &of("20", "80", "16", "1400")).unwrap();
    let kernel = &found.kernels[0];
    assert!((kernel.time_ratio - 2.0).abs() < 1e-9);
    let order: Vec<&str> = kernel.changes.iter().map(|change| change.metric).collect();
    assert_eq!(order, ["dram_bytes", "sm_clock", "registers_per_thread"]);
    assert!((kernel.changes[0].explains - 1.0).abs() < 1e-9);
    assert!((kernel.changes[1].explains - 0.0995).abs() < 1e-3, "{:?}", kernel.changes[1]);
    assert_eq!(kernel.changes[2].explains, 0.0);
    let same = changes(&of("10", "40", "32", "1500"), &of("10", "40", "32", "1500")).unwrap();
    assert_eq!(same.kernels[0].changes, []);
}

#[test]
fn kernels_are_paired_by_name_and_a_single_one_anyway() {
    let one = |name: &str| page(name, &[("gpu__time_duration.sum", "us", "10")]);
    let found = changes(&one("a"), &one("b")).unwrap();
    assert_eq!((found.kernels.len(), found.notes.len()), (1, 1));
    let table = |rows: &str| {
        let head = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n";
        import(&format!("{head}{rows}"), &select(&[])).unwrap()
    };
    let before = table("90,900,9,100,a\n10,100,1,100,old\n");
    let after = table("50,500,5,100,a\n25,250,1,250,b\n25,250,1,250,c\n");
    let found = changes(&before, &after).unwrap();
    assert_eq!((found.gone, found.new), (vec!["old".to_owned()], vec!["b".into(), "c".into()]));
    assert_eq!(found.kernels[0].launches, [9, 5]);
    assert!((found.kernels[0].time_ratio - 1.0).abs() < 1e-9, "of one launch");
    assert_eq!(changes(&before, &one("a")), Err(ChangesError::Different), "of two tools");
    let log = import("========= ERROR SUMMARY: 0 errors\n", &select(&[])).unwrap();
    assert_eq!(changes(&log, &log), Err(ChangesError::Different));
}
