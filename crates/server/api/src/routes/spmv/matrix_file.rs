//! Answers that contain a matrix as a file.

use poem::http::{HeaderValue, header};
use poem::{Body, IntoResponse, Response};
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiResponse, Enum};

use warpgauge_service::{MatrixFile, MatrixFileFormat};

const BYTES: &str = "application/octet-stream";

/// Format of a matrix file.
#[derive(Debug, Clone, Copy, Default, Enum)]
#[oai(rename_all = "lowercase")]
pub(crate) enum MatrixFormat {
    /// Matrix Market format, a text format.
    #[default]
    Mtx,
    /// SPASM, version 2.
    Spasm,
}

impl From<MatrixFormat> for MatrixFileFormat {
    fn from(format: MatrixFormat) -> Self {
        match format {
            MatrixFormat::Mtx => Self::Market,
            MatrixFormat::Spasm => Self::Spasm,
        }
    }
}

/// An answer that contains a matrix as a file.
pub(crate) struct MatrixFileReply(pub(crate) MatrixFile);

impl IntoResponse for MatrixFileReply {
    fn into_response(self) -> Response {
        let MatrixFile { file_name, content, bytes } = self.0;
        let mut response = Response::builder().content_type(BYTES).finish();
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
        let disposition = format!("attachment; filename=\"{file_name}\"");
        if let Ok(value) = HeaderValue::from_str(&disposition) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        response.set_body(Body::from_async_read(tokio::fs::File::from_std(content)));
        response
    }
}

impl ApiResponse for MatrixFileReply {
    fn meta() -> MetaResponses {
        let schema = MetaSchemaRef::Inline(Box::new(MetaSchema {
            description: Some("File in the requested format."),
            ..MetaSchema::new_with_format("string", "binary")
        }));
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Matrix as a file.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType { content_type: BYTES, schema }],
                headers: vec![],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}
