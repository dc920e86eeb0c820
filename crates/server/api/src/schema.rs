//! Schemas of bodies in poem-openapi's documents. They are generated from the serde form of the
//! types.

use std::borrow::Cow;
use std::collections::BTreeMap;

use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseError, ParseFromParameter, ParseResult, ToJSON, Type};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::tree::{Mapping, Value};
use warpgauge_contract::schema::{of_answers, of_requests};

/// Returns a reference to the schema of `T` in the document.
pub(super) fn reference<T: JsonSchema>() -> MetaSchemaRef {
    MetaSchemaRef::Reference(T::schema_name().into_owned())
}

/// Adds the schemas of an answer to the registry, stored as the example of a schema. poem-openapi
/// accepts only schemas that it generated, so [`unpack`] moves these to their final places later.
pub(super) fn register<T: JsonSchema>(registry: &mut Registry) {
    pack::<T>(registry, of_answers(), false);
}

/// Adds the schemas of a request, like [`register`].
pub(super) fn register_request<T: JsonSchema>(registry: &mut Registry) {
    pack::<T>(registry, of_requests(), true);
}

fn pack<T: JsonSchema>(registry: &mut Registry, mut generator: SchemaGenerator, request: bool) {
    generator.subschema_for::<T>();
    let schemas = generator.take_definitions(true);
    let packed =
        MetaSchema { example: Some(schemas.into()), write_only: request, ..MetaSchema::ANY };
    let name = T::schema_name().into_owned();
    if request || !registry.schemas.contains_key(&name) {
        registry.schemas.insert(name, packed);
    }
}

/// Moves the schemas of bodies to their final places. A type that occurs in requests and in answers
/// uses the schema of requests.
pub(super) fn unpack(document: &mut Value) {
    let schemas = document.get_mut("components").and_then(|it| it.get_mut("schemas"));
    let Some(schemas) = schemas.and_then(Value::as_mapping_mut) else { return };
    let (requests, answers): (Vec<_>, Vec<_>) = std::mem::take(schemas)
        .into_iter()
        .partition(|(_, schema)| schema.get("writeOnly").is_some());
    let mut by_name = BTreeMap::new();
    for (name, mut schema) in answers.into_iter().chain(requests) {
        let inner = schema.get_mut("example").and_then(Value::as_mapping_mut).map(std::mem::take);
        let schemas = inner.unwrap_or_else(|| Mapping::from_iter([(name, schema)]));
        by_name.extend(schemas);
    }
    schemas.extend(by_name);
}

/// A query parameter whose values are those of an enumerated wire type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<T>(pub(super) T);

impl<T: JsonSchema + Send + Sync> Type for Word<T> {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_ref() -> MetaSchemaRef {
        reference::<T>()
    }

    fn register(registry: &mut Registry) {
        register::<T>(registry);
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

impl<T: JsonSchema + DeserializeOwned + Send + Sync> ParseFromParameter for Word<T> {
    fn parse_from_parameter(value: &str) -> ParseResult<Self> {
        serde_json::from_value(value.into()).map(Self).map_err(ParseError::custom)
    }
}

impl<T: JsonSchema + Serialize + Send + Sync> ToJSON for Word<T> {
    fn to_json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                let target = fields.get("$ref").and_then(Value::as_str);
                found.extend(target.map(str::to_owned));
                fields.values().for_each(|inner| references(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        for document in
            [crate::openapi::document::full_json(), crate::openapi::document::client_json()]
        {
            let document: Value = serde_json::from_str(&document).unwrap();
            let mut found = BTreeSet::new();
            references(&document, &mut found);
            let schemas = document["components"]["schemas"].as_object().unwrap();
            let there: BTreeSet<_> =
                schemas.keys().map(|name| format!("#/components/schemas/{name}")).collect();
            assert!(there.len() > 100, "{}", there.len());
            assert!(found.is_subset(&there), "{:?}", found.difference(&there));
        }
    }

    #[test]
    fn null_is_taken_for_what_may_be_left_out_and_written_where_a_type_says_so() {
        let document: Value = serde_json::from_str(&crate::openapi::document::full_json()).unwrap();
        let nullable = |schema: &str, field: &str| {
            let property = &document["components"]["schemas"][schema]["properties"][field];
            assert!(property.is_object(), "{schema}.{field}");
            property["nullable"] == true
        };
        assert!(nullable("EvaluateRequest", "tolerance"));
        assert!(nullable("EvaluateRequest", "return_outputs"));
        assert!(!nullable("EvaluateRequest", "timeout"));
        assert!(!nullable("JobView", "finished_at"));
        assert!(nullable("LegacyJob", "error"));
    }
}
