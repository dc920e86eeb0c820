//! Answers that contain the content of a shared tensor.

use poem::http::{HeaderValue, header};
use poem::{Body, IntoResponse, Response};
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiResponse, Enum};

use warpgauge_service::TensorContent;
use warpgauge_shared_tensors::TransferFormat;

const BYTES: &str = "application/octet-stream";

/// Format of the content.
#[derive(Debug, Clone, Copy, Default, Enum)]
#[oai(rename_all = "lowercase")]
pub(crate) enum TensorFormat {
    /// A `.npy` file.
    #[default]
    Npy,
    /// A `.safetensors` file with one tensor, called `tensor`.
    Safetensors,
    /// Raw elements.
    Raw,
}

impl From<TensorFormat> for TransferFormat {
    fn from(format: TensorFormat) -> Self {
        match format {
            TensorFormat::Npy => Self::Npy,
            TensorFormat::Safetensors => Self::Safetensors,
            TensorFormat::Raw => Self::Raw,
        }
    }
}

/// An answer that contains a tensor as a file.
pub(crate) struct TensorFileReply(pub(crate) TensorContent);

impl IntoResponse for TensorFileReply {
    fn into_response(self) -> Response {
        let TensorContent { id, format, bytes, stream } = self.0;
        let mut response = Response::builder().content_type(BYTES).finish();
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // If the tensor is removed meanwhile, the content ends early. The client detects this by
        // the length.
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
        let name = format!("attachment; filename=\"{id}.{}\"", format.name());
        if let Ok(value) = HeaderValue::from_str(&name) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        response.set_body(Body::from_bytes_stream(stream));
        response
    }
}

impl ApiResponse for TensorFileReply {
    fn meta() -> MetaResponses {
        let schema = MetaSchemaRef::Inline(Box::new(MetaSchema {
            description: Some("File in the requested format."),
            ..MetaSchema::new_with_format("string", "binary")
        }));
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Content of the tensor.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType { content_type: BYTES, schema }],
                headers: vec![],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}
