//! How a kernel was built and launched, and how two kernels differ in it. The main function is
//! [`facts`].

use maud::{Markup, html};
use warpgauge_report::EvaluateResponse;
use warpgauge_report::readable::bytes;

use crate::text;

/// The maximum number of options of one side that a sentence names.
const MAX_NAMED: usize = 8;

/// Returns names with values. A value is `None` if the report does not contain it.
pub(crate) fn facts(report: &EvaluateResponse) -> Vec<(&'static str, Option<String>)> {
    let compile = report.compile.as_ref();
    let launch = report.launch.as_ref();
    let used = compile.and_then(|compile| compile.resources);
    let function = compile.and_then(|compile| compile.function);
    let size = |number: u32| text::tight(&bytes(u64::from(number)));
    let spills = used.and_then(|used| used.spill_store_bytes.zip(used.spill_load_bytes));
    vec![
        ("compiler", compile.map(|it| it.compiler.clone()).filter(|name| !name.is_empty())),
        ("options", compile.map(|it| it.options.join(" ")).filter(|words| !words.is_empty())),
        ("grid", launch.map(|it| format!("{} blocks", extents(it.grid)))),
        ("block", launch.map(|it| format!("{} threads", extents(it.block)))),
        ("dynamic shared memory", launch.map(|it| format!("{} per block", size(it.shared_bytes)))),
        (
            "cluster",
            launch.map(|it| match it.cluster {
                Some(cluster) => format!("{} blocks", extents(cluster)),
                None => "none".to_owned(),
            }),
        ),
        (
            "cooperative launch",
            launch.map(|it| if it.cooperative { "yes" } else { "no" }.to_owned()),
        ),
        ("registers", used.map(|it| format!("{} per thread", it.registers))),
        (
            "spills",
            spills.map(|(stores, loads)| match stores + loads {
                0 => "none".to_owned(),
                _ => format!("{stores}\u{202f}B stored, {loads}\u{202f}B loaded, per thread"),
            }),
        ),
        (
            "static shared memory",
            used.map(|it| format!("{} per block", size(it.static_shared_bytes))),
        ),
        ("local memory", used.map(|it| format!("{} per thread", size(it.local_bytes)))),
        (
            "resident",
            function.map(|it| {
                let blocks = text::counted(it.max_active_blocks as usize, "block");
                format!("{blocks} of this launch per multiprocessor")
            }),
        ),
    ]
}

/// Formats extents along x, y and z, without trailing ones.
pub(crate) fn extents(extents: [u32; 3]) -> String {
    let used = extents.iter().rposition(|extent| *extent != 1).map_or(1, |last| last + 1);
    let used = extents[..used].iter().map(|extent| text::grouped((*extent).into()));
    used.collect::<Vec<_>>().join(" × ")
}

/// Returns a sentence about the compiler options in which two kernels differ. Returns `None` if
/// they do not differ, or if the options of a kernel are unknown.
pub(crate) fn different_options(
    reports: [&EvaluateResponse; 2],
    names: [&Markup; 2],
) -> Option<Markup> {
    let [first, second] = reports.map(|report| {
        report.compile.as_ref().map(|it| it.options.as_slice()).filter(|it| !it.is_empty())
    });
    let (first, second) = (first?, second?);
    let only = |own: &[String], others: &[String]| -> Vec<String> {
        own.iter().filter(|option| !others.contains(option)).cloned().collect()
    };
    let sides = [only(first, second), only(second, first)];
    let said = names.into_iter().zip(&sides).filter(|(_, own)| !own.is_empty());
    let said = said.collect::<Vec<_>>();
    if said.is_empty() {
        return (first != second).then(|| {
            html! { "The kernels have the same compiler options in different orders or numbers." }
        });
    }
    Some(html! {
        "The compiler options differ: "
        @for (index, (name, own)) in said.iter().enumerate() {
            @if index > 0 { "; " }
            "only " (name) " has "
            @for (index, option) in own.iter().take(MAX_NAMED).enumerate() {
                @if index > 0 { ", " } (text::code(option))
            }
            @if own.len() > MAX_NAMED { " and " (own.len() - MAX_NAMED) " more" }
        }
        "."
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{HOSTILE, Parsed, example};
    use crate::{Links, PageOf, differences, file};
    use serde_json::{Value, json};
    use warpgauge_job_views::JobView;

    fn report(options: &[&str]) -> Value {
        let mut report = example("report");
        report["compile"]["options"] = json!(options);
        report["launch"] = json!({"grid": [4096, 2, 1], "block": [256, 1, 1], "shared_bytes": 2048,
            "cluster": [2, 1, 1]});
        report
    }

    fn compared(options: [&[&str]; 2]) -> String {
        let [first, second] = options.map(report);
        let whole = json!({
            "job_id": "j", "status": "success", "reference": first, "timings": first["timings"],
            "kernel_exec_result": first["kernel_exec_result"],
            "candidates": [{"name": HOSTILE, "evaluation": second}],
        });
        let response = serde_json::from_value(whole).unwrap();
        Parsed::of(&file(PageOf::Comparison(&response, "a.cu"))).text
    }

    #[test]
    fn a_report_shows_options_and_launch() {
        let report = report(&["-arch=sm_90", "--fmad=false", HOSTILE]);
        let report = serde_json::from_value(report).unwrap();
        let page = Parsed::of(&file(PageOf::Evaluation(&report))).text;
        for text in [
            "grid 4\u{202f}096 × 2, block 256; nvrtc",
            "4\u{202f}096 × 2 blocks",
            "256 threads",
            "2.0\u{202f}KiB per block",
            "-arch=sm_90 --fmad=false <img",
        ] {
            assert!(page.contains(text), "{text} is missing in {page}");
        }
    }

    #[test]
    fn a_comparison_names_the_different_options_first() {
        let text = compared([&["-arch=sm_90", "-O1"], &["-arch=sm_90", "--fmad=false"]]);
        let sentence = "The compiler options differ: only a.cu has -O1; only <img";
        assert!(text.contains(sentence) && text.contains("has --fmad=false."), "{text}");
        assert!(text.find(sentence) < text.find("Build and launch"), "{text}");
        let text = compared([&["-arch=sm_90"], &["-arch=sm_90"]]);
        assert!(!text.contains("compiler options"), "{text}");
        let text = compared([&["-DA", "-UA"], &["-UA", "-DA"]]);
        assert!(text.contains("the same compiler options in different orders"), "{text}");
        // An old report has no options: nothing is said about them.
        assert!(!compared([&[], &["-O1"]]).contains("compiler options"));
    }

    #[test]
    fn two_jobs_differ_in_their_options() {
        let [one, other] = [&["-O1"], &["-O3"]].map(|options| {
            let view = json!({"job_id": "j", "state": "completed", "created_at": 0.0,
                "trials_done": 0, "result": report(options)});
            serde_json::from_value::<JobView>(view).unwrap()
        });
        let links = Links { root: Some("../"), ..Links::none() };
        let text = Parsed::of(&differences([&one, &other], &links).unwrap()).text;
        assert!(text.contains("only the first has -O1; only the second has -O3."), "{text}");
        assert!(text.contains("1 fact of the two reports differs"), "{text}");
    }

    #[test]
    fn extents_have_no_trailing_ones() {
        let shown = [[1, 1, 1], [2, 1, 1], [1, 3, 1], [1, 1, 4]].map(extents);
        assert_eq!(shown, ["1", "2", "1 × 3", "1 × 1 × 4"]);
    }
}
