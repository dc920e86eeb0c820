use super::super::facts::{Facts, Timed, Values};
use super::super::roofline::roofline;
use super::super::testing::{emulated_h200, h200, metrics};
use super::*;

const CAPTION: Caption<'_> =
    Caption { kernel: "scale<float>", device: "NVIDIA H200", tool: "CUPTI 13.0.85" };

fn drawn(values: &[(&str, f64)], emulated: bool) -> Roofline {
    let device = if emulated { emulated_h200() } else { h200() };
    let facts = Facts { device: &device, resources: None, inputs: &[], timed: Timed::default() };
    roofline(Values::new(&metrics(values)), &facts).unwrap()
}

fn profiled() -> Roofline {
    drawn(
        &[
            ("duration", 58.912e-6),
            ("sm_clock", 1.98e9),
            ("flop_count_single", 16_777_216.0),
            ("flop_count_half", 1e6),
            ("flop_count_tensor_half", 1e9),
            ("l1_bytes", 2e8),
            ("l2_bytes", 1.3e8),
            ("peak_l2", 6016.0),
            ("l2_clock", 1.7e9),
            ("dram_bytes", 1.9e8),
        ],
        false,
    )
}

fn counted() -> Roofline {
    drawn(
        &[
            ("flop_count_single", 1e6),
            ("l2_sectors_global", 1e5),
            ("ideal_read_bytes", 8e5),
            ("ideal_write_bytes", 2e5),
        ],
        true,
    )
}

/// Parses the picture as XML, and fails if the parser refuses it.
fn document(svg: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"))
}

fn count(document: &roxmltree::Document<'_>, class: &str) -> usize {
    let has = |node: &roxmltree::Node<'_, '_>| {
        node.attribute("class").is_some_and(|classes| classes.split(' ').any(|c| c == class))
    };
    document.descendants().filter(has).count()
}

#[test]
fn the_picture_of_a_profiled_kernel_is_the_golden_one() {
    let svg = render(&profiled(), CAPTION);
    assert_eq!(svg, render(&profiled(), CAPTION), "the same bytes each time");
    insta::assert_snapshot!("profiled", svg);
    let document = document(&svg);
    // There are three precisions on three levels, a line for each level, and a line for each
    // precision with a peak.
    assert_eq!(count(&document, "mark"), 9);
    assert_eq!(
        count(&document, "roof"),
        3 + profiled().compute.iter().filter(|c| c.ceiling.is_some()).count()
    );
}

#[test]
fn the_picture_of_a_counted_kernel_is_the_golden_one() {
    let svg = render(&counted(), CAPTION);
    insta::assert_snapshot!("counted", svg);
    assert_eq!(count(&document(&svg), "mark"), 2);
    assert!(svg.contains("the emulated device has no times"));
}

/// Every mark and every line is inside the plot.
#[test]
fn nothing_is_drawn_outside() {
    for roofline in [
        profiled(),
        counted(),
        drawn(&[("flop_count_single", 1.0), ("dram_bytes", 1e300), ("duration", 1e-300)], false),
    ] {
        let svg = render(&roofline, CAPTION);
        let document = document(&svg);
        for node in document.descendants().filter(|node| node.has_tag_name("path")) {
            let data = node.attribute("d").unwrap();
            assert!(!data.contains("NaN") && !data.contains("inf"), "{data}");
            let start = data[1..].split(|c: char| c.is_ascii_alphabetic()).next().unwrap();
            let place: Vec<f64> =
                start.split_whitespace().map(|number| number.parse().unwrap()).collect();
            assert!(
                (0.0..=WIDTH).contains(&place[0]) && (0.0..=HEIGHT).contains(&place[1]),
                "{data}"
            );
        }
        let lines = document.descendants().filter(|node| node.has_tag_name("line"));
        for (line, (name, most)) in lines.flat_map(|line| {
            [("x1", WIDTH), ("y1", HEIGHT), ("x2", WIDTH), ("y2", HEIGHT)].map(|end| (line, end))
        }) {
            let place: f64 = line.attribute(name).unwrap().parse().unwrap();
            assert!((0.0..=most).contains(&place), "{name} {place}");
        }
    }
}

#[test]
fn names_are_text_and_nothing_else() {
    let hostile = "k</text><script>alert(1)</script>\"'&\u{0}\u{1b}[31m\u{202e}]]>";
    let caption = Caption { kernel: hostile, device: hostile, tool: hostile };
    let mut roofline = profiled();
    roofline.bound_reason = hostile.to_owned();
    roofline.notes = vec![hostile.to_owned()];
    let svg = render(&roofline, caption);
    let document = document(&svg);
    let tags: std::collections::BTreeSet<&str> =
        document.descendants().filter(|n| n.is_element()).map(|n| n.tag_name().name()).collect();
    let known = ["desc", "line", "path", "rect", "style", "svg", "text", "title"];
    assert!(tags.iter().all(|tag| known.contains(tag)), "{tags:?}");
    assert!(document.descendants().any(|n| n.text().is_some_and(|t| t.contains("<script>"))));
}

#[test]
fn a_kernel_without_operations_says_so() {
    let svg =
        render(&drawn(&[("flop_count_single", 0.0), ("l2_sectors_global", 5.0)], true), CAPTION);
    document(&svg);
    assert!(svg.contains("no floating-point operations"), "{svg}");
}
