//! Answers in JSON.

use std::marker::PhantomData;

use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::payload::Payload;
use poem_openapi::registry::{MetaMediaType, MetaResponse, MetaResponses, MetaSchemaRef, Registry};
use schemars::JsonSchema;
use serde::Serialize;

use crate::blocking::{HEAVY_BYTES, run_blocking};
use crate::error::{ApiError, JSON};
use crate::schema;

/// A JSON answer, serialized by serde.
pub(crate) struct JsonReply<T> {
    json: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

/// Size of an answer's body in bytes. The middleware uses it to decide whether to compress the
/// answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLength(pub(crate) usize);

impl<T: Serialize> JsonReply<T> {
    pub(crate) fn new(value: &T) -> Result<Self, ApiError> {
        let json = serde_json::to_vec(value).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written");
            ApiError::internal("reply", "the answer cannot be written as JSON")
        })?;
        Ok(Self { json, of: PhantomData })
    }

    /// Returns an answer that is JSON of a `T` already.
    pub(crate) fn written(json: Vec<u8>) -> Self {
        Self { json, of: PhantomData }
    }

    /// Works like [`JsonReply::new`]. An answer with large tensors (`content_bytes`) is written
    /// outside the async threads.
    pub(crate) async fn with_content(value: T, content_bytes: usize) -> Result<Self, ApiError>
    where
        T: Send + 'static,
    {
        if content_bytes <= HEAVY_BYTES {
            return Self::new(&value);
        }
        run_blocking("reply", "writing the answer", move || Self::new(&value)).await?
    }
}

impl<T> IntoResponse for JsonReply<T> {
    fn into_response(self) -> Response {
        let mut response = Response::builder().content_type(JSON).finish();
        response.set_data(BodyLength(self.json.len()));
        response.set_body(self.json);
        response
    }
}

impl<T: JsonSchema> Payload for JsonReply<T> {
    const CONTENT_TYPE: &'static str = JSON;

    fn schema_ref() -> MetaSchemaRef {
        schema::reference::<T>()
    }

    fn register(registry: &mut Registry) {
        schema::register::<T>(registry);
    }
}

impl<T: JsonSchema> ApiResponse for JsonReply<T> {
    fn meta() -> MetaResponses {
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Success. The answer is JSON.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType {
                    content_type: JSON,
                    schema: schema::reference::<T>(),
                }],
                headers: vec![],
            }],
        }
    }

    fn register(registry: &mut Registry) {
        schema::register::<T>(registry);
    }
}
