//! Puts the parts together: pages and operations, guarded, in their envelope.

use std::sync::{Arc, OnceLock};

use poem::endpoint::BoxEndpoint;
use poem::{Endpoint, EndpointExt, IntoEndpoint, IntoResponse, Request, Response, Route};
use poem_openapi::OpenApiService;
use tokio::sync::watch;

use super::allow::Routes;
use super::auth::{AdminKeys, Guard, Keys};
use super::body::BodyLimits;
use super::deadlines::Deadlines;
use super::envelope::{Envelope, GpuType};
use super::events::Watchers;
use super::functions::Functions;
use super::gate::Gate;
use super::guesses::Guesses;
use super::http_metrics::HttpMetrics;
use super::jobs::Jobs;
use super::machine::Machine;
use super::mcp::{self, Mcp};
use super::origin::{Names, OriginGuard};
use super::places::Places;
use super::query::{Known, KnownQuery};
use super::routes::Kernels;
use super::server::Phase;
use super::spmv::Spmv;
use super::tensors::Tensors;
use super::{pages, spec};
use warpgauge_config::ServerConfig;
use warpgauge_service::EvaluationService;
use warpgauge_webhook::Policy;

/// The application, ready to answer requests.
pub(super) fn app(
    config: &ServerConfig,
    service: Arc<dyn EvaluationService>,
    phase: watch::Receiver<Phase>,
) -> impl Endpoint<Output = Response> + use<> {
    let pages = pages::PATHS.map(|path| (path.to_owned(), vec!["GET".to_owned()]));
    let document = spec::full();
    // Not in the documents: its operations are the protocol's.
    let agents = (mcp::PATH.to_owned(), mcp::METHODS.map(str::to_owned).to_vec());
    let pages = pages.into_iter().chain([agents]);
    let routes = Arc::new(Routes::new(spec::operations(&document).into_iter().chain(pages)));
    let http = Arc::new(HttpMetrics::new(&routes));
    let places = Places::new(service.data_dir());
    let shared = config.has_several_keys();
    let watchers = Watchers::new(phase.clone(), config.max_connections, shared);
    let (body, upload) = (config.body_limit_bytes, config.upload_limit_bytes);
    let limits = BodyLimits::new(body, upload, shared, Deadlines::new(config));
    let mcp = Mcp::new(&service, &limits, watchers.clone(), phase.clone());
    let operations = (
        Kernels { service: Arc::clone(&service) },
        Spmv { service: Arc::clone(&service) },
        Tensors { service: Arc::clone(&service) },
        Functions { service: Arc::clone(&service) },
        Gate { service: Arc::clone(&service) },
        Jobs { service: Arc::clone(&service), watchers: watchers.clone() },
        Machine {
            service: Arc::clone(&service),
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
    let served = Split { pages: pages::add(Route::new()), mcp, operations }
        .data(limits)
        .data(Policy::new(&config.webhook_hosts, &config.webhook_secret))
        .map_to_response();
    let known = Known::new(&document);
    let strict = KnownQuery { routes: Arc::clone(&routes), known, inner: served };
    Envelope {
        inner: OriginGuard {
            names: Names::new(config),
            inner: Guard { keys: Keys::new(config), guesses: Guesses::default(), inner: strict },
        },
        routes,
        http,
        phase,
        places,
        gpu: GpuType { service, known: OnceLock::new() },
    }
}

/// Pages and operations side by side: nested at `/`, operations would hide the front page.
struct Split {
    pages: Route,
    mcp: Mcp,
    operations: BoxEndpoint<'static>,
}

impl Endpoint for Split {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        if pages::has(&request) {
            return Ok(self.pages.call(request).await?.into_response());
        }
        if request.uri().path() == mcp::PATH {
            return self.mcp.call(request).await;
        }
        self.operations.call(request).await
    }
}
