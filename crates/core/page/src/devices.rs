//! The page of a server's devices, and of what its machine can do.

use maud::{Markup, html};
use warpgauge_job_views::{Durations, ServiceStatistics, Unready};
use warpgauge_model::DeviceKind;
use warpgauge_report::readable::bytes;
use warpgauge_report::{Capability, DeviceReading, DeviceReport, ToolReport, Warning};

use crate::clocks;
use crate::document::{Content, Links};
use crate::parts::{self, Section, Tone};
use crate::text;

/// The maximum number of devices, and of entries of any other list.
const MAX_DEVICES: usize = 64;
const MAX_ENTRIES: usize = 100;

/// The period of [`ThroughputStatistics::recent`](warpgauge_job_views::ThroughputStatistics), minutes.
const RECENT_MINUTES: f64 = 5.0;

/// The machine of a server, for [`devices`].
#[derive(Debug, Clone)]
pub struct MachineOverview {
    pub devices: Vec<DeviceOverview>,
    /// The reasons why no evaluation can run. Empty if evaluations can run.
    pub unready: Vec<Unready>,
    /// The number of evaluations that wait for a device, and its maximum.
    pub waiting: usize,
    pub capacity: usize,
    /// The kernel types that the server accepts.
    pub kernel_types: Vec<String>,
    pub compilers: Vec<String>,
    /// How compile processes are confined.
    pub compile_sandbox: String,
    pub tools: Vec<ToolReport>,
    /// Running programs that may hold the hardware counters.
    pub counter_users: Vec<String>,
    pub warnings: Vec<Warning>,
    /// Rates and durations since the start, for administrators.
    pub statistics: Option<ServiceStatistics>,
}

/// A device of a machine.
#[derive(Debug, Clone)]
pub struct DeviceOverview {
    pub device: DeviceReport,
    /// The state as `GET /devices` returns it: `ready`, `busy`, `starting`, or `failed: REASON`.
    pub state: String,
    pub jobs_done: u64,
    pub restarts: u64,
    /// How the workers are confined. Absent before the first worker starts.
    pub worker_sandbox: Option<String>,
    /// The state of the GPU when a worker read it last.
    pub reading: Option<DeviceReading>,
    /// The reason why there is no reading.
    pub no_reading: Option<String>,
    /// What the device can do, by name.
    pub capabilities: Vec<(String, Capability)>,
}

impl DeviceOverview {
    /// Returns the word of the state, and the reason of a failure.
    fn state(&self) -> (&str, Option<&str>) {
        match self.state.split_once(": ") {
            Some((word, reason)) => (word, Some(reason)),
            None => (&self.state, None),
        }
    }

    fn has_failed(&self) -> bool {
        self.state().0 == "failed"
    }

    fn state_tag(&self) -> Markup {
        let (word, _) = self.state();
        let tone = match word {
            "ready" => Tone::Good,
            "failed" => Tone::Bad,
            "starting" => Tone::Doubt,
            _ => Tone::Plain,
        };
        parts::tag(tone, &text::shown(word, text::NAME))
    }

    /// Returns the reason why the device does not work.
    fn problem(&self) -> Option<Markup> {
        let (_, reason) = self.state();
        reason.map(|reason| html! { " " span.small { (text::message(reason)) } })
    }
}

/// Writes the page of the devices.
pub fn devices(machine: &MachineOverview, links: &Links) -> String {
    let content = Content {
        title: "devices".to_owned(),
        about: html! { "where kernels run" },
        refresh: None,
        main: html! {
            (state(machine))
            @if !machine.devices.is_empty() { section.sheet { (table(machine)) } }
            (parts::more(machine.devices.len(), MAX_DEVICES, "devices"))
            @for one in machine.devices.iter().take(MAX_DEVICES) { (section(one, machine.devices.len() <= 4)) }
            (tools(machine))
            (compilers(machine))
            (warnings(&machine.warnings))
            @if let Some(statistics) = &machine.statistics { (server(statistics)) }
        },
    };
    content.whole(links)
}

/// Says whether evaluations can run, in the words of `GET /health`.
fn state(machine: &MachineOverview) -> Markup {
    let failed = machine.devices.iter().any(DeviceOverview::has_failed);
    let (tone, word) = match (machine.unready.is_empty(), failed) {
        (false, _) => (Tone::Bad, "unhealthy"),
        (true, true) => (Tone::Doubt, "degraded"),
        (true, false) => (Tone::Good, "healthy"),
    };
    let reasons = machine.unready.iter().take(MAX_ENTRIES);
    let reasons = reasons.map(|reason| text::message(&reason.message));
    let queue = html! {
        "Queue: " (text::counted(machine.waiting, "evaluation")) " of at most " (text::grouped(machine.capacity as u64)) "."
    };
    let sentences = reasons.chain([queue]).collect::<Vec<_>>();
    let heading = html! { (text::counted(machine.devices.len(), "device")) };
    parts::verdict(tone, word, heading, &sentences)
}

fn table(machine: &MachineOverview) -> Markup {
    let head = [
        ("device", true),
        ("name", false),
        ("state", false),
        ("kind", false),
        ("architecture", false),
        ("memory", true),
        ("multiprocessors", true),
        ("evaluations", true),
        ("workers replaced", true),
    ];
    let rows = machine.devices.iter().take(MAX_DEVICES).map(|one| {
        let device = &one.device;
        html! { tr {
            td.num { (device.id) }
            td.wide { (text::name(&device.name)) }
            td { (one.state_tag()) }
            td.num.left { (kind(device.kind)) }
            td.num.left { (text::name(&architecture(&device.compute_capability))) }
            td.num { (text::tight(&bytes(device.memory_bytes))) }
            td.num { (text::grouped(device.multiprocessors.into())) }
            td.num { (text::grouped(one.jobs_done)) }
            td.num { (text::grouped(one.restarts)) }
        } }
    });
    parts::table("Devices", &head, rows)
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cuda => "GPU",
        DeviceKind::Emulator => "emulated",
    }
}

/// Returns the name of the target of compilers for a compute capability.
fn architecture(capability: &str) -> String {
    format!("sm_{}", capability.replace('.', ""))
}

/// Shows facts and capabilities of a device.
fn section(one: &DeviceOverview, is_open: bool) -> Markup {
    let device = &one.device;
    let mut facts = vec![
        ("state", html! { (one.state_tag()) @if let Some(problem) = one.problem() { (problem) } }),
        ("UUID", html! { span.mono { (text::name(&device.uuid)) } }),
        ("compute capability", text::name(&device.compute_capability)),
        ("CUDA of the driver", text::name(&device.cuda_version)),
        ("L2 cache", html! { (text::tight(&bytes(device.l2_bytes))) }),
    ];
    facts.extend(clocks::facts(one.reading.as_ref(), one.no_reading.as_deref()));
    if let Some(sandbox) = &one.worker_sandbox {
        facts.push(("confinement", text::message(sandbox)));
    }
    if device.kind == DeviceKind::Emulator {
        facts.push(("times", html! { "Times of the emulation are never compared." }));
    }
    let head = [("capability", false), ("available", false), ("through, or why not", false)];
    let rows = one.capabilities.iter().take(MAX_ENTRIES).map(|(name, capability)| {
        let remedy = capability.remedy.as_deref();
        html! { tr {
            td.name { (text::name(name)) }
            td { (yes_or_no(capability.available)) }
            td.wide { (reason(Some(&capability.reason), remedy)) }
        } }
    });
    let title = format!("Device {}: {}", device.id, device.name.replace('\n', " "));
    Section::new(format!("device-{}", device.id), &text::shown(&title, text::NAME))
        .open(is_open || one.has_failed())
        .note(html! { (kind(device.kind)) })
        .with(html! {
            (parts::facts(facts))
            (parts::table("Capabilities", &head, rows))
        })
}

fn yes_or_no(available: bool) -> Markup {
    if available { parts::tag(Tone::Good, "yes") } else { parts::tag(Tone::Doubt, "no") }
}

fn reason(reason: Option<&str>, remedy: Option<&str>) -> Markup {
    html! {
        @if let Some(reason) = reason { (text::message(reason)) }
        @if let Some(remedy) = remedy { div.dim { "Remedy: " (text::message(remedy)) } }
    }
}

/// Shows rates, and the durations of the stages of jobs, since the server's start.
fn server(statistics: &ServiceStatistics) -> Markup {
    let ServiceStatistics { compilation, profiling, devices, throughput, .. } = statistics;
    let minutes = throughput.uptime_s / 60.0;
    let per_minute = |jobs: u64, minutes: f64| {
        html! { (text::number(if minutes > 0.0 { jobs as f64 / minutes } else { 0.0 })) " per minute" }
    };
    let recently = minutes.min(RECENT_MINUTES);
    let images = compilation.cache_hits + compilation.cache_misses;
    let mut facts = vec![
        ("running for", html! { (text::time(throughput.uptime_s * 1e3)) }),
        (
            "jobs accepted",
            html! { (text::grouped(throughput.total)) ", " (per_minute(throughput.total, minutes)) },
        ),
        ("in the last 5 minutes", per_minute(throughput.recent, recently)),
        ("ended with a report", html! { (text::grouped(throughput.completed)) }),
        ("ended without one", html! { (text::grouped(throughput.failed)) }),
        (
            "wrong outputs",
            html! { (text::grouped(profiling.wrong)) " of " (text::grouped(profiling.correct + profiling.wrong)) " checked runs" },
        ),
        (
            "compiled before",
            html! { (text::grouped(compilation.cache_hits)) " of " (text::grouped(images)) " kernels" },
        ),
    ];
    for device in devices.devices.iter().take(MAX_DEVICES) {
        facts.push(("device in use", html! { "device " (device.device) ", " (text::percent(device.utilization)) " of the time" }));
    }
    let head =
        [("stage", false), ("number", true), ("mean", true), ("shortest", true), ("longest", true)];
    let stages = [
        ("compile", &compilation.time),
        ("wait for a device", &devices.wait),
        ("run on a device", &profiling.time),
        ("whole job, from acceptance to end", &throughput.end_to_end),
    ];
    let rows = stages.into_iter().map(|(name, time)| html! { tr {
        td.name { (name) }
        td.num { (text::grouped(time.count)) }
        @for seconds in [time.mean_s(), time.min_s, time.max_s] { td.num { (duration(time, seconds)) } }
    } });
    Section::new("server", "Server").open(true).note(html! { "since its start" }).with(html! {
        (parts::facts(facts))
        (parts::table("Durations of stages", &head, rows))
    })
}

fn duration(of: &Durations, seconds: f64) -> Markup {
    html! { @if of.count > 0 { (text::time(seconds * 1e3)) } @else { "–" } }
}

fn tools(machine: &MachineOverview) -> Markup {
    let head =
        [("tool", false), ("available", false), ("version", false), ("where, or why not", false)];
    let rows = machine.tools.iter().take(MAX_ENTRIES).map(|tool| {
        let about = tool.reason.as_deref().or(tool.path.as_deref());
        html! { tr {
            td.name { (text::code(&tool.name)) }
            td { (yes_or_no(tool.available)) }
            td.num.left { @if let Some(version) = &tool.version { (text::name(version)) } }
            td.wide { (reason(about, tool.remedy.as_deref())) }
        } }
    });
    let found = machine.tools.iter().filter(|tool| tool.available).count();
    Section::new("tools", "Tools")
        .open(true)
        .note(html! { (text::grouped(found as u64)) " of " (text::grouped(machine.tools.len() as u64)) })
        .with(html! {
            (parts::table("Tools", &head, rows))
            (parts::more(machine.tools.len(), MAX_ENTRIES, "tools"))
            @if !machine.counter_users.is_empty() {
                p { "These programs may hold the hardware counters, which one process at a time can read:" }
                (list(&machine.counter_users))
            }
        })
}

fn compilers(machine: &MachineOverview) -> Markup {
    Section::new("compilers", "Compilers").open(true).with(html! {
        @if machine.compilers.is_empty() {
            p { "The server found no compiler for CUDA C++." }
        } @else { (list(&machine.compilers)) }
        (parts::facts(vec![
            ("kernel types", html! { (text::message(&machine.kernel_types.join(", "))) }),
            ("confinement", text::message(&machine.compile_sandbox)),
        ]))
    })
}

fn list(entries: &[String]) -> Markup {
    html! {
        ul.plain { @for entry in entries.iter().take(MAX_ENTRIES) { li { (text::name(entry)) } } }
        (parts::more(entries.len(), MAX_ENTRIES, "entries"))
    }
}

fn warnings(warnings: &[Warning]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            (Section::new("warnings", "Security").open(true).tone(Tone::Doubt).with(html! {
                @for warning in warnings.iter().take(MAX_ENTRIES) {
                    div { (reason(Some(&warning.message), Some(&warning.remedy))) }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{HOSTILE, Parsed};

    fn machine(states: &[&str]) -> MachineOverview {
        let device = |(index, state): (usize, &&str)| DeviceOverview {
            device: DeviceReport {
                id: index as u32,
                kind: if index == 0 { DeviceKind::Cuda } else { DeviceKind::Emulator },
                name: HOSTILE.to_owned(),
                uuid: HOSTILE.to_owned(),
                compute_capability: "9.0".to_owned(),
                cuda_version: HOSTILE.to_owned(),
                multiprocessors: 132,
                memory_bytes: 150_754_820_096,
                l2_bytes: 62_914_560,
            },
            state: (*state).to_owned(),
            jobs_done: 1_204,
            restarts: 2,
            worker_sandbox: Some(HOSTILE.to_owned()),
            reading: (index == 0).then(clocks::tests::reading),
            no_reading: (index != 0).then(|| "an emulated device has no clocks".to_owned()),
            capabilities: vec![
                ("timelines".to_owned(), Capability::lacks("no_tool", "no `nsys`", HOSTILE)),
                (HOSTILE.to_owned(), Capability::has("compute-sanitizer 2025.3")),
            ],
        };
        MachineOverview {
            devices: states.iter().enumerate().map(device).collect(),
            unready: Vec::new(),
            waiting: 3,
            capacity: 256,
            kernel_types: vec!["cuda".to_owned()],
            compilers: vec![HOSTILE.to_owned()],
            compile_sandbox: "landlock enforced".to_owned(),
            tools: vec![ToolReport {
                name: HOSTILE.to_owned(),
                available: false,
                path: None,
                version: Some(HOSTILE.to_owned()),
                reason: Some("not found".to_owned()),
                remedy: Some("install it".to_owned()),
            }],
            counter_users: vec![HOSTILE.to_owned()],
            warnings: vec![Warning::runs_as_root()],
            statistics: None,
        }
    }

    #[test]
    fn administrators_see_rates_and_durations() {
        let mut machine = machine(&["ready"]);
        assert!(!shown(&machine).text.contains("wait for a device"));
        let mut statistics = ServiceStatistics::default();
        statistics.throughput.uptime_s = 120.0;
        (statistics.throughput.total, statistics.throughput.recent) = (12, 8);
        statistics.devices.wait = Durations { count: 4, total_s: 0.2, min_s: 0.01, max_s: 0.1 };
        machine.statistics = Some(statistics);
        let page = shown(&machine);
        for text in ["12, 6 per minute", "4 per minute", "wait for a device"] {
            assert!(page.text.contains(text), "{text}: {}", page.text);
        }
        let row = &page.text;
        let row = row.split("wait for a device").nth(1).unwrap();
        let row = row.split("run on a device").next().unwrap();
        for text in ["50", "10", "100"] {
            assert!(row.contains(text), "{text}: {row}");
        }
    }

    fn shown(machine: &MachineOverview) -> Parsed {
        let html = devices(machine, &Links { root: Some("./"), ..Links::none() });
        assert!(!html.contains('\u{202e}') && !html.contains("<img"), "{html}");
        assert!(html.len() < 1 << 20, "{} bytes", html.len());
        Parsed::of(&html)
    }

    #[test]
    fn each_device_has_its_state_and_what_it_can_do() {
        let page = shown(&machine(&["ready", "failed: the driver went away", "busy"]));
        for text in [
            "degraded",
            "3 devices",
            "Queue: 3 evaluations of at most 256.",
            "the driver went away",
            "sm_90",
            "140.4\u{202f}GiB",
            "1\u{202f}204",
            "emulated",
            "Times of the emulation are never compared.",
            "1\u{202f}605 of at most 1\u{202f}980\u{202f}MHz",
            "not known: an emulated device has no clocks",
            "no nsys",
            "Remedy: install it",
            "the server runs as root",
        ] {
            assert!(page.text.contains(text), "{text} is missing in {}", page.text);
        }
        let page = shown(&machine(&["ready"]));
        assert!(page.text.contains("healthy") && !page.text.contains("unhealthy"));
    }

    #[test]
    fn a_machine_without_devices_says_why() {
        let unready = vec![Unready::new("no_device", "no device works: start `nvidia-smi`")];
        let none = MachineOverview { unready, tools: Vec::new(), ..machine(&[]) };
        let page = shown(&none);
        for text in ["unhealthy", "0 devices", "no device works: start nvidia-smi", "0 of 0"] {
            assert!(page.text.contains(text), "{text} is missing in {}", page.text);
        }
    }

    #[test]
    fn lists_of_any_length_make_a_bounded_page() {
        let long = "x".repeat(100_000);
        let mut many = machine(&["busy"; 300]);
        let tool = ToolReport { reason: Some(long.clone()), ..many.tools[0].clone() };
        many.tools = vec![tool; 1_000];
        many.compilers = vec![long; 1_000];
        let page = shown(&many);
        for text in ["236 more devices", "900 more tools", "900 more entries"] {
            assert!(page.text.contains(text), "{text} is missing");
        }
    }
}
