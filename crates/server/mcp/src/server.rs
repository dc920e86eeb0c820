//! The MCP server, based on `rmcp`. The main type is [`AgentServer`].

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Extensions, Implementation,
    ListResourceTemplatesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::backend::{JobBackend, JobBackendError};
use super::places::CallPermits;
use super::tools::ToolName;
use super::{calls, resources};

/// Instructions for agents that describe the whole server.
const INSTRUCTIONS: &str = "warpgauge compiles, runs, checks and times GPU kernels (CUDA C++, PTX, Triton) in \
isolation. Write a kernel and its contract (arguments, launch, expected outputs), call \
evaluate_kernel, and act on the verdict, which comes first; then compare_kernels shows whether another version \
is faster, and profile_kernel what limits it. import_report reads output of ncu, nsys and compute-sanitizer. \
Calls that run kernels are jobs: get_job finds them by their job_id, even after a lost connection. Cancelling a call cancels its job. Times of an emulated device do not predict those on a GPU.";

/// Function that finds the backend for a request. It returns `None` if the request does not
/// identify its caller.
type FindDesk = dyn Fn(&Extensions) -> Option<Arc<dyn JobBackend>> + Send + Sync;

#[derive(Clone)]
pub struct AgentServer {
    find: Arc<FindDesk>,
    calls: CallPermits,
}

impl AgentServer {
    /// Creates a server with one backend that all callers share.
    pub fn of(backend: Arc<dyn JobBackend>, calls: CallPermits) -> Self {
        Self::finding(move |_| Some(Arc::clone(&backend)), calls)
    }

    /// Creates a server that determines the backend of each request from the request's extensions.
    pub fn finding(
        find: impl Fn(&Extensions) -> Option<Arc<dyn JobBackend>> + Send + Sync + 'static,
        calls: CallPermits,
    ) -> Self {
        Self { find: Arc::new(find), calls }
    }

    fn backend(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<dyn JobBackend>, ErrorData> {
        let missing =
            || ErrorData::internal_error("the request does not identify its caller", None);
        (self.find)(&context.extensions).ok_or_else(missing)
    }
}

impl ServerHandler for AgentServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let implementation =
            Implementation::new("warpgauge", env!("CARGO_PKG_VERSION")).with_title("warpgauge");
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(ToolName::ALL.map(ToolName::described).to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        ToolName::named(name).map(ToolName::described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = ToolName::named(&request.name) else {
            let name: String = request.name.chars().take(64).collect();
            let known = ToolName::ALL.map(ToolName::name).join(", ");
            let message = format!("there is no tool {name:?}; the tools are {known}");
            return Err(ErrorData::invalid_params(message, None));
        };
        let backend = self.backend(&context)?;
        let _place = match self.calls.begin(backend.owner()) {
            Ok(place) => place,
            Err(refusal) => return Ok(calls::refused(&refusal).into()),
        };
        Ok(calls::call(
            &*backend,
            &self.calls,
            tool,
            request.arguments.unwrap_or_default(),
            &context,
        )
        .await
        .into())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let backend = self.backend(&context)?;
        let _place = self.calls.begin(backend.owner()).map_err(not_read)?;
        let contents = calls::read(&*backend, &request.uri).await.map_err(not_read)?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// Converts an error that occurred while a resource was read. The protocol defines a separate code
/// for a missing resource.
fn not_read(refusal: JobBackendError) -> ErrorData {
    let data = serde_json::json!({"code": refusal.code, "path": refusal.path});
    match refusal.code.as_str() {
        "no_such_job" | "no_such_artifact" | "artifact_gone" | "not_found" => {
            ErrorData::resource_not_found(refusal.message, Some(data))
        }
        "internal" | "too_many_calls" => ErrorData::internal_error(refusal.message, Some(data)),
        _ => ErrorData::invalid_params(refusal.message, Some(data)),
    }
}
