//! Converts a server's rejections into readable text.

use serde_json::Value;

/// Maximum number of characters of another program's answer that an error shows.
const MAX_FOREIGN: usize = 120;

/// Maximum number of problems that an error shows for one request.
const MAX_PROBLEMS: usize = 50;

/// Returns the readable part of an error body: `error`, the position, and all problems.
pub(crate) fn explain(body: &str, status: u16) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(body) else {
        let line = body.split_whitespace().collect::<Vec<_>>().join(" ");
        let start: String = line.chars().take(MAX_FOREIGN).collect();
        let start = if start.is_empty() { "no explanation".to_owned() } else { start };
        // Proxies send such answers when the server is down.
        return match status {
            502..=504 => start,
            _ => format!("{start}\n  this answer is not from warpgauge: check the address"),
        };
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let mut message = text("error")
        .or_else(|| text("detail"))
        .or_else(|| text("message"))
        .unwrap_or("no explanation")
        .to_owned();
    if let Some(code) = text("code") {
        message.push_str(&format!(" [{code}]"));
    }
    if let (Some(line), Some(column)) =
        (fields.get("line").and_then(Value::as_u64), fields.get("column").and_then(Value::as_u64))
    {
        message.push_str(&format!(" (line {line}, column {column})"));
    }
    let problems = fields.get("validation_errors").and_then(Value::as_array);
    for problem in problems.into_iter().flatten().take(MAX_PROBLEMS) {
        let part = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or("?");
        message.push_str(&format!("\n  {}: {}", part("field"), part("message")));
    }
    let listed = problems.is_some_and(|list| !list.is_empty());
    if let Some(path) = text("path").filter(|_| !listed) {
        message.push_str(&format!("\n  at {path}"));
    }
    if status == 401 {
        message.push_str("\n  pass the key with --api-key or WARPGAUGE_API_KEY");
    }
    if status == 413 {
        message.push_str("\n  the operator can raise `server.body_limit_bytes`");
    }
    message
}

/// Returns the codes of the problems in the body of a rejection.
pub(crate) fn problems(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let listed = body.get("validation_errors").and_then(Value::as_array);
    let codes = listed.into_iter().flatten().take(MAX_PROBLEMS);
    codes.filter_map(|problem| problem.get("type")?.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_listed() {
        let body =
            r#"{"validation_errors": [{"field": "requires", "type": "unmet_requirements"}, {}]}"#;
        assert_eq!(problems(body), ["unmet_requirements"]);
        assert!(problems("no JSON").is_empty() && problems("[]").is_empty());
    }

    #[test]
    fn error_bodies_become_readable() {
        let body = r#"{"status": "client_error", "error": "the contract is not valid",
            "code": "invalid_contract", "path": "kernel", "validation_errors": [
            {"field": "kernel.io.args[0].name", "message": "empty", "type": "invalid_value"}]}"#;
        assert_eq!(
            explain(body, 400),
            "the contract is not valid [invalid_contract]\n  kernel.io.args[0].name: empty"
        );
        assert_eq!(
            explain(r#"{"error": "no", "path": "a.b", "line": 3, "column": 4}"#, 400),
            "no (line 3, column 4)\n  at a.b"
        );
        assert!(explain(r#"{"error": "no key"}"#, 401).contains("WARPGAUGE_API_KEY"));
        assert_eq!(explain("<html>Bad Gateway</html>", 502), "<html>Bad Gateway</html>");
        assert_eq!(explain("", 502), "no explanation");
        let foreign = explain(&format!("<!DOCTYPE HTML>\n  <html>{}", "x".repeat(500)), 404);
        assert!(foreign.starts_with("<!DOCTYPE HTML> <html>xx"), "{foreign}");
        assert!(foreign.ends_with("\n  this answer is not from warpgauge: check the address"));
        assert!(foreign.len() < 200, "{foreign}");
    }
}
