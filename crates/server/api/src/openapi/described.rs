//! The description of an API without its handlers, so that the documents can be generated without a
//! service and a device.

use std::collections::HashMap;
use std::marker::PhantomData;

use poem::endpoint::BoxEndpoint;
use poem::http::Method;
use poem_openapi::OpenApi;
use poem_openapi::registry::{MetaApi, Registry};

/// Describes the API `T` without serving it.
pub(crate) struct Described<T>(PhantomData<fn() -> T>);

impl<T> Described<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: OpenApi> OpenApi for Described<T> {
    fn meta() -> Vec<MetaApi> {
        T::meta()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn add_routes(self, _: &mut HashMap<String, HashMap<Method, BoxEndpoint<'static>>>) {}
}
