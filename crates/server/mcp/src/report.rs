//! Shortens a job's report to a size that an agent can use. Long lists and texts are truncated. The
//! report lists their paths.

use serde_json::{Map, Value, json};

use warpgauge_job_views::JobView;

/// Maximum size of a report, bytes.
pub(crate) const MAX_REPORT_BYTES: usize = 256 << 10;

/// Maximum size of a text artifact, bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 256 << 10;

/// Maximum size of a binary artifact, bytes. A larger one is rejected, not truncated.
pub(crate) const MAX_BLOB_BYTES: usize = 256 << 10;

/// Maximum lengths of lists, of texts, and of the list of truncated paths. The first entry whose
/// result is small enough is used.
const STEPS: [(usize, usize, usize); 4] =
    [(256, 16 << 10, 64), (32, 2 << 10, 64), (8, 512, 32), (1, 64, 8)];

/// Returns the report of a job as JSON of limited size. `left_out` lists the truncated parts.
pub(crate) fn bounded(job: &JobView) -> String {
    // A report contains only values that JSON can represent.
    let whole = serde_json::to_value(job).unwrap_or_default();
    for (items, bytes, places) in STEPS {
        let mut cut = Cut { items, bytes, places, left_out: Vec::new(), more: 0 };
        let mut value = whole.clone();
        cut.apply(&mut value, &mut String::new());
        if let Value::Object(fields) = &mut value {
            cut.tell(fields, &job.job_id);
        }
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        if text.len() <= MAX_REPORT_BYTES {
            return text;
        }
    }
    let note = format!(
        "the report is too long even when shortened; GET /jobs/{} of the HTTP API returns all of it",
        job.job_id
    );
    json!({"job_id": job.job_id, "state": job.state, "left_out": [note]}).to_string()
}

struct Cut {
    items: usize,
    bytes: usize,
    places: usize,
    left_out: Vec<String>,
    more: usize,
}

impl Cut {
    fn apply(&mut self, value: &mut Value, path: &mut String) {
        let length = path.len();
        match value {
            Value::String(text) if text.len() > self.bytes => {
                self.note(path, &format!("{} of {} bytes", self.bytes, text.len()));
                *text = truncated(text, self.bytes).to_owned();
            }
            Value::Array(items) => {
                if items.len() > self.items {
                    self.note(path, &format!("{} of {} items", self.items, items.len()));
                    items.truncate(self.items);
                }
                for (at, item) in items.iter_mut().enumerate() {
                    path.push_str(&format!("[{at}]"));
                    self.apply(item, path);
                    path.truncate(length);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(truncated(name, 64));
                    self.apply(field, path);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, path: &str, what: &str) {
        if self.left_out.len() < self.places {
            self.left_out.push(format!("{path}: {what} are shown"));
        } else {
            self.more += 1;
        }
    }

    fn tell(mut self, fields: &mut Map<String, Value>, job_id: &str) {
        if self.left_out.is_empty() {
            return;
        }
        if self.more > 0 {
            self.left_out.push(format!("and {} more", self.more));
        }
        self.left_out.push(format!("GET /jobs/{job_id} of the HTTP API returns all of it"));
        fields.insert("left_out".to_owned(), json!(self.left_out));
    }
}

/// Returns the beginning of a text: at most this many bytes, without splitting a character.
pub(crate) fn truncated(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(error: &str) -> JobView {
        let job = json!({
            "job_id": "j", "kind": "evaluate", "state": "failed", "created_at": 1.0, "trials_done": 0,
            "error": error,
        });
        serde_json::from_value(job).expect("a job")
    }

    #[test]
    fn what_is_short_stays_whole() {
        let report: Value = serde_json::from_str(&bounded(&job("ä"))).expect("JSON");
        assert_eq!(report["error"], "ä");
        assert!(report.get("left_out").is_none());
    }

    #[test]
    fn what_is_long_is_cut_and_named() {
        let text = bounded(&job(&"ä".repeat(1 << 20)));
        assert!(text.len() < MAX_REPORT_BYTES);
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let left_out = report["left_out"].as_array().expect("a list");
        assert!(
            left_out[0].as_str().is_some_and(|it| it.starts_with("error: 16384 of")),
            "{left_out:?}"
        );
    }

    #[test]
    fn many_long_lists_are_cut_until_they_fit() {
        let mut value = json!({"a": vec![vec!["x".repeat(400); 300]; 300]});
        let mut cut = Cut { items: 8, bytes: 512, places: 3, left_out: Vec::new(), more: 0 };
        cut.apply(&mut value, &mut String::new());
        assert_eq!(value["a"].as_array().map(Vec::len), Some(8));
        assert_eq!(cut.left_out[0], "a: 8 of 300 items are shown");
        assert_eq!(cut.left_out[1], "a[0]: 8 of 300 items are shown");
        assert_eq!((cut.left_out.len(), cut.more), (3, 6));
    }
}
