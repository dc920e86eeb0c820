//! The history of measurements: gates and evaluations add points to it, and queries read it.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use crate::error::{self, ServiceError, refused};
use crate::records::visibility;
use crate::settings;
use crate::submission::Caller;
use warpgauge_config::Config;
use warpgauge_gate::history::{HistoryAnswer, HistoryPoint};
use warpgauge_store::{HistoryRow, Page, SeriesFilter, StoreView};

/// Maximum number of points of a history that one query reads.
pub const MAX_HISTORY: u32 = 20_000;

/// Query of the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Only points of this case; `None` means all cases.
    pub case: Option<String>,
    /// Maximum number of points, 1 to [`MAX_HISTORY`]. The newest points are returned.
    pub limit: u32,
}

/// Maximum number of series that are read for a query without a case.
const MAX_SERIES: usize = 10_000;

/// Maximum length of a commit's name in the store, bytes.
const MAX_REVISION: usize = 255;

/// Converts points to rows of the store. There is one row for each metric.
pub(crate) fn rows(owner: &str, points: Vec<HistoryPoint>) -> Vec<HistoryRow> {
    let row = |(metric, value, point): (String, f64, HistoryPoint)| {
        let key = &point.key;
        let driver = key.driver.as_deref().unwrap_or("none");
        let method =
            format!("{} {}, CUDA {}, driver {driver}", key.method, key.method_version, key.cuda);
        let detail = serde_json::to_vec(&point)
            .inspect_err(|error| tracing::error!(%error, "a point cannot be written"))
            .ok()?;
        Some(HistoryRow {
            owner: owner.to_owned(),
            case: key.case.clone(),
            metric,
            device: key.device.clone(),
            method,
            at: SystemTime::UNIX_EPOCH
                + Duration::try_from_secs_f64(point.unix_s).unwrap_or_default(),
            value,
            low: point.ci_low_ms,
            high: point.ci_high_ms,
            revision: point.commit.clone().filter(|commit| commit.len() <= MAX_REVISION),
            job: point.job_id.clone(),
            detail,
        })
    };
    points.iter().flat_map(HistoryPoint::by_metric).filter_map(row).collect()
}

/// Returns the results of cases over time. The call only reads the store; the pipeline does not
/// start.
///
/// # Errors
/// The store cannot be read, or has another version.
pub async fn stored_history(
    config: &Config,
    query: &HistoryQuery,
    caller: &Caller,
) -> Result<HistoryAnswer, ServiceError> {
    let store = StoreView::open(&settings::store_config(config)).await.map_err(refused)?;
    let Some(store) = store else {
        return Ok(HistoryAnswer { series: Vec::new(), truncated: false });
    };
    let answer = history_in(&store, query, caller).await;
    store.close().await;
    answer
}

/// Returns the results of cases over time that this store contains.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn history_in(
    store: &StoreView,
    query: &HistoryQuery,
    caller: &Caller,
) -> Result<HistoryAnswer, ServiceError> {
    let limit = query.limit.clamp(1, MAX_HISTORY) as usize;
    let cases = match &query.case {
        Some(case) => vec![case.clone()],
        None => {
            let series = store.cases(visibility(caller), None, MAX_SERIES).await;
            let series = series.map_err(refused)?;
            let names = series.into_iter().map(|series| series.case).collect::<BTreeSet<_>>();
            names.into_iter().collect()
        }
    };
    let (mut points, mut truncated) = (Vec::new(), false);
    for case in &cases {
        let filter = SeriesFilter {
            owner: visibility(caller),
            case,
            metric: None,
            device: None,
            method: None,
        };
        let mut page = Page { after: None, limit: Page::MAX };
        loop {
            page.limit = Page::MAX.min(limit - points.len());
            if page.limit == 0 {
                truncated = true;
                break;
            }
            let found = store.series(&filter, &page).await.map_err(refused)?;
            points.extend(found.points);
            page.after = found.next;
            if page.after.is_none() {
                break;
            }
        }
    }
    // The oldest point comes first, so that points of the same second keep their order.
    points.reverse();
    // Points that a newer program wrote are skipped.
    let read =
        |point: HistoryRow| warpgauge_document::from_json::<HistoryPoint>(&point.detail).ok();
    let grouped = tokio::task::spawn_blocking(move || {
        warpgauge_gate::history::group(points.into_iter().filter_map(read).collect())
    });
    let series = grouped.await.map_err(|error| error::internal("grouping points", &error))?;
    Ok(HistoryAnswer { series, truncated })
}

/// Returns the current time, seconds since the Unix epoch.
pub(crate) fn unix_s() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
