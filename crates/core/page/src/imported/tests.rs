use crate::tests::{HOSTILE, Parsed};
use crate::{PageOf, file};
use warpgauge_metrics::import::{self, Imported};
use warpgauge_metrics::select;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../tests/fixtures/profile/", $name))
    };
}

fn imported(text: &str) -> Imported {
    import::import(text, &select(&[])).unwrap()
}

fn page(text: &str) -> Parsed {
    Parsed::of(&file(PageOf::Imported(&imported(text), "report.csv")))
}

#[test]
fn a_report_of_nsight_compute_shows_what_limits_each_kernel() {
    let text = fixture!("ncu/2025.3.1-h200-raw_full_base.csv");
    let Imported::Ncu { verdicts, .. } = imported(text) else { panic!() };
    let page = page(text);
    assert!(page.text.contains("5 kernels"), "{}", &page.text[..400]);
    for verdict in &verdicts {
        assert!(page.text.contains(&verdict.bound_reason), "{}", verdict.kernel);
        for advice in &verdict.advice {
            let begin: String = advice.message.chars().take(40).collect();
            assert!(page.text.contains(begin.split('`').next().unwrap()), "{begin}");
        }
    }
    let drawings = page.elements.iter().filter(|(name, _)| name == "figure").count();
    let rated = verdicts.iter().filter(|verdict| {
        let roofline = verdict.roofline.as_ref();
        roofline.is_some_and(|one| one.points.iter().any(|point| point.rate.is_some()))
    });
    assert_eq!((drawings, rated.count()), (4, 4), "a roofline of each kernel with operations");
    // The details page contains the findings of the tool's rules.
    let details = self::page(fixture!("ncu/2025.3.1-h200-details_full.csv"));
    assert!(details.text.contains("Rules of the tool"));
}

#[test]
fn timelines_findings_and_lines_are_pages() {
    let trace = page(fixture!("nsys/2025.3.1-cuda_gpu_trace.txt"));
    assert!(trace.text.contains("9 activities") && trace.text.contains("NVIDIA H200 (0)"));
    let kernels = page(fixture!("nsys/2025.3.1-cuda_gpu_kern_sum.txt"));
    assert!(kernels.text.contains("vector_add(const float *, const float *, float *, int)"));
    let log = page(fixture!("sanitizer/2025.3.1-h200.txt"));
    assert!(log.text.contains("findings") && log.text.contains("by the tool's own count"));
    let source = page(
        "\"Kernel Name\",\"k\"\n\"#\",\"Address\",\"Source\",\"# Samples\"\n\
         \"0\",\"0x1\",\"RET\",\"7\"\n\"1\",\"0x2\",\"BRA\",\"9\"\n",
    );
    let at = |text: &str| source.text.find(text).unwrap();
    assert!(at("BRA") < at("RET"), "the line with most samples first");
}

#[test]
fn what_changed_is_a_page() {
    let head = "ID,Kernel Name,CC,gpu__time_duration.sum,dram__bytes.sum\n,,,nsecond,byte\n";
    let before = imported(&format!("{head}0,k,8.0,1000,1000\n"));
    let after = imported(&format!("{head}0,k,8.0,2000,2000\n"));
    let changes = import::changes(&before, &after).unwrap();
    let page = Parsed::of(&file(PageOf::Changes(&changes, ["a.csv", "b.csv"])));
    assert!(page.text.contains("slower") && page.text.contains("Changes since a.csv"));
    assert!(page.text.contains("dram_bytes") && page.text.contains("100"));
}

/// Names of kernels, devices and files are shown as text.
#[test]
fn names_cannot_be_markup() {
    let name = HOSTILE.replace('"', "\"\"");
    let ncu = format!(
        "ID,Kernel Name,CC,gpu__time_duration.sum\n,,,nsecond\n0,\"{name}\",8.0,1000\n\
         1,\"x{name}\",8.0,10\n"
    );
    let nsys = format!(
        "Start (ns),Duration (ns),CorrId,Device,Strm,Name\n10,5,1,\"{name}\",7,\"{name}\"\n"
    );
    for text in [ncu, nsys] {
        let html = file(PageOf::Imported(&imported(&text), HOSTILE));
        let page = Parsed::of(&html);
        assert!(page.text.contains("<img src=x onerror=alert(1)>"), "it is shown as text");
        assert!(!html.contains('\u{202e}'));
    }
}
