//! Pages and documents: Swagger UI, the specifications, and jobs for browsers. Pages load nothing
//! from other servers.
//!
//! - `html`: jobs, lists, devices and the history as pages, and the files that pages load
//! - `filters`: the query parameters of pages with lists
//! - `machine`: what the page of the devices shows
//! - `submit`: the form for kernels

mod filters;
pub(crate) mod html;
mod machine;
pub(crate) mod submit;

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use bytes::Bytes;
use poem::endpoint::make_sync;
use poem::http::{HeaderValue, Method, StatusCode, header};
use poem::{Endpoint, Request, Response, Route, get};
use poem_openapi::OpenApiService;
use sha2::{Digest, Sha256};

use super::blocking::run_blocking;
use super::error::ApiError;
use super::openapi;
use super::paths::{BOOK, is_in_book};
use super::response::compression::{accepts_gzip, zipped};
use super::response::html::is_asset;

/// Adds the pages to `route`. Each is rendered when it is first requested, because together they
/// take more memory than the rest of an idle server.
pub(super) fn add(route: Route) -> Route {
    let docs = || swagger_page(&openapi::full_json());
    let book = warpgauge_book::paths().fold(route, |route, path| {
        let make = move || warpgauge_book::page(BOOK, path).unwrap_or_default();
        route.at(format!("{BOOK}/{path}"), get(page("text/html; charset=utf-8", make)))
    });
    book.at(BOOK, get(make_sync(front_of_book)))
        .at(format!("{BOOK}/"), get(make_sync(front_of_book)))
        .at("/", get(make_sync(|_| front())))
        .at(html::FILES, get(make_sync(html::file)))
        .at("/docs", get(page("text/html; charset=utf-8", docs)))
        .at("/openapi.json", get(page("application/json", openapi::full_json)))
        .at("/openapi.yaml", get(page("application/yaml", openapi::full_yaml)))
        .at("/openapi-client.json", get(page("application/json", openapi::client_json)))
}

/// Paths of the pages other than the book. The path of the files that pages load is a template.
const PATHS: [&str; 6] =
    ["/", "/docs", "/openapi.json", "/openapi.yaml", "/openapi-client.json", "/assets/{file}"];

/// Returns the paths that [`add`] adds.
pub(super) fn paths() -> impl Iterator<Item = String> {
    let book = warpgauge_book::paths().map(|path| format!("{BOOK}/{path}"));
    let front = [BOOK.to_owned(), format!("{BOOK}/")];
    PATHS.into_iter().map(str::to_owned).chain(front).chain(book)
}

/// Returns whether the request is for a page. The path of the front page also belongs to an
/// operation.
pub(super) fn has(request: &Request) -> bool {
    let path = request.uri().path();
    is_asset(path)
        || is_in_book(path)
        || PATHS.contains(&path) && (path != "/" || *request.method() != Method::POST)
}

/// A constant text in plain and compressed form, so that neither has to be produced for each
/// request.
struct Page {
    content_type: &'static str,
    make: Arc<dyn Fn() -> String + Send + Sync>,
    made: Arc<OnceLock<Made>>,
}

struct Made {
    text: Bytes,
    zipped: Bytes,
    /// Content security policy of the page.
    policy: HeaderValue,
}

fn page(content_type: &'static str, make: impl Fn() -> String + Send + Sync + 'static) -> Page {
    Page { content_type, make: Arc::new(make), made: Arc::default() }
}

impl Page {
    /// Renders the page outside the async threads, because rendering takes longer than most
    /// answers.
    async fn made(&self) -> Result<(), ApiError> {
        if self.made.get().is_some() {
            return Ok(());
        }
        let (made, make) = (Arc::clone(&self.made), Arc::clone(&self.make));
        run_blocking("page", "making a page", move || {
            made.get_or_init(|| Made::new(make()));
        })
        .await
    }
}

impl Made {
    fn new(text: String) -> Self {
        let policy = policy_of(&text);
        let zipped = zipped(text.as_bytes()).unwrap_or_default();
        // A boxed text has no spare capacity. A text that was changed by replacements may have
        // some.
        let text = Bytes::from(text.into_boxed_str().into_boxed_bytes());
        Self { text, zipped: zipped.into(), policy }
    }
}

impl Endpoint for Page {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        self.made().await?;
        let made = self.made.get().ok_or(StatusCode::INTERNAL_SERVER_ERROR)?;
        let mut response = Response::builder().content_type(self.content_type).finish();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, made.policy.clone());
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        let zip = !made.zipped.is_empty() && accepts_gzip(request.headers());
        if zip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response.set_body(if zip { made.zipped.clone() } else { made.text.clone() });
        Ok(response)
    }
}

/// Returns the content security policy of a page. The page may run its scripts, use its styles, and
/// send requests to this server. The policy forbids everything else.
fn policy_of(page: &str) -> HeaderValue {
    let [scripts, styles] = digests(page);
    let policy = format!(
        "default-src 'none'; script-src {scripts}; style-src {styles}; img-src 'self' data: blob:; \
         font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    // Base64 and keywords contain only ASCII.
    HeaderValue::from_str(&policy)
        .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
}

/// Returns the digests of a page's scripts and styles, in the form in which policies list them;
/// `'none'` if there are none.
fn digests(page: &str) -> [String; 2] {
    const ELEMENTS: [&str; 2] = ["script", "style"];
    let mut found: [Vec<String>; 2] = Default::default();
    let mut rest = page;
    let first = |rest: &str| {
        let places = ELEMENTS.iter().enumerate();
        places.filter_map(|(which, name)| Some((rest.find(&format!("<{name}"))?, which))).min()
    };
    while let Some((at, which)) = first(rest) {
        let end = format!("</{}>", ELEMENTS[which]);
        let Some((_, content)) = rest[at..].split_once('>') else { break };
        let Some((content, after)) = content.split_once(&end) else { break };
        let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(content));
        found[which].push(format!("'sha256-{digest}'"));
        rest = after;
    }
    found.map(|list| if list.is_empty() { "'none'".to_owned() } else { list.join(" ") })
}

/// Answer of the GPU Tensor Server at its front page, byte for byte.
const RUNNING: &str = r#"{"message":"GPU Tensor Server is running"}"#;

/// Returns the front page for programs. Browsers receive the list of jobs ([`html`]).
fn front() -> Response {
    let response = Response::builder().header(header::VARY, "accept");
    response.content_type("application/json").body(RUNNING)
}

/// Redirects a browser to the first page of the book.
fn front_of_book(_: Request) -> Response {
    let first = warpgauge_book::paths().next().unwrap_or_default();
    let redirect = Response::builder().status(StatusCode::TEMPORARY_REDIRECT);
    redirect.header(header::LOCATION, format!("{BOOK}/{first}")).finish()
}

/// Returns poem-openapi's page with the corrected document in place of its original.
fn swagger_page(document: &str) -> String {
    let empty = OpenApiService::new((), "", "");
    // In a script element, `</` could end the element early.
    let document = document.replace("</", "<\\/");
    empty
        .swagger_ui_html()
        .replacen(&empty.spec(), &document, 1)
        .replacen("<html charset=\"UTF-8\">", "<!DOCTYPE html>\n<html lang=\"en\">", 1)
        .replacen("<title>Swagger UI</title>", "<title>warpgauge API</title>", 1)
        .replacen(
            "deepLinking: true,",
            "deepLinking: true,\n        persistAuthorization: true,",
            1,
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_what_is_in_the_page_and_nothing_else() {
        let page =
            "<head><style charset=\"UTF-8\">a{}</style></head><script>1</script><script>2</script>";
        let policy = policy_of(page);
        let policy = policy.to_str().unwrap();
        // openssl dgst -sha256 -binary | base64
        let one = "'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='";
        let two = "'sha256-1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR+Q2jpmbuwTqzU='";
        assert!(policy.contains(&format!("script-src {one} {two};")), "{policy}");
        assert!(policy.contains("style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(policy_of("{}").to_str().unwrap().contains("script-src 'none'; style-src 'none'"));
    }
}
