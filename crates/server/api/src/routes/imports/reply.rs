//! Answers of imports, which the service writes as JSON or as a page: [`ImportReply`].

use std::marker::PhantomData;

use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::JSON;
use crate::response::html::HtmlReply;
use crate::response::reply::JsonReply;
use crate::schema;
use warpgauge_service::ImportForm;

/// An answer of type `T` that is already written.
pub(crate) struct ImportReply<T> {
    text: Vec<u8>,
    form: ImportForm,
    of: PhantomData<fn() -> T>,
}

impl<T> ImportReply<T> {
    pub(crate) fn new(text: Vec<u8>, form: ImportForm) -> Self {
        Self { text, form, of: PhantomData }
    }
}

impl<T: Serialize> IntoResponse for ImportReply<T> {
    fn into_response(self) -> Response {
        match self.form {
            ImportForm::Page => {
                HtmlReply(String::from_utf8_lossy(&self.text).into_owned()).into_response()
            }
            ImportForm::Json => JsonReply::<T>::written(self.text).into_response(),
        }
    }
}

impl<T: JsonSchema + Serialize> ApiResponse for ImportReply<T> {
    fn meta() -> MetaResponses {
        let page = MetaSchemaRef::Inline(Box::new(MetaSchema::new("string")));
        let content = vec![
            MetaMediaType { content_type: JSON, schema: schema::reference::<T>() },
            MetaMediaType { content_type: "text/html", schema: page },
        ];
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Content of the report. Browsers receive a page.",
                status: Some(200),
                status_range: None,
                content,
                headers: vec![],
            }],
        }
    }

    fn register(registry: &mut Registry) {
        schema::register::<T>(registry);
    }
}
