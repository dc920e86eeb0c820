//! The metrics of the server in the OpenMetrics text format, which Prometheus reads.

use std::fmt;
use std::sync::Mutex;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::middleware::http_metrics::HttpMetrics;
use warpgauge_job_views::JobCounts;
use warpgauge_model::DeviceKind;
use warpgauge_report::DeviceReport;
use warpgauge_service::ServiceStatus;
use warpgauge_telemetry::{BOUNDS, LabelKind, Observed, Stage, telemetry};

/// Media type of the text.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the current value of every metric.
pub(crate) fn exposition(
    status: &ServiceStatus,
    ready: bool,
    jobs: &JobCounts,
    http: &HttpMetrics,
    watchers: usize,
) -> Result<String, fmt::Error> {
    let mut families = Vec::new();
    service(&mut families, status, jobs, watchers);
    let ready = Samples::Gauge(vec![(vec![], f64::from(u8::from(ready)))]);
    families.push(family(
        "ready",
        "Whether evaluations can run; /health gives the reasons if not.",
        None,
        ready,
    ));
    devices(&mut families, status);
    work(&mut families);
    answers(&mut families, http);
    let mut registry = Registry::with_prefix("warpgauge");
    registry.register_collector(Box::new(Families(Mutex::new(families))));
    let mut text = String::with_capacity(32 << 10);
    text::encode(&mut text, &registry)?;
    Ok(text)
}

type Labels = Vec<(&'static str, String)>;

/// A metric and its samples.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    samples: Samples,
}

#[derive(Debug)]
enum Samples {
    Gauge(Vec<(Labels, f64)>),
    Counter(Vec<(Labels, u64)>),
    /// A counter whose value may be a fraction.
    Sum(Vec<(Labels, f64)>),
    Histogram(Vec<(Labels, Observed)>),
    Info(Labels),
}

/// The metrics that [`exposition`] collected, stored until the encoder reads them.
#[derive(Debug)]
struct Families(Mutex<Vec<Family>>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let families = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        families.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let kind = match &self.samples {
            Samples::Gauge(_) => MetricType::Gauge,
            Samples::Counter(_) | Samples::Sum(_) => MetricType::Counter,
            Samples::Histogram(_) => MetricType::Histogram,
            Samples::Info(_) => MetricType::Info,
        };
        let unit = self.unit.as_ref();
        let mut encoder = encoder.encode_descriptor(self.name, self.help, unit, kind)?;
        match &self.samples {
            Samples::Gauge(samples) => samples
                .iter()
                .try_for_each(|(labels, value)| encoder.encode_family(labels)?.encode_gauge(value)),
            Samples::Counter(samples) => samples.iter().try_for_each(|(labels, value)| {
                encoder.encode_family(labels)?.encode_counter::<Labels, u64, f64>(value, None)
            }),
            Samples::Sum(samples) => samples.iter().try_for_each(|(labels, value)| {
                encoder.encode_family(labels)?.encode_counter::<Labels, f64, f64>(value, None)
            }),
            Samples::Histogram(samples) => samples.iter().try_for_each(|(labels, observed)| {
                let bounds = BOUNDS.iter().copied().chain([f64::MAX]);
                let buckets: Vec<_> = bounds.zip(observed.buckets).collect();
                encoder.encode_family(labels)?.encode_histogram::<Labels>(
                    observed.sum_s,
                    observed.count(),
                    &buckets,
                    None,
                )
            }),
            Samples::Info(labels) => encoder.encode_info(labels),
        }
    }
}

fn service(families: &mut Vec<Family>, status: &ServiceStatus, jobs: &JobCounts, watchers: usize) {
    let one = |value: f64| Samples::Gauge(vec![(vec![], value)]);
    let build = vec![("version", status.version.clone())];
    let by_state = jobs.by_state.iter();
    let jobs = by_state.map(|(state, count)| (vec![("state", state.clone())], *count as f64));
    families.extend([
        family("build", "Version of the program.", None, Samples::Info(build)),
        family("uptime", "Time since the service started.", seconds(), one(status.uptime_s)),
        family("queue_depth", "Evaluations that wait for a device.", None, {
            one(status.queue_depth as f64)
        }),
        family("queue_capacity", "Maximum number of evaluations that wait for a device.", None, {
            one(status.queue_capacity as f64)
        }),
        family("jobs", "Stored jobs, by state.", None, Samples::Gauge(jobs.collect())),
        family("event_watchers", "Open streams of events.", None, one(watchers as f64)),
    ]);
}

fn devices(families: &mut Vec<Family>, status: &ServiceStatus) {
    // After a restart the ordinal may belong to another device; the UUID does not change.
    let label = |device: &DeviceReport| {
        vec![("device", device.id.to_string()), ("uuid", device.uuid.clone())]
    };
    let (mut up, mut busy, mut share) = (vec![], vec![], vec![]);
    let (mut jobs, mut restarts) = (vec![], vec![]);
    for view in &status.devices {
        let id = view.device.id;
        let in_use = telemetry().device_use(id);
        let mut named = label(&view.device);
        named.push(("kind", kind(view.device.kind).to_owned()));
        named.push(("name", view.device.name.clone()));
        up.push((named, f64::from(u8::from(super::views::serves(view)))));
        busy.push((label(&view.device), in_use.busy_s));
        share.push((label(&view.device), (in_use.busy_s / status.uptime_s.max(1e-9)).min(1.0)));
        jobs.push((label(&view.device), view.jobs_done));
        restarts.push((label(&view.device), view.restarts));
    }
    families.extend([
        family("device_up", "Whether the device serves evaluations.", None, Samples::Gauge(up)),
        family(
            "device_busy",
            "Time that a device was leased, or cleaned up after a lease.",
            seconds(),
            Samples::Sum(busy),
        ),
        family(
            "device_busy_ratio",
            "Share of the uptime that a device was busy.",
            None,
            Samples::Gauge(share),
        ),
        family("device_leases", "Leases of a device.", None, Samples::Counter(jobs)),
        family(
            "worker_restarts",
            "Workers that were started to replace lost ones.",
            None,
            Samples::Counter(restarts),
        ),
    ]);
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cuda => "cuda",
        DeviceKind::Emulator => "emulator",
    }
}

fn work(families: &mut Vec<Family>) {
    let telemetry = telemetry();
    let named = |label: &'static str, counts: Vec<(&'static str, u64)>| {
        let counts = counts.into_iter();
        let samples = counts.map(|(name, count)| (vec![(label, name.to_owned())], count));
        Samples::Counter(samples.collect())
    };
    let stages = Stage::ALL.iter();
    let stages = stages
        .map(|it| (vec![("stage", it.name().to_owned())], telemetry.stage_times(*it)))
        .collect();
    let submitted = Samples::Counter(vec![(vec![], telemetry.submissions().0)]);
    families.extend([
        family(
            "stage_duration",
            "Wall time of the stages of evaluations; `worker` contains `measure` and `validate`, \
             and `total` is the time of whole jobs.",
            seconds(),
            Samples::Histogram(stages),
        ),
        family(
            "evaluations",
            "Kernels evaluated, by outcome.",
            None,
            named("outcome", telemetry.outcomes()),
        ),
        family(
            "compilations",
            "Compilations, by the source of the image: memory, disk and shared are cache hits.",
            None,
            named("image", telemetry.images()),
        ),
        family("jobs_submitted", "Jobs accepted.", None, submitted),
        family("jobs_ended", "Jobs that ended.", None, named("state", telemetry.endings())),
        family(
            "requests_rejected",
            "Rejected requests, by reason.",
            None,
            named("reason", telemetry.rejects()),
        ),
        family(
            "webhook_attempts",
            "Attempts to deliver webhooks, by outcome.",
            None,
            named("result", telemetry.deliveries()),
        ),
    ]);
}

fn answers(families: &mut Vec<Family>, http: &HttpMetrics) {
    let (mut times, mut counts) = (vec![], vec![]);
    for seen in http.seen() {
        let labels = || vec![("method", seen.method.to_owned()), ("route", seen.route.to_owned())];
        for (class, count) in seen.answers.iter().filter(|(_, count)| *count > 0) {
            let mut labels = labels();
            labels.push(("status", (*class).to_owned()));
            counts.push((labels, *count));
        }
        times.push((labels(), seen.time));
    }
    families.extend([
        family(
            "http_request_duration",
            "Time to the head of the answer, by operation.",
            seconds(),
            Samples::Histogram(times),
        ),
        family("http_responses", "Answers, by operation.", None, Samples::Counter(counts)),
    ]);
}

fn family(name: &'static str, help: &'static str, unit: Option<Unit>, samples: Samples) -> Family {
    Family { name, help, unit, samples }
}

fn seconds() -> Option<Unit> {
    Some(Unit::Seconds)
}
