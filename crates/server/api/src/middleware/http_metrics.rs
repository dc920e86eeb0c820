//! Counts and durations of requests, by operation: [`HttpMetrics`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use poem::http::StatusCode;

use super::route_table::RouteTable;
use warpgauge_telemetry::{Histogram, Observed};

/// Number of status classes, from 1xx to 5xx.
const CLASSES: usize = 5;

/// Counters and histograms: one pair for each operation, and one pair for all other requests. So
/// requests for unknown paths add no metrics.
pub(crate) struct HttpMetrics {
    operations: Vec<Operation>,
    other: Operation,
}

/// Counter and histogram of an operation.
struct Operation {
    method: String,
    route: String,
    time: Histogram,
    answers: [AtomicU64; CLASSES],
}

/// Counts of an operation at one moment.
pub(crate) struct OperationSeen<'a> {
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    pub(crate) time: Observed,
    /// Number of answers by status class.
    pub(crate) answers: [(&'static str, u64); CLASSES],
}

impl Operation {
    fn new(method: &str, route: &str) -> Self {
        Self {
            method: method.to_owned(),
            route: route.to_owned(),
            time: Histogram::new(),
            answers: Default::default(),
        }
    }

    fn add(&self, status: StatusCode, took: Duration) {
        self.time.observe(took);
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES) - 1;
        self.answers[class].fetch_add(1, Ordering::Relaxed);
    }

    fn seen(&self) -> OperationSeen<'_> {
        const NAMES: [&str; CLASSES] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        OperationSeen {
            method: &self.method,
            route: &self.route,
            time: self.time.observed(),
            answers: std::array::from_fn(|class| {
                (NAMES[class], self.answers[class].load(Ordering::Relaxed))
            }),
        }
    }
}

impl HttpMetrics {
    pub(crate) fn new(routes: &RouteTable) -> Self {
        let operations = routes.operations().map(|(method, route)| Operation::new(method, route));
        Self { operations: operations.collect(), other: Operation::new("other", "other") }
    }

    /// Counts an answer. Its head was ready `took` after the request.
    pub(crate) fn answered(
        &self,
        method: &str,
        template: Option<&str>,
        status: StatusCode,
        took: Duration,
    ) {
        let known = template.and_then(|template| {
            self.operations.iter().find(|one| one.route == template && one.method == method)
        });
        known.unwrap_or(&self.other).add(status, took);
    }

    /// Returns the operations that received requests.
    pub(crate) fn seen(&self) -> impl Iterator<Item = OperationSeen<'_>> {
        let all = self.operations.iter().chain([&self.other]).map(Operation::seen);
        all.filter(|seen| seen.time.count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_operation_counts_as_other() {
        let routes = RouteTable::new([
            ("/jobs/{job_id}".to_owned(), vec!["GET".to_owned(), "DELETE".to_owned()]),
            ("/health".to_owned(), vec!["GET".to_owned()]),
        ]);
        let metrics = HttpMetrics::new(&routes);
        let second = Duration::from_secs(1);
        let path = |path| routes.template(path);
        metrics.answered("GET", path("/jobs/7"), StatusCode::OK, second);
        metrics.answered("GET", path("/jobs/8"), StatusCode::NOT_FOUND, second);
        metrics.answered("BREW", path("/jobs/8"), StatusCode::METHOD_NOT_ALLOWED, second);
        metrics.answered("GET", path("/nowhere"), StatusCode::NOT_FOUND, second);
        let seen = metrics.seen().collect::<Vec<_>>();
        let names = seen.iter().map(|one| (one.method, one.route, one.time.count()));
        let names = names.collect::<Vec<_>>();
        assert_eq!(names, [("GET", "/jobs/{job_id}", 2), ("other", "other", 2)]);
        assert_eq!(seen[0].answers, [("1xx", 0), ("2xx", 1), ("3xx", 0), ("4xx", 1), ("5xx", 0)]);
    }
}
