//! Runs functions that callers send.

use std::sync::Arc;

use poem::http::{StatusCode, header};
use poem::web::Data;
use poem::{IntoResponse, Request, RequestBody, Response};
use poem_openapi::registry::{
    MetaMediaType, MetaRequest, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiExtractor, ApiExtractorType, ApiResponse, ExtractParamOptions, OpenApi};

use super::tags::Tag;
use crate::blocking::run_blocking;
use crate::error::ApiError;
use crate::error::operation::{BodyErrors, KeyErrors, OperationError};
use crate::middleware::auth::admit_function;
use crate::request::body::{self, Share};
use crate::request::parsed_body::{declared, unparsable};
use crate::response::reply::{BodyLength, JsonReply};
use warpgauge_contract::BodyFormat;
use warpgauge_contract::functions::{
    CallHead, FunctionCall, FunctionOutcome, FunctionPlaces, packed, unpacked,
};
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_service::{Caller, FunctionService};

/// Media type of function calls and of their answers.
const CONTAINER: &str = "application/octet-stream";

/// Operations of the HTTP API on functions.
pub(crate) struct Functions {
    pub(crate) service: Arc<dyn FunctionService>,
}

#[OpenApi]
impl Functions {
    /// List places of functions
    ///
    /// Returns the devices that run functions, the number of concurrent calls, the limits on a
    /// call, and whether the caller may run functions.
    #[oai(
        path = "/functions/places",
        method = "get",
        operation_id = "function_places",
        tag = "Tag::Functions"
    )]
    async fn places(
        &self,
        caller: Data<&Caller>,
    ) -> Result<JsonReply<FunctionPlaces>, OperationError<KeyErrors>> {
        let mut places = self.service.function_places();
        places.pickles_allowed = places.allowed && admit_function(&caller, true).is_ok();
        if let Err(error) = admit_function(&caller, false) {
            places.allowed = false;
            places.pickles_allowed = false;
            places.reason = Some(error.body().error.clone());
        }
        Ok(JsonReply::new(&places)?)
    }

    /// Call a function
    ///
    /// Runs a Python function from the request, in a separate process without access to files, the
    /// network or other programs. Request and answer are containers. A container consists of the
    /// length of its head (four bytes, little endian), the head, and the data. The head is JSON:
    /// `CallHead` in requests and `OutcomeHead` in answers, as described in docs/cluster.md. The
    /// data are the function with its arguments, or the returned value. A function that raises an
    /// exception, crashes or exceeds its time limit is a result (200), which the head describes.
    /// Closing the connection ends the call. The server stores no data of a call.
    #[oai(
        path = "/functions/calls",
        method = "post",
        operation_id = "call_function",
        tag = "Tag::Functions"
    )]
    async fn call(
        &self,
        caller: Data<&Caller>,
        /// Head, followed by the function.
        request: CallBody,
    ) -> Result<OutcomeReply, OperationError<BodyErrors>> {
        let CallBody { mut call, share } = request;
        admit_function(&caller, call.head.pickles)?;
        call.owner.clone_from(&caller.owner);
        let outcome = self.service.call_function(call).await?;
        drop(share);
        Ok(OutcomeReply::of(outcome).await?)
    }
}

pub(crate) struct CallBody {
    call: FunctionCall,
    /// Reservation of memory, held while the function runs.
    share: Share,
}

fn binary(description: &'static str) -> MetaMediaType {
    let schema = MetaSchema {
        description: Some(description),
        ..MetaSchema::new_with_format("string", "binary")
    };
    MetaMediaType { content_type: CONTAINER, schema: MetaSchemaRef::Inline(Box::new(schema)) }
}

impl<'a> ApiExtractor<'a> for CallBody {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    const PARAM_IS_REQUIRED: bool = true;
    type ParamType = ();
    type ParamRawType = ();

    fn request_meta() -> Option<MetaRequest> {
        let content = vec![binary("Head and function.")];
        Some(MetaRequest { description: None, content, required: true })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        let body = body.take()?;
        let (limits, line) = body::bounds(request)?;
        check_container(request)?;
        let (bytes, share) = body::read(body, declared(request.headers()), &limits, line).await?;
        Ok(Self { call: parsed(bytes)?, share })
    }
}

/// Rejects a body that has another media type.
fn check_container(request: &Request) -> Result<(), ApiError> {
    let mut values = request.headers().get_all(header::CONTENT_TYPE).iter();
    let came = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().unwrap_or_default(),
        _ => "",
    };
    let essence = came.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(CONTAINER) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::UnsupportedMediaType,
        format!("Content-Type must be {CONTAINER}; the request has {essence:?}"),
    ))
}

fn parsed(mut body: Vec<u8>) -> Result<FunctionCall, ApiError> {
    let (head, rest) = unpacked(&body)
        .map_err(|error| ApiError::field("", FailureCode::TruncatedBody, error.to_string()))?;
    let head: CallHead = warpgauge_contract::parse(BodyFormat::Json, head).map_err(unparsable)?;
    let begin = body.len() - rest.len();
    body.drain(..begin);
    Ok(FunctionCall { owner: String::new(), head, program: body })
}

/// The outcome of a call.
pub(crate) struct OutcomeReply(Vec<u8>);

impl OutcomeReply {
    async fn of(outcome: FunctionOutcome) -> Result<Self, ApiError> {
        let body = run_blocking("call", "writing the answer", move || {
            packed(&outcome.head, &outcome.records)
        });
        body.await?.map(Self).map_err(|error| {
            tracing::error!(%error, "the head of an answer cannot be written");
            ApiError::internal("call", "the answer cannot be written")
        })
    }
}

impl IntoResponse for OutcomeReply {
    fn into_response(self) -> Response {
        let mut response = Response::builder().content_type(CONTAINER).finish();
        response.set_data(BodyLength(self.0.len()));
        // A browser must not show a value from a caller's function as a page of this server.
        let nosniff = poem::http::HeaderValue::from_static("nosniff");
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        response.set_body(self.0);
        response
    }
}

impl ApiResponse for OutcomeReply {
    fn meta() -> MetaResponses {
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Head, and the value that the function returned.",
                status: Some(200),
                status_range: None,
                content: vec![binary("`OutcomeHead` of docs/cluster.md, and the returned value.")],
                headers: vec![],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}
