//! The answer of `GET /metrics`.

use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};

use super::exposition::OPEN_METRICS;
use crate::response::reply::BodyLength;

pub(crate) struct MetricsReply(pub(crate) String);

impl IntoResponse for MetricsReply {
    fn into_response(self) -> Response {
        let mut response = Response::builder().content_type(OPEN_METRICS).finish();
        response.set_data(BodyLength(self.0.len()));
        response.set_body(self.0);
        response
    }
}

impl ApiResponse for MetricsReply {
    fn meta() -> MetaResponses {
        let schema = MetaSchemaRef::Inline(Box::new(MetaSchema {
            description: Some("Metrics in the OpenMetrics text format."),
            ..MetaSchema::new("string")
        }));
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Metrics of the server.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType { content_type: OPEN_METRICS, schema }],
                headers: vec![],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}
