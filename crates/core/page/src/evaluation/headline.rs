//! The part that a reader sees first: the verdict in a sentence, the median, the speed of light,
//! and what limits the kernel.

use maud::{Markup, html};
use warpgauge_metrics::{DeviceMetrics, si};
use warpgauge_model::{DeviceKind, Severity};
use warpgauge_report::{EvaluateResponse, KernelVerdict, RuntimeStats};
use warpgauge_statistics::{BytesFrom, FloorLimit, RankedBy, Rates};

use super::kernel_name;
use crate::parts::{self, Figure, Value};
use crate::text;

/// Returns the verdict in a sentence, without the kernel's name, which is shown above.
pub(crate) fn headline_sentence(report: &EvaluateResponse) -> String {
    let line = report.verdict_line(None);
    let name = kernel_name(report);
    let rest = line.strip_prefix(name).map(|rest| rest.trim_start_matches([':', ' ']));
    let sentence = rest.unwrap_or(&line);
    let first_error = first_error(report);
    let sentence = match report.kernel_verdict() {
        KernelVerdict::Error if report.failure.is_none() => {
            report.kernel_exec_result.validation_error.as_deref().unwrap_or(sentence)
        }
        KernelVerdict::NotCompiled => first_error.as_deref().unwrap_or(sentence),
        _ => sentence,
    };
    let found = report.sanitize.iter().flat_map(|sanitize| &sanitize.findings).next();
    let found = found.filter(|_| report.kernel_verdict() == KernelVerdict::Wrong).map(|finding| {
        let check = finding.check.replace('_', " ");
        let place = finding.source.as_ref().map_or(String::new(), |source| format!(" at {source}"));
        format!("the memory checks found a {check}{place}. Besides, {sentence}")
    });
    let sentence = found.as_deref().unwrap_or(sentence);
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    let end = if sentence.ends_with(['.', '!', '?', ']']) { "" } else { "." };
    first.into_iter().flatten().chain(letters).collect::<String>() + end
}

/// Returns the first compiler error with its line, and the number of additional errors.
fn first_error(report: &EvaluateResponse) -> Option<String> {
    let diagnostics = report.compile.as_ref().map_or(&[][..], |compile| &compile.diagnostics);
    let mut errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let first = errors.next()?;
    let line = first.line.map_or(String::new(), |line| format!("line {line}: "));
    let message = first.message.lines().next().unwrap_or_default();
    let more = match errors.count() {
        0 => String::new(),
        more => format!("; {}", text::counted(more, "more error")),
    };
    Some(format!("{line}{message}{more}"))
}

pub(super) fn figures(report: &EvaluateResponse) -> Markup {
    let stats = report.kernel_exec_result.runtime_stats.as_ref();
    let first = stats.map_or_else(|| no_time(report), |stats| time(report, stats));
    let emulated = is_emulated(report);
    let second = if emulated { Some(work(report)) } else { light(report) };
    let figures = [Some(first), second, limit(report)].into_iter().flatten().collect::<Vec<_>>();
    parts::figures(&figures)
}

fn is_emulated(report: &EvaluateResponse) -> bool {
    report.device.as_ref().is_some_and(|device| device.kind == DeviceKind::Emulator)
}

/// Shows the number of samples and the confidence interval of the median in one line.
pub(crate) fn median(stats: &RuntimeStats) -> Markup {
    let interval = stats.median_ci_low.zip(stats.median_ci_high);
    html! {
        @match interval {
            Some((low, high)) => {
                "95" "\u{202f}" "% CI " span.num { (text::time(low)) } " to " span.num { (text::time(high)) }
            }
            None => "too few samples for a confidence interval",
        }
        ", n" "\u{202f}" "=" "\u{202f}" (text::grouped(u64::from(stats.samples)))
    }
}

fn time(report: &EvaluateResponse, stats: &RuntimeStats) -> Figure {
    let emulated = is_emulated(report);
    let (title, value) = match stats.ranked_by {
        RankedBy::Mean => ("Mean time of a launch", stats.mean),
        RankedBy::Median if emulated => ("Median time, emulated", stats.median),
        RankedBy::Median => ("Median time of a launch", stats.median),
    };
    let unranked = report.unranked();
    let summary = report.measurement.as_ref().and_then(|measurement| measurement.summary.as_ref());
    let modes = summary.and_then(|summary| summary.modes).filter(|_| !emulated);
    let below = html! {
        p { (median(stats)) }
        @if stats.ranked_by == RankedBy::Mean {
            p { "Median " (text::time(stats.median)) "; some launches do the work of others, so the mean is used." }
        }
        @if emulated { p { "This is the time of the emulation. It says nothing about a GPU." } }
        @if let Some(modes) = modes {
            p.say {
                "Two modes: " (text::time(modes.fast_ms)) " and " (text::time(modes.slow_ms)) ", "
                (text::percent(modes.slow_share)) " of the launches in the slower one. Between such modes a median \
                 says little. Does the work depend on the inputs, which differ from launch to launch?"
            }
        }
        @if let Some(why) = unranked { p.say { "No rank: " (text::message(why)) } }
    };
    Figure { title, value: Value::Number(text::time(value)), below }
}

fn no_time(report: &EvaluateResponse) -> Figure {
    let why = match report.program {
        Some(_) => {
            "A whole program decides what it launches and how often, so there is no time per launch."
        }
        None => "The kernel was not timed.",
    };
    let value = Value::Words("No time".to_owned());
    Figure { title: "Median time of a launch", value, below: html! { p { (why) } } }
}

/// Shows the work of one launch as exact counts, since times on the emulated device have no
/// meaning.
fn work(report: &EvaluateResponse) -> Figure {
    let title = "Work of one launch, counted";
    match report.counted {
        Some(counted) => Figure {
            title,
            value: Value::Number(text::grouped(counted.warp_instructions)),
            below: html! {
                p { "warp instructions" }
                p { (text::grouped(counted.global_sectors)) " sectors of global memory" }
            },
        },
        None => Figure {
            title,
            value: Value::Words("Not counted".to_owned()),
            below: html! { p { "Nothing was counted for this kernel." } },
        },
    }
}

/// Shows the fraction of the speed of light that is reached.
fn light(report: &EvaluateResponse) -> Option<Figure> {
    let measurement = report.measurement.as_ref()?;
    let rates = measurement.rates.as_ref();
    let title = match rates.and_then(|rates| rates.limit) {
        Some(FloorLimit::Memory) => "Speed of light, by memory",
        Some(FloorLimit::Compute) => "Speed of light, by arithmetic",
        None => "Speed of light",
    };
    let share = rates.and_then(|rates| Some((rates, rates.of_speed_of_light?)));
    let Some((rates, share)) = share else {
        let derivation = measurement.speed_of_light.iter().flat_map(|light| &light.derivation);
        let why = derivation.map(String::as_str).next();
        let why = why.unwrap_or("the contract declares no work: give work.bytes or work.flops");
        let value = Value::Words("Not known".to_owned());
        return Some(Figure { title, value, below: html! { p { (text::message(why)) } } });
    };
    let below = html! {
        (parts::bar(0.0, share))
        @for line in achieved(rates) { p { (line) } }
        @if share > 1.0 { p { "Not all of the bytes went through device memory." } }
    };
    Some(Figure { title, value: Value::Number(text::percent(share)), below })
}

fn achieved(rates: &Rates) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(rate) = rates.bytes_per_second {
        let peak = rates.peak_bytes_per_second;
        let peak =
            peak.map_or(String::new(), |peak| format!(" of {}", text::tight(&si(peak, "B/s"))));
        let bytes = rates.bytes.map_or(String::new(), |bytes| text::tight(&si(bytes, "B")));
        let from = match rates.bytes_from {
            Some(BytesFrom::Buffers) => "assuming that each tensor is moved once",
            Some(BytesFrom::Declared) | None => "declared",
        };
        lines.push(format!("{}{peak}; {bytes} {from}", text::tight(&si(rate, "B/s"))));
    }
    if let (Some(flops), Some(rate)) = (rates.flops, rates.flops_per_second) {
        let (rate, flops) = (si(rate, "FLOP/s"), si(flops, "FLOP"));
        lines.push(format!("{}; {} declared", text::tight(&rate), text::tight(&flops)));
    }
    if let Some(least) = rates.least_ms {
        let what = match rates.limit {
            Some(FloorLimit::Memory) => "memory",
            Some(FloorLimit::Compute) => "arithmetic",
            None => "the device",
        };
        lines.push(format!("at its peak, {what} takes {}", text::time(least)));
    }
    lines
}

/// Shows what limits the kernel, or how to find out.
fn limit(report: &EvaluateResponse) -> Option<Figure> {
    let metrics = report.kernel_exec_result.metadata.device_metrics.as_ref();
    let roofline = metrics.and_then(|metrics| metrics.roofline.as_ref());
    let bound = roofline.and_then(|roofline| Some((roofline.bound_by?, &roofline.bound_reason)));
    let advice = metrics.and_then(|metrics| metrics.advice.first());
    let title = "Limited by";
    let measurement = report.measurement.as_ref();
    if measurement.is_some_and(|measurement| measurement.at_floor) {
        let empty = measurement.and_then(|measurement| measurement.empty_launch_ms);
        let below = html! {
            p { "This is the time of the launch itself."
                @if let Some(ms) = empty { " An empty kernel takes " (text::time(ms)) "." }
            }
        };
        return Some(Figure { title, value: Value::Words("Its launch".to_owned()), below });
    }
    let words = bound.map(|(bound, _)| {
        let sentence = bound.sentence();
        sentence.strip_prefix("bound by ").unwrap_or(sentence).to_owned()
    });
    let below = html! {
        @if let Some((_, reason)) = bound { p { (text::message(reason)) } }
        @if let Some(advice) = advice {
            p.say { (text::message(&advice.message)) }
            @if bound.is_none() { p { a href="#advice" { "All advice" } } }
        }
    };
    match (words, advice) {
        (Some(words), _) => Some(Figure { title, value: Value::Words(words), below }),
        (None, Some(advice)) => {
            let title = "Main observation";
            Some(Figure { title, value: Value::Words(text::word(&advice.code)), below })
        }
        (None, None) => match metrics {
            Some(metrics) => busiest(metrics),
            None => Some(not_profiled(report)),
        },
    }
}

/// Metrics of the busy share of a unit, percent, and the names of the units.
const UNITS: [(&str, &str); 4] = [
    ("sm_throughput", "arithmetic and issue"),
    ("l1_throughput", "L1 and shared memory"),
    ("l2_throughput", "L2"),
    ("dram_throughput", "device memory"),
];

/// Shows the busiest unit of a launch about which no rule says more. Returns `None` if no unit was
/// measured, as on the emulated device.
fn busiest(metrics: &DeviceMetrics) -> Option<Figure> {
    let get = |id: &str| metrics.metrics.get(id)?.value.filter(|value| value.is_finite());
    let mut units =
        UNITS.iter().filter_map(|(id, name)| Some((get(id)?, *name))).collect::<Vec<_>>();
    units.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (most, first) = *units.first()?;
    let any = get("compute_memory_throughput").filter(|&any| any > most + UNMEASURED_BY);
    let name = if any.is_some() { "a unit that was not measured" } else { first };
    let shares =
        units.iter().map(|(share, name)| format!("{name} {}", text::percent(share / 100.0)));
    let shares = shares.collect::<Vec<_>>().join(", ");
    let below = html! {
        @if let Some(any) = any { p { "It is busy for " (text::percent(any / 100.0)) " of its peak." } }
        p { "Of their peaks: " (shares) "." }
        p { "No rule explains more. " code { "profile: {metrics: [explain]}" } " collects what all rules need." }
    };
    Some(Figure { title: "Busiest unit", value: Value::Words(name.to_owned()), below })
}

/// Percentage points by which the busiest unit exceeds the measured ones if it is none of them.
const UNMEASURED_BY: f64 = 5.0;

/// Shows what the compiler knows about a kernel without metrics: spills.
fn not_profiled(report: &EvaluateResponse) -> Figure {
    let resources = report.compile.as_ref().and_then(|compile| compile.resources.as_ref());
    let spills = resources.and_then(|used| used.spill_store_bytes.zip(used.spill_load_bytes));
    let spills = spills.filter(|(stored, loaded)| stored + loaded > 0);
    let hint = html! { p { "Evaluate with " code { "profile" } " to find out what limits it." } };
    match spills {
        Some((stored, loaded)) => Figure {
            title: "Main observation",
            value: Value::Words("spilled registers".to_owned()),
            below: html! {
                p { (stored) "\u{202f}" "B stored and " (loaded) "\u{202f}" "B loaded per thread, in local memory." }
                (hint)
            },
        },
        None => Figure {
            title: "Limited by",
            value: Value::Words("Not profiled".to_owned()),
            below: hint,
        },
    }
}
