//! The page of the history: results of cases over time.

use std::collections::BTreeSet;

use maud::{Markup, html};
use warpgauge_gate::history::{ChangePoint, HistoryAnswer, Series, TrendPoint, short_commit};
use warpgauge_model::DeviceKind;

use crate::document::{Content, Links};
use crate::parts::{self, Section, Tone};
use crate::{chart, gate, jobs, text};

/// The maximum number of series on a page, and of links to cases.
const MAX_SERIES: usize = 20;
const MAX_CASES: usize = 200;
/// The maximum number of points in a table, with and without a chosen case.
const POINTS_OF_ONE: usize = 200;
const POINTS_OF_ALL: usize = 20;
/// The number of series that are not folded, in addition to those with changes.
const OPEN: usize = 3;
/// The limits that the page offers. The last one is the largest that `GET /history` accepts.
const LIMITS: [u32; 3] = [100, 1_000, 20_000];

/// An answer of `GET /history`, for [`history`].
#[derive(Debug, Clone, Copy)]
pub struct HistoryShown<'a> {
    pub answer: &'a HistoryAnswer,
    /// The case that the caller chose.
    pub case: Option<&'a str>,
    /// The maximum number of points that the caller chose.
    pub limit: Option<u32>,
}

impl HistoryShown<'_> {
    /// Returns the address of the history with another case and another limit.
    fn address(case: Option<&str>, limit: Option<u32>, links: &Links) -> String {
        let limit = limit.map(|limit| limit.to_string());
        let case = case.map(|case| ("case", case));
        let query = text::query(case.into_iter().chain(limit.as_deref().map(|n| ("limit", n))));
        links.to(&format!("history{query}"))
    }
}

/// Writes the page of the history.
pub fn history(shown: HistoryShown<'_>, links: &Links) -> String {
    let series = &shown.answer.series;
    let most = if shown.case.is_some() { POINTS_OF_ONE } else { POINTS_OF_ALL };
    let content = Content {
        title: "history".to_owned(),
        about: html! { "results over time" },
        refresh: None,
        main: html! {
            h1.page { "History" }
            div.sheet { (filters(shown, links)) }
            @if series.is_empty() { (nothing(shown, links)) }
            @for (index, one) in series.iter().take(MAX_SERIES).enumerate() {
                (section(one, index, most, links))
            }
            (parts::more(series.len(), MAX_SERIES, "series"))
            @if shown.answer.truncated {
                p.small.dim { "Older points exist beyond the limit." }
            }
            p.small.dim {
                "The gate does not use the history: it measures the baseline again, beside the candidate."
            }
        },
    };
    content.whole(links)
}

fn filters(shown: HistoryShown<'_>, links: &Links) -> Markup {
    let names = shown.answer.series.iter().map(|series| series.key.case.as_str());
    let names = names.collect::<BTreeSet<_>>();
    let address =
        |case: Option<&str>, limit: Option<u32>| HistoryShown::address(case, limit, links);
    html! {
        nav.filters aria-label="Case" {
            a href=(address(None, shown.limit)) aria-current=[shown.case.is_none().then_some("true")] { "All cases" }
            @for name in names.iter().take(MAX_CASES) {
                @let is_chosen = shown.case == Some(*name);
                a href=(address(Some(name), shown.limit)) aria-current=[is_chosen.then_some("true")] { (text::code(name)) }
            }
        }
        (parts::more(names.len(), MAX_CASES, "cases"))
        nav.filters aria-label="Number of points" {
            @for limit in LIMITS {
                @let is_chosen = shown.limit == Some(limit);
                a href=(address(shown.case, Some(limit))) aria-current=[is_chosen.then_some("true")] {
                    "Newest " (text::grouped(limit.into()))
                }
            }
        }
        form.fields.row method="get" action=(links.to("history")) {
            @if let Some(limit) = shown.limit { input type="hidden" name="limit" value=(limit); }
            label for="case" { "Case" }
            input #case type="search" name="case" maxlength=(text::NAME)
                value=(text::shown(shown.case.unwrap_or_default(), text::NAME));
            button { "Show" }
        }
    }
}

fn nothing(shown: HistoryShown<'_>, links: &Links) -> Markup {
    html! {
        section.sheet {
            @match shown.case {
                Some(case) => p {
                    "The case " (text::code(case)) " has no result. "
                    a href=(HistoryShown::address(None, shown.limit, links)) { "All cases" }
                },
                None => {
                    p { "The history is empty. Each evaluation on a GPU and each case of the gate add a point:" }
                    pre tabindex="0" { code {
                        "warpgauge eval kernel.cu --server http://HOST:PORT\n"
                        "warpgauge gate run suite.yaml --baseline HEAD --server http://HOST:PORT"
                    } }
                }
            }
        }
    }
}

/// Shows a series: its chart, and its points, the newest first.
fn section(series: &Series, index: usize, most: usize, links: &Links) -> Markup {
    let title = format!("{}: {}", series.key.case, text::word(&series.metric));
    let title = text::shown(&title.replace('\n', " "), text::NAME);
    let (points, changes) = (&series.points, &series.changes);
    let is_time = series.metric == "time";
    let interval = ("95 % interval", true);
    let head = [
        Some(("date", false)),
        Some(("commit", false)),
        Some(("branch", false)),
        Some((if is_time { "median" } else { "count" }, true)),
        // Counts are exact.
        is_time.then_some(interval),
        Some(("verdict", false)),
        Some(("change of level", false)),
        Some(("job", false)),
    ];
    let head = head.into_iter().flatten().collect::<Vec<_>>();
    let newest = points.iter().enumerate().rev().take(most);
    let rows = newest.map(|(at, point)| {
        let place = changes.binary_search_by_key(&at, |change| change.at as usize);
        row(series, point, place.ok().map(|place| &changes[place]), links)
    });
    Section::new(format!("series-{index}"), &title)
        .open(index < OPEN || !changes.is_empty())
        .note(html! {
            (text::counted(points.len(), "point"))
            @if !changes.is_empty() { ", " (text::counted(changes.len(), "change")) " of level" }
        })
        .with(html! {
            p.small.dim { (conditions(series)) }
            @if let Some(drawn) = chart::trend(series) {
                (parts::figure(drawn, html! {
                    "A dot is a run that passed, a cross another run. A vertical line marks a change of level."
                }))
            }
            (parts::table("Points", &head, rows))
            (parts::more(points.len(), most, "points"))
        })
}

fn conditions(series: &Series) -> Markup {
    let key = &series.key;
    html! {
        (text::name(&key.device))
        @if key.kind == DeviceKind::Emulator { ", emulated" }
        ", CUDA " (text::name(&key.cuda))
        @if let Some(driver) = &key.driver { ", driver " (text::name(driver)) }
        ", " (text::name(&key.method)) " " (key.method_version)
    }
}

fn row(series: &Series, point: &TrendPoint, change: Option<&ChangePoint>, links: &Links) -> Markup {
    let is_time = series.metric == "time";
    let value = |value: f64| if is_time { text::time(value) } else { text::number(value) };
    html! { tr.chosen[change.is_some()] {
        td.num.left { (jobs::moment(point.unix_s)) }
        td.mono.num.left { @if let Some(commit) = &point.commit { (text::name(&short_commit(commit))) } }
        td.name[point.branch.is_some()] { @if let Some(branch) = &point.branch { (text::name(branch)) } }
        td.num { @if point.value.is_finite() { (value(point.value)) } }
        @if is_time {
            td.num {
                @if let (Some(low), Some(high)) = (point.ci_low, point.ci_high) { (value(low)) " – " (value(high)) }
            }
        }
        td { (parts::tag(gate::tone(point.verdict), &text::word(&point.verdict).to_lowercase())) }
        td { @if let Some(change) = change { (changed(change, is_time)) } }
        td.num.left { @if let Some(job) = &point.job_id { a href=(links.to(&format!("jobs/{}", text::encoded(job)))) { "report" } } }
    } }
}

/// Shows a change in words, because many readers cannot rely on colours alone.
fn changed(change: &ChangePoint, is_time: bool) -> Markup {
    let rose = change.after > change.before;
    let share = change.after / change.before - 1.0;
    let size = match share.is_finite() {
        true => text::tight(&format!("{:.2} %", 100.0 * share.abs())),
        false => text::number(change.after - change.before),
    };
    let word = match (rose, is_time) {
        (true, true) => "▲ slower by",
        (false, true) => "▼ faster by",
        (true, false) => "▲ more by",
        (false, false) => "▼ less by",
    };
    parts::tag(if rose { Tone::Bad } else { Tone::Good }, &format!("{word} {size}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{HOSTILE, Parsed};
    use serde_json::json;

    const LINKS: fn() -> Links = || Links { root: Some("./"), ..Links::none() };

    fn example() -> HistoryAnswer {
        let text = include_str!("../../../../openapi/examples/history.json");
        serde_json::from_str(text).unwrap()
    }

    fn shown(answer: &HistoryAnswer, case: Option<&str>, limit: Option<u32>) -> String {
        history(HistoryShown { answer, case, limit }, &LINKS())
    }

    #[test]
    fn a_case_has_a_chart_and_its_points_with_the_changes() {
        let html = shown(&example(), None, Some(100));
        let page = Parsed::of(&html);
        for text in [
            "scale: time",
            "8 points, 1 change of level",
            "2026-01-05 00:00:00 UTC",
            "3f1c0a9",
            "▲ slower by 2.12\u{202f}%",
            "pass",
            "NVIDIA H200",
        ] {
            assert!(page.text.contains(text), "{text} is missing in {}", page.text);
        }
        assert_eq!(html.matches("class=\"chosen\"").count(), 1, "{html}");
        assert!(html.contains("+2.12 %") && html.contains("class=\"second\""), "{html}");
        assert!(html.contains("href=\"./history?case=scale&amp;limit=100\""), "{html}");
        // The newest point comes first.
        let [first, second] = ["2026-01-08", "2026-01-01"].map(|day| {
            let (_, table) = html.split_once("<tbody>").unwrap();
            table.find(day).unwrap()
        });
        assert!(first < second, "{html}");
    }

    #[test]
    fn an_empty_history_says_how_it_is_filled() {
        let none = HistoryAnswer { series: Vec::new(), truncated: false };
        let page = Parsed::of(&shown(&none, None, None));
        assert!(page.text.contains("The history is empty"), "{}", page.text);
        assert!(page.text.contains("warpgauge eval kernel.cu"), "{}", page.text);
        let html = shown(&none, Some(HOSTILE), None);
        let page = Parsed::of(&html);
        assert!(page.text.contains("The case <img src=x onerror=alert(1)>"), "{}", page.text);
        assert!(!html.contains('\u{202e}'), "{html}");
    }

    #[test]
    fn names_and_values_of_any_kind_are_text_of_bounded_size() {
        let mut answer = example();
        let series = &mut answer.series[0];
        series.key.case = HOSTILE.to_owned();
        series.key.device = HOSTILE.to_owned();
        for point in &mut series.points {
            let job_id = format!("../{HOSTILE}");
            *point = TrendPoint {
                branch: Some(HOSTILE.to_owned()),
                commit: Some(HOSTILE.repeat(9)),
                job_id: Some(job_id),
                ..point.clone()
            };
        }
        series.points[0].value = f64::NAN;
        series.points[1].value = f64::INFINITY;
        series.points[2].unix_s = f64::NAN;
        series.changes[0].before = 0.0;
        let point = series.points[5].clone();
        series.points.resize(400, point);
        answer.series = vec![answer.series[0].clone(); 100];
        let html = shown(&answer, None, None);
        let page = Parsed::of(&html);
        assert!(page.text.contains("80 more series") && page.text.contains("more points"));
        assert!(!html.contains('\u{202e}') && !html.contains("NaN"), "{html}");
        assert!(html.len() < 1 << 20, "{} bytes", html.len());
    }

    #[test]
    fn a_run_that_did_not_pass_has_another_sign() {
        let mut answer = example();
        let regression = json!("REGRESSION");
        answer.series[0].points[4].verdict = serde_json::from_value(regression).unwrap();
        let html = shown(&answer, Some("scale"), None);
        assert!(html.contains("class=\"rejected\"") && html.contains("regression"), "{html}");
        assert!(!shown(&example(), None, None).contains("class=\"rejected\""));
        // A single point needs no chart.
        answer.series[0].points.truncate(1);
        answer.series[0].changes.clear();
        assert!(!shown(&answer, None, None).contains("<figure"));
    }
}
