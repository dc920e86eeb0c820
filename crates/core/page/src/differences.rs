//! The differences between two evaluations: code, options, launch, device, clocks, conditions and
//! results.

use maud::{Markup, html};
use warpgauge_job_views::JobView;
use warpgauge_metrics::si;
use warpgauge_report::{EvaluateResponse, RuntimeStats};

use crate::built;
use crate::document::{Content, Links};
use crate::parts::{self, Section, Tone};
use crate::text;

/// The maximum number of characters of a value in the table.
const VALUE: usize = 400;

/// A fact about both evaluations. A value is `None` if its report does not contain it.
struct Fact {
    name: &'static str,
    values: [Option<String>; 2],
}

/// Creates the page that compares two jobs. Returns `None` if one of them has no evaluation report.
pub(crate) fn content(jobs: [&JobView; 2], links: &Links) -> Option<Content> {
    let [first, second] = jobs;
    let reports = [first.result.as_ref()?, second.result.as_ref()?];
    let groups = [
        ("Result", results(reports)),
        ("Code", code(reports)),
        ("Build and launch", built(reports)),
        ("Device and driver", machine(reports)),
        ("Conditions", conditions(reports)),
        ("Checks", checks(reports)),
    ];
    let differ = groups.iter().flat_map(|(_, facts)| facts).filter(|fact| fact.differs()).count();
    let names = reports.map(|report| {
        report.kernel_exec_result.metadata.kernel_name.as_deref().unwrap_or("kernel")
    });
    let (tone, word) = match differ {
        0 => (Tone::Good, "nothing differs"),
        _ => (Tone::Plain, "what differs"),
    };
    let heading = html! { (text::code(names[0])) " and " (text::code(names[1])) };
    let sentence = html! {
        (text::counted(differ, "fact")) " of the two reports "
        @if differ == 1 { "differs" } @else { "differ" }
        ". Times of separate jobs cannot be compared: " code { "warpgauge compare" } " runs both side by side."
    };
    let [of_first, of_second] = ["the first", "the second"].map(|side| html! { (side) });
    let options = built::different_options(reports, [&of_first, &of_second]);
    let sentences = options.into_iter().chain([sentence]).collect::<Vec<_>>();
    Some(Content {
        title: format!("{word}: {}, {}", names[0], names[1]),
        about: html! { "jobs " (job(first, links)) " and " (job(second, links)) },
        refresh: None,
        main: html! {
            (parts::verdict(tone, word, heading, &sentences))
            @for (title, facts) in &groups { (group(title, facts)) }
        },
    })
}

fn job(view: &JobView, links: &Links) -> Markup {
    html! { a.mono href=(links.to(&format!("jobs/{}", view.job_id))) { (text::name(&view.job_id)) } }
}

fn group(title: &str, facts: &[Fact]) -> Markup {
    let id = title.to_lowercase().replace(' ', "-");
    section(&id, title, ["first", "second"], facts, &html! {})
}

/// Shows how two kernels were built and launched. It is expanded if they differ in it. `about`
/// names the second kernel if the page has several of them.
pub(crate) fn built_side_by_side(
    id: &str,
    reports: [&EvaluateResponse; 2],
    names: [&str; 2],
    about: &Markup,
) -> Markup {
    section(id, "Build and launch", names, &built(reports), about)
}

fn section(id: &str, title: &str, names: [&str; 2], facts: &[Fact], about: &Markup) -> Markup {
    let known = facts.iter().filter(|fact| fact.values.iter().any(Option::is_some));
    let known = known.collect::<Vec<_>>();
    let differ = known.iter().filter(|fact| fact.differs()).count();
    let [first, second] = names.map(text::label);
    let head = [("", false), ("fact", false), (&*first, false), (&*second, false)];
    let rows = known.iter().map(|fact| {
        let class = if fact.differs() { "chosen" } else { "same" };
        html! { tr class=(class) {
            td { @if fact.differs() { "≠" } @else { "=" } }
            td { (fact.name) }
            @for value in &fact.values {
                td.wide { @match value { Some(value) => (text::shown(value, VALUE)), None => "not known" } }
            }
        } }
    });
    let note = html! { (about) " " @match differ { 0 => "the same", n => { (n) " of " (known.len()) " differ" } } };
    html! {
        @if !known.is_empty() {
            (Section::new(id, title).open(differ > 0).note(note).with(parts::table(title, &head, rows)))
        }
    }
}

impl Fact {
    fn of(
        name: &'static str,
        reports: [&EvaluateResponse; 2],
        value: impl Fn(&EvaluateResponse) -> Option<String>,
    ) -> Self {
        Self { name, values: reports.map(value) }
    }

    fn differs(&self) -> bool {
        self.values[0] != self.values[1]
    }
}

fn results(reports: [&EvaluateResponse; 2]) -> Vec<Fact> {
    let stats = |report: &EvaluateResponse| report.kernel_exec_result.runtime_stats;
    let median = |stats: RuntimeStats| {
        let interval = stats.median_ci_low.zip(stats.median_ci_high);
        let interval = interval.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", text::time(low), text::time(high))
        });
        format!("{}{interval}", text::time(stats.median))
    };
    vec![
        Fact::of("verdict", reports, |it| Some(it.kernel_verdict().words().to_lowercase())),
        Fact::of("median", reports, |it| stats(it).map(median)),
        Fact::of("warp instructions", reports, |it| {
            Some(text::grouped(it.counted?.warp_instructions))
        }),
        Fact::of("sectors of global memory", reports, |it| {
            Some(text::grouped(it.counted?.global_sectors))
        }),
    ]
}

fn code(reports: [&EvaluateResponse; 2]) -> Vec<Fact> {
    vec![
        Fact::of("kernel", reports, |it| it.kernel_exec_result.metadata.kernel_name.clone()),
        Fact::of("image", reports, |it| Some(it.compile.as_ref()?.key.clone())),
        Fact::of("configuration", reports, |it| {
            let configuration = it.kernel_exec_result.metadata.configuration.as_ref()?;
            let settings = configuration.iter().map(|(name, value)| format!("{name}={value}"));
            Some(settings.collect::<Vec<_>>().join(" "))
        }),
        Fact::of("output hashes", reports, |it| {
            let hashes = it.outputs.iter();
            let hashes =
                hashes.map(|(name, output)| format!("{name} {}", text::shown(&output.blake3, 12)));
            Some(hashes.collect::<Vec<_>>().join(", ")).filter(|hashes| !hashes.is_empty())
        }),
    ]
}

fn built(reports: [&EvaluateResponse; 2]) -> Vec<Fact> {
    let [first, second] = reports.map(built::facts);
    let both = first.into_iter().zip(second);
    both.map(|((name, first), (_, second))| Fact { name, values: [first, second] }).collect()
}

fn machine(reports: [&EvaluateResponse; 2]) -> Vec<Fact> {
    vec![
        Fact::of("CUDA version", reports, |it| Some(it.device.as_ref()?.cuda_version.clone())),
        Fact::of("driver", reports, |it| it.measurement.as_ref()?.gpu.as_ref()?.driver.clone()),
        Fact::of("PyTorch", reports, |it| Some(it.torch.as_ref()?.torch.clone())),
        Fact::of("device", reports, |it| Some(it.device.as_ref()?.name.clone())),
        Fact::of("UUID", reports, |it| Some(it.device.as_ref()?.uuid.clone())),
        Fact::of("multiprocessors", reports, |it| {
            Some(it.device.as_ref()?.multiprocessors.to_string())
        }),
    ]
}

fn conditions(reports: [&EvaluateResponse; 2]) -> Vec<Fact> {
    let mean = |it: &EvaluateResponse| Some(it.measurement.as_ref()?.sm_clock?.mean_hz);
    vec![
        Fact::of("method", reports, |it| {
            let measurement = it.measurement.as_ref()?;
            Some(format!("{}, version {}", measurement.method, measurement.method_version))
        }),
        Fact::of("L2", reports, |it| Some(text::word(&it.measurement.as_ref()?.cache))),
        Fact::of("regime", reports, |it| Some(text::word(&it.measurement.as_ref()?.regime))),
        Fact::of("inputs", reports, |it| Some(text::word(&it.measurement.as_ref()?.inputs))),
        Fact::of("blocks per launch", reports, |it| {
            Some(text::grouped(it.measurement.as_ref()?.grid_blocks?))
        }),
        Fact::of("clock", reports, |it| Some(text::tight(&si(mean(it)?, "Hz")))),
        Fact::of("power limit", reports, |it| {
            Some(format!("{:.0}\u{202f}W", it.measurement.as_ref()?.gpu.as_ref()?.power_limit_w?))
        }),
        Fact::of("clock throttling", reports, |it| {
            let gpu = it.measurement.as_ref()?.gpu.as_ref()?;
            let reasons = gpu.throttle_reasons.iter().map(text::word).collect::<Vec<_>>();
            Some(if reasons.is_empty() { "no".to_owned() } else { reasons.join(", ") })
        }),
        Fact::of("other processes", reports, |it| {
            Some(it.measurement.as_ref()?.gpu.as_ref()?.other_processes?.to_string())
        }),
    ]
}

fn checks(reports: [&EvaluateResponse; 2]) -> Vec<Fact> {
    let listed = |it: &EvaluateResponse, value: &dyn Fn(&str) -> Option<String>| {
        let all = it
            .validation
            .outputs
            .keys()
            .filter_map(|name| Some(format!("{name} {}", value(name)?)));
        Some(all.collect::<Vec<_>>().join(", ")).filter(|all| !all.is_empty())
    };
    vec![
        Fact::of("outputs", reports, |it| {
            listed(it, &|name| {
                let output = it.outputs.get(name)?;
                Some(format!("{} {:?}", text::word(&output.dtype), output.shape))
            })
        }),
        Fact::of("tolerances", reports, |it| {
            listed(it, &|name| {
                let tolerance = it.validation.outputs.get(name)?.tolerance;
                Some(format!("{:e} + {:e} × expected", tolerance.atol, tolerance.rtol))
            })
        }),
        Fact::of("not checked", reports, |it| {
            Some(it.validation.unchecked.join(", ")).filter(|names| !names.is_empty())
        }),
        Fact::of("matrices", reports, |it| {
            let names = it
                .matrices
                .iter()
                .map(|one| format!("{} {}", one.name, text::shown(&one.blake3, 12)));
            Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
        }),
    ]
}
