//! Pages for browsers, at the addresses at which programs get JSON: jobs, the devices and the
//! history; and the list of jobs as the front page.

use futures_util::StreamExt;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Request, Response};

use super::filters::{Filters, LIST, history_query, list_filter};
use super::machine;
use crate::blocking::run_blocking;
use crate::error::ApiError;
use crate::response::html::{HtmlReply, LiveReply, PagePath, links};
use crate::routes::gate::reply::HistoryReply;
use warpgauge_job_views::JobView;
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_page::{ArtifactLink, HistoryShown, Links, Listed, PageScript, style};
use warpgauge_service::{Caller, JobQuery, ServiceError, Services};

/// Path of the files that pages load.
pub(super) const FILES: &str = "/assets/:file";

/// Number of jobs that one page of the list shows.
const LISTED: u32 = 50;

/// Maximum length of a job's id, characters. Longer ids are not looked up.
const MAX_ID: usize = 64;

/// Renders the page at this path.
pub(crate) async fn page(
    path: PagePath<'_>,
    request: &Request,
    service: &Services,
) -> Result<Response, ApiError> {
    // Only the front page is open to requests without a key.
    let Some(caller) = request.data::<Caller>() else { return Err(ApiError::without_key()) };
    let links = links(request.uri().path());
    let query: Vec<(String, String)> = request.params().map_err(|error| {
        ApiError::field("query", FailureCode::InvalidParameter, format!("the query: {error}"))
    })?;
    let given = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let html = match path {
        PagePath::Front => return list(&query, links, service, caller).await,
        PagePath::Devices => {
            Filters::new("/devices", &query, &[])?;
            let machine = machine::overview(request, service).await?;
            run_blocking("page", "writing a page", move || {
                warpgauge_page::devices(&machine, &links)
            })
            .await?
        }
        PagePath::History => return history(&query, links, service, caller).await,
        PagePath::Import => warpgauge_page::import_form(&links),
        PagePath::Submit => super::submit::page(given("example").map(String::as_str), &links)?,
        PagePath::Job(id) => match given("compare") {
            Some(other) => differences([id, other], links, service, caller).await?,
            None => return job(id, links, service, caller).await,
        },
        PagePath::Code(id) => {
            let kernel = given("kernel").map(String::as_str);
            let job = found(id, service, caller).await?;
            let view = service.artifacts.code(&job.job_id, kernel, caller).await?;
            run_blocking("page", "writing a page", move || warpgauge_page::code(&view, &links))
                .await?
        }
    };
    Ok(HtmlReply(html).into_response())
}

/// Cancels a job, and sends the browser back to the job's page.
pub(crate) async fn cancel(
    id: &str,
    request: &Request,
    service: &Services,
) -> Result<Response, ApiError> {
    let caller = request.data::<Caller>().ok_or_else(ApiError::without_key)?;
    let job = service.jobs.cancel(bounded(id)?, caller).await?;
    let response = Response::builder().status(StatusCode::SEE_OTHER);
    Ok(response.header(header::LOCATION, format!("../{}", job.job_id)).finish())
}

async fn list(
    query: &[(String, String)],
    links: Links,
    service: &Services,
    caller: &Caller,
) -> Result<Response, ApiError> {
    let filters = Filters::new("/", query, &LIST)?;
    let filter = list_filter(filters)?;
    let cursor = filters.one("cursor").map(str::to_owned);
    let is_later = cursor.is_some();
    let query = JobQuery {
        states: filter.states.clone(),
        kind: filter.kind,
        verdict: filter.verdict,
        decision: filter.decision,
        label: filter.label.clone(),
        limit: LISTED,
        cursor,
        ..JobQuery::default()
    };
    let jobs = service.jobs.jobs(query, caller).await?;
    run_blocking("page", "writing a page", move || {
        let html = warpgauge_page::list(Listed { jobs: &jobs, filter: &filter, is_later }, &links);
        match is_later {
            true => HtmlReply(html).into_response(),
            false => LiveReply(html).into_response(),
        }
    })
    .await
}

/// Returns the page of the history. A browser that requests a format receives that format.
async fn history(
    query: &[(String, String)],
    links: Links,
    service: &Services,
    caller: &Caller,
) -> Result<Response, ApiError> {
    let known = ["case", "limit", "format"].map(|name| (name, false));
    let filters = Filters::new("/history", query, &known)?;
    let (query, limit, format) = history_query(filters)?;
    let case = query.case.clone();
    let answer = service.gate.history(query, caller).await?;
    run_blocking("page", "writing a page", move || match format {
        Some(format) => HistoryReply::of(&answer, format).map(IntoResponse::into_response),
        None => {
            let shown = HistoryShown { answer: &answer, case: case.as_deref(), limit };
            Ok(HtmlReply(warpgauge_page::history(shown, &links)).into_response())
        }
    })
    .await?
}

async fn job(
    id: &str,
    links: Links,
    service: &Services,
    caller: &Caller,
) -> Result<Response, ApiError> {
    let job = found(id, service, caller).await?;
    let links = with_artifacts(&job, links, service, caller).await;
    let now = match job.state.is_end() {
        true => None,
        // The first event comes at once. A job that has just ended gets a page that reloads.
        false => service.jobs.watch(&job.job_id, caller).await?.next().await,
    };
    run_blocking("page", "writing a page", move || {
        match now.filter(|event| !event.state.is_end()) {
            Some(now) => LiveReply(warpgauge_page::job(&job, Some(&now), &links)).into_response(),
            None => HtmlReply(warpgauge_page::job(&job, None, &links)).into_response(),
        }
    })
    .await
}

async fn found(id: &str, service: &Services, caller: &Caller) -> Result<JobView, ApiError> {
    Ok(service.jobs.job(bounded(id)?, caller).await?)
}

/// Returns the id of a job if it is not too long to be looked up.
fn bounded(id: &str) -> Result<&str, ApiError> {
    match id.len() > MAX_ID {
        true => Err(ServiceError::NoSuchJob(id.chars().take(MAX_ID).collect()).into()),
        false => Ok(id),
    }
}

/// Returns a page with the differences between two evaluations of the caller.
async fn differences(
    [first, second]: [&str; 2],
    links: Links,
    service: &Services,
    caller: &Caller,
) -> Result<String, ApiError> {
    let jobs = [found(first, service, caller).await?, found(second, service, caller).await?];
    let page = run_blocking("page", "writing a page", move || {
        warpgauge_page::differences([&jobs[0], &jobs[1]], &links)
    });
    page.await?.ok_or_else(|| {
        let text = "compare: both jobs must be evaluations that have ended; each job's page shows its kind and state";
        ApiError::field("compare", FailureCode::InvalidParameter, text)
    })
}

/// Returns the links of a page. If the job has a report on kernels, they include its artifacts.
async fn with_artifacts(job: &JobView, links: Links, service: &Services, caller: &Caller) -> Links {
    if job.result.is_none() && job.comparison.is_none() {
        return links;
    }
    match service.artifacts.artifacts(&job.job_id, caller).await {
        Ok(list) => {
            let available = list.artifacts.into_iter().filter(|artifact| artifact.available);
            let linked = available.filter_map(|artifact| {
                let url = artifact.url?;
                Some(ArtifactLink { name: artifact.name, kernel: artifact.kernel, url })
            });
            let artifacts: Vec<ArtifactLink> = linked.collect();
            // For a kernel with PTX, there is a page with its code at a path next to the
            // artifact's.
            let of_ptx = artifacts.iter().filter(|artifact| artifact.name == "ptx");
            let code = of_ptx.map(|artifact| ArtifactLink {
                name: "Source beside PTX and SASS".to_owned(),
                kernel: artifact.kernel.clone(),
                url: artifact.url.replacen("/artifacts/ptx", "/code", 1),
            });
            Links { code: code.collect(), artifacts, ..links }
        }
        Err(error) => Links { no_artifacts: Some(error.to_string()), ..links },
    }
}

/// Serves the files that pages load. Their names contain a hash of their content, so browsers may
/// cache them for any time.
pub(super) fn file(request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let (content_type, content) = if path == style::path() {
        ("text/css; charset=utf-8", style::CSS)
    } else if let Some(script) = PageScript::ALL.into_iter().find(|script| script.path() == path) {
        ("text/javascript; charset=utf-8", script.source())
    } else {
        let text = "there is no such file: reload the page that names it";
        return ApiError::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, text).into_response();
    };
    let mut response = Response::builder().content_type(content_type).finish();
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, forever);
    response.set_body(content);
    response
}
