//! Answers in the form of HTML pages.

use poem::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use poem::{IntoResponse, Response};

use super::accept::prefers_html;
use super::reply::BodyLength;
use crate::error::ErrorBody;
use warpgauge_page::{Links, Notice};

/// Folder of the files that pages load.
const ASSETS: &str = "/assets";

/// Paths to which a page sends reports of profilers. The form is at the first.
const IMPORT: &str = "/import";
const CHANGES: &str = "/import/changes";

/// Path of the form that cancels a job.
pub(crate) const CANCEL: &str = "/jobs/{job_id}/cancel";

/// Path of the form for kernels.
pub(crate) const SUBMIT: &str = "/submit";
/// Paths of operations that also have a page.
const DEVICES: &str = "/devices";
const HISTORY: &str = "/history";

/// Returns whether a path is below [`ASSETS`].
pub(crate) fn is_asset(path: &str) -> bool {
    path.strip_prefix(ASSETS).is_some_and(|rest| rest.starts_with('/'))
}

/// Content security policy of a page. The browser may show the page with the style sheet of this
/// server. No script runs.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Content security policy of a page that a script keeps up to date. The script is a file of this
/// server and connects to this server only. The page contains no other script.
const LIVE_POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; \
                           img-src 'self' data:; base-uri 'none'; form-action 'self'; \
                           frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Returns the links for the page at this path.
pub(crate) fn links(path: &str) -> Links {
    let root = match PagePath::of(path) {
        _ if cancelled_job(path).is_some() => "../../",
        Some(
            PagePath::Front
            | PagePath::Devices
            | PagePath::History
            | PagePath::Import
            | PagePath::Submit,
        ) => "./",
        Some(PagePath::Code(_)) => "../../",
        Some(PagePath::Job(_)) | None => "../",
    };
    Links { root: Some(root), ..Links::none() }
}

/// A path at which browsers receive a page and programs receive JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagePath<'p> {
    /// The front page: the list of jobs.
    Front,
    /// The devices, and what the machine can do.
    Devices,
    /// The results of cases over time.
    History,
    /// A job, by its id.
    Job(&'p str),
    /// The form for reports of profilers.
    Import,
    /// The form for kernels.
    Submit,
    /// The code of a job's kernel, by the job's id.
    Code(&'p str),
}

impl<'p> PagePath<'p> {
    pub(crate) fn of(path: &'p str) -> Option<Self> {
        match path.strip_prefix("/jobs/") {
            Some(rest) => {
                let code = rest.strip_suffix("/code");
                let id = code.unwrap_or(rest);
                let page = if code.is_some() { Self::Code(id) } else { Self::Job(id) };
                (!id.is_empty() && !id.contains('/')).then_some(page)
            }
            None if path == DEVICES => Some(Self::Devices),
            None if path == HISTORY => Some(Self::History),
            None if path == IMPORT => Some(Self::Import),
            None if path == SUBMIT => Some(Self::Submit),
            None => (path == "/").then_some(Self::Front),
        }
    }
}

/// Returns whether the client receives a page: it requests a path that has a page, and prefers
/// HTML.
pub(crate) fn wants_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    reads && PagePath::of(path).is_some() && prefers_html(headers)
}

/// Returns whether the answer or an error is a page: the client receives a page, or sends a form
/// from a page.
pub(crate) fn answers_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let sends = *method == Method::POST
        && ([IMPORT, CHANGES, SUBMIT].contains(&path) || cancelled_job(path).is_some());
    wants_page(method, path, headers) || sends && prefers_html(headers)
}

/// Returns the id of the job that a form at this path cancels.
pub(crate) fn cancelled_job(path: &str) -> Option<&str> {
    let id = path.strip_prefix("/jobs/")?.strip_suffix("/cancel")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

/// Media type of pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// An answer that is an HTML page.
pub(crate) struct HtmlReply(pub(crate) String);

/// An answer that is an HTML page which a script keeps up to date.
pub(crate) struct LiveReply(pub(crate) String);

impl IntoResponse for HtmlReply {
    fn into_response(self) -> Response {
        with_policy(self.0, POLICY)
    }
}

impl IntoResponse for LiveReply {
    fn into_response(self) -> Response {
        with_policy(self.0, LIVE_POLICY)
    }
}

fn with_policy(html: String, policy: &'static str) -> Response {
    let mut response = Response::builder().content_type(HTML).finish();
    response.set_data(BodyLength(html.len()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response.set_body(html);
    response
}

/// Converts an error in JSON to an HTML page.
pub(crate) async fn error_as_page(mut response: Response, path: &str) -> Response {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let body = response.take_body().into_bytes().await.unwrap_or_default();
    let Ok(error) = serde_json::from_slice::<ErrorBody>(&body) else {
        response.set_body(body);
        return response;
    };
    let mut page = HtmlReply(error_page(status, &error, path)).into_response();
    page.set_status(status);
    // Other headers of the error, such as `Retry-After`, are kept.
    for (name, value) in response.headers() {
        if *name != header::CONTENT_TYPE && *name != header::CONTENT_LENGTH {
            page.headers_mut().entry(name).or_insert(value.clone());
        }
    }
    if status == StatusCode::UNAUTHORIZED {
        // Browsers ask their user for a password only if this scheme is offered.
        let challenge = HeaderValue::from_static("Basic realm=\"warpgauge\", charset=\"UTF-8\"");
        page.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    page
}

fn error_page(status: StatusCode, error: &ErrorBody, path: &str) -> String {
    let reason = status.canonical_reason().unwrap_or("error").to_lowercase();
    let word = format!("{} {reason}", status.as_u16());
    let (heading, commands) = match status {
        StatusCode::UNAUTHORIZED => ("This page needs an API key", with_key(path)),
        StatusCode::NOT_FOUND => ("There is no such page", String::new()),
        _ => ("The page cannot be shown", String::new()),
    };
    let sentence = match status {
        StatusCode::UNAUTHORIZED => format!(
            "{}. In a browser, reload the page and enter the key as the password; the user name does \
             not matter. Or use the command line.",
            error.error
        ),
        _ => error.error.clone(),
    };
    let notice = Notice { word: &word, heading, sentence: &sentence, commands: &commands };
    warpgauge_page::notice(notice, &links(path))
}

/// Returns the commands that show a page of a server that requires keys. A path may contain
/// anything, so only a plain job id is included.
fn with_key(path: &str) -> String {
    let is_plain = |id: &str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let command = match path.strip_prefix("/jobs/").filter(|id| is_plain(id)) {
        Some(job) => format!("warpgauge jobs show {job} --html job.html"),
        None if path == HISTORY => "warpgauge history".to_owned(),
        None if path == DEVICES => {
            "curl -H \"X-API-Key: $WARPGAUGE_API_KEY\" \"$WARPGAUGE_SERVER/devices\"".to_owned()
        }
        None => "warpgauge jobs list".to_owned(),
    };
    format!("export WARPGAUGE_API_KEY=KEY WARPGAUGE_SERVER=http://HOST:PORT\n{command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_the_front_page_are_pages() {
        assert_eq!(PagePath::of("/"), Some(PagePath::Front));
        assert_eq!(PagePath::of("/devices"), Some(PagePath::Devices));
        assert_eq!(PagePath::of("/history"), Some(PagePath::History));
        assert_eq!(links("/history").root, Some("./"));
        assert_eq!(PagePath::of("/jobs/7"), Some(PagePath::Job("7")));
        assert_eq!(PagePath::of("/jobs/7/code"), Some(PagePath::Code("7")));
        assert_eq!(links("/jobs/7/code").root, Some("../../"));
        for path in [
            "/jobs//code",
            "/jobs/7/8/code",
            "/jobs/7/code/",
            "/jobs",
            "/jobs/",
            "/jobs/7/artifacts",
            "/docs",
            "/devices/",
            "/job/7",
        ] {
            assert_eq!(PagePath::of(path), None, "{path}");
        }
    }

    #[test]
    fn an_address_is_no_command() {
        assert!(
            with_key("/jobs/0199d3c2-5b8e").ends_with("jobs show 0199d3c2-5b8e --html job.html")
        );
        for path in ["/jobs/$(reboot)", "/jobs/a;b", "/jobs/", "/"] {
            assert!(with_key(path).ends_with("\nwarpgauge jobs list"), "{path}");
        }
    }
}
