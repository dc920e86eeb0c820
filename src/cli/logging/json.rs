//! Writes log lines as JSON: [`JsonLines`].

use std::fmt;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes each event as an object on one line. Its fields are `time` (RFC 3339, UTC), `level`,
/// `target`, `message`, the event's fields, and `spans`, outermost first.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("time".to_owned(), json!(time));
        line.insert("level".to_owned(), json!(metadata.level().as_str().to_lowercase()));
        line.insert("target".to_owned(), json!(metadata.target()));
        event.record(&mut Fields(&mut line));
        let scope = context.event_scope().into_iter().flat_map(|scope| scope.from_root());
        let spans = scope.map(|span| {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map(|fields| fields.fields.clone());
            format!("{}{{{}}}", span.name(), fields.unwrap_or_default())
        });
        let spans = spans.collect::<Vec<_>>();
        if !spans.is_empty() {
            line.insert("spans".to_owned(), json!(spans));
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Collects the fields of an event. If a field has the same name as a standard field, its name gets
/// the prefix `field.`.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn add(&mut self, field: &Field, value: Value) {
        let name = match field.name() {
            own @ ("time" | "level" | "target" | "spans") => format!("field.{own}"),
            name => name.to_owned(),
        };
        self.0.insert(name, value);
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, json!(format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_event_is_an_object_on_a_line() {
        let written = Written::default();
        let into = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .event_format(JsonLines)
            .with_writer(move || into.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("request", id = 7);
            let _entered = span.enter();
            let none: Option<&str> = None;
            let path = "/a\n\"b\"";
            tracing::info!(job = "j1", median_ms = 0.5, attempts = 2, none, %path, "a job ended");
            tracing::warn!(level = true, "second");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines = lines.collect::<Vec<_>>();
        assert_eq!(lines.len(), 2, "{text}");
        let expected = json!({"level": "info", "message": "a job ended", "job": "j1", "median_ms": 0.5,
            "attempts": 2, "path": "/a\n\"b\"", "spans": ["request{id=7}"]});
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&lines[0][name], value, "{name} in {text}");
        }
        assert!(
            lines[0].get("none").is_none() && lines[0]["time"].as_str().unwrap().ends_with('Z')
        );
        assert_eq!((&lines[1]["level"], &lines[1]["field.level"]), (&json!("warn"), &json!(true)));
    }
}
