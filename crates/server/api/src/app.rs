//! Assembles the application: pages and operations, behind the middleware.

use std::sync::{Arc, OnceLock};

use poem::endpoint::BoxEndpoint;
use poem::http::{HeaderValue, Method, header};
use poem::{Endpoint, EndpointExt, IntoEndpoint, IntoResponse, Request, Response, Route};
use poem_openapi::OpenApiService;
use tokio::sync::watch;

use super::connection::deadlines::Deadlines;
use super::mcp::{self, Mcp};
use super::middleware::auth::{AdminKeys, Guard, Keys};
use super::middleware::envelope::{Envelope, GpuType};
use super::middleware::hidden_paths::HiddenPaths;
use super::middleware::http_metrics::HttpMetrics;
use super::middleware::key_attempts::KeyAttempts;
use super::middleware::origin::{Names, OriginGuard};
use super::middleware::query::{KnownParameters, QueryGuard};
use super::middleware::route_table::RouteTable;
use super::pages::{html, submit};
use super::phase::Phase;
use super::request::body::BodyLimits;
use super::response::events::Watchers;
use super::response::html::{CANCEL, PagePath, SUBMIT, cancelled_job, wants_page};
use super::routes::functions::Functions;
use super::routes::gate::operations::Gate;
use super::routes::imports::operations::Imports;
use super::routes::jobs::operations::Jobs;
use super::routes::kernels::operations::Kernels;
use super::routes::machine::operations::Machine;
use super::routes::spmv::operations::Spmv;
use super::routes::tensors::operations::Tensors;
use super::{openapi, pages, paths};
use warpgauge_config::ServerConfig;
use warpgauge_service::Services;
use warpgauge_service::webhook::WebhookPolicy;

/// Returns the application, ready for requests.
pub(super) fn app(
    config: &ServerConfig,
    service: Services,
    phase: watch::Receiver<Phase>,
) -> impl Endpoint<Output = Response> + use<> {
    let pages = pages::paths().map(|path| (path, vec!["GET".to_owned()]));
    let document = openapi::full();
    // The OpenAPI documents lack this path, because the Model Context Protocol defines its
    // operations.
    let agents = (paths::MCP.to_owned(), mcp::METHODS.map(str::to_owned).to_vec());
    let cancel = (CANCEL.to_owned(), vec!["POST".to_owned()]);
    let submit = (SUBMIT.to_owned(), ["GET", "POST"].map(str::to_owned).to_vec());
    let pages = pages.into_iter().chain([agents, submit, cancel]);
    let routes = Arc::new(RouteTable::new(
        openapi::document::operations(&document).into_iter().chain(pages),
    ));
    let http = Arc::new(HttpMetrics::new(&routes));
    let places = HiddenPaths::new(service.machine.data_dir());
    let shared = config.has_several_keys();
    let watchers = Watchers::new(phase.clone(), config.max_connections, shared);
    let (body, upload) = (config.body_limit_bytes, config.upload_limit_bytes);
    let limits = BodyLimits::new(body, upload, shared, Deadlines::new(config));
    let mcp = Mcp::new(&service, &limits, &config.public_url, watchers.clone(), phase.clone());
    let operations = (
        Kernels { service: service.clone() },
        Spmv { service: service.clone() },
        Tensors { service: Arc::clone(&service.tensors) },
        Functions { service: Arc::clone(&service.functions) },
        Gate { service: service.clone() },
        Jobs { service: service.clone(), watchers: watchers.clone() },
        Imports { service: Arc::clone(&service.imports) },
        Machine {
            service: service.clone(),
            body_limit_bytes: config.body_limit_bytes,
            http: Arc::clone(&http),
            watchers,
            admin_keys: AdminKeys::new(config),
            places: places.clone(),
            phase: phase.clone(),
        },
    );
    let operations = OpenApiService::new(operations, "warpgauge", env!("CARGO_PKG_VERSION"));
    let operations = operations.into_endpoint();
    let served =
        Split { pages: pages::add(Route::new()), service: service.clone(), mcp, operations }
            .data(limits)
            .data(places.clone())
            .data(WebhookPolicy::new(&config.webhook_hosts, &config.webhook_secret))
            .map_to_response();
    let known = KnownParameters::new(&document);
    let strict = QueryGuard { routes: Arc::clone(&routes), known, inner: served };
    Envelope {
        inner: OriginGuard {
            names: Names::new(config),
            inner: Guard {
                keys: Keys::new(config),
                guesses: KeyAttempts::default(),
                inner: strict,
            },
        },
        routes,
        http,
        phase,
        places,
        gpu: GpuType { machine: service.machine, known: OnceLock::new() },
    }
}

/// Passes each request to the pages, the MCP endpoint or the operations. Pages and operations have
/// separate routers, because operations nested at `/` would hide the front page.
struct Split {
    pages: Route,
    service: Services,
    mcp: Mcp,
    operations: BoxEndpoint<'static>,
}

impl Endpoint for Split {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let varies = PagePath::of(request.uri().path()).is_some();
        let mut response = self.answer(request).await?;
        // The front page sets this header itself.
        if varies && !response.headers().contains_key(header::VARY) {
            response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        }
        Ok(response)
    }
}

impl Split {
    async fn answer(&self, request: Request) -> poem::Result<Response> {
        let path = request.uri().path().to_owned();
        if wants_page(request.method(), &path, request.headers())
            && let Some(path) = PagePath::of(&path)
        {
            // This future is boxed. Otherwise the futures of all middlewares would be as large as
            // that of a page.
            return Ok(Box::pin(html::page(path, &request, &self.service)).await?);
        }
        if request.method() == Method::POST {
            if path == SUBMIT {
                return Ok(Box::pin(submit::sent(request, &self.service)).await?);
            }
            if let Some(job) = cancelled_job(&path) {
                return Ok(Box::pin(html::cancel(job, &request, &self.service)).await?);
            }
        }
        if pages::has(&request) {
            return Ok(self.pages.call(request).await?.into_response());
        }
        if request.uri().path() == paths::MCP {
            return Box::pin(self.mcp.call(request)).await;
        }
        self.operations.call(request).await
    }
}
