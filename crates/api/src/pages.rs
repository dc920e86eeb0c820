//! Pages and documents: Swagger UI, the specifications, the front page. Nothing is fetched from
//! elsewhere.

use std::sync::OnceLock;

use bytes::Bytes;
use poem::endpoint::make_sync;
use poem::http::{Method, StatusCode, header};
use poem::{Endpoint, Request, Response, Route, get};
use poem_openapi::OpenApiService;

use super::payload::BodyLength;
use super::spec;

/// Adds the pages to `route`. Each is made when it is first asked for: together they take more memory
/// than the rest of an idle server.
pub(super) fn add(route: Route) -> Route {
    let docs = || swagger_page(&spec::full_json());
    route
        .at("/", get(make_sync(|_| to_docs())))
        .at("/docs", get(page("text/html; charset=utf-8", docs)))
        .at("/openapi.json", get(page("application/json", spec::full_json)))
        .at("/openapi.yaml", get(page("application/yaml", spec::full_yaml)))
        .at("/openapi-client.json", get(page("application/json", spec::client_json)))
}

/// The paths that [`add`] adds.
pub(super) const PATHS: [&str; 5] =
    ["/", "/docs", "/openapi.json", "/openapi.yaml", "/openapi-client.json"];

/// Whether it is one of them that is asked for. The front page's path is an operation's, too.
pub(super) fn has(request: &Request) -> bool {
    let path = request.uri().path();
    PATHS.contains(&path) && (path != "/" || *request.method() != Method::POST)
}

fn page(content_type: &'static str, make: fn() -> String) -> impl Endpoint<Output = Response> {
    let text = OnceLock::new();
    make_sync(move |_| {
        // Boxed: a page made by replacing has room for as much again.
        let text = text.get_or_init(|| Bytes::from(make().into_boxed_str().into_boxed_bytes()));
        let mut response = Response::builder().content_type(content_type).finish();
        response.set_data(BodyLength(text.len()));
        response.set_body(text.clone());
        response
    })
}

fn to_docs() -> Response {
    Response::builder()
        .status(StatusCode::TEMPORARY_REDIRECT)
        .header(header::LOCATION, "/docs")
        .finish()
}

/// poem-openapi's page with the corrected document in place of its own.
fn swagger_page(document: &str) -> String {
    let empty = OpenApiService::new((), "", "");
    // In a script element, `</` could end it early.
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
