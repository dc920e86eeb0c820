//! Formats a guessed contract as YAML, with the reason beside each guess. The main function is
//! [`text`].

use serde_json::Value;

use crate::infer::guess::Guess;

/// Returns the contract of `kernel_name` in `file`, a kernel of type `kernel_type`. With
/// `reference`, the text includes a commented template for a reference kernel.
pub fn text(
    guess: &Guess,
    kernel_type: &str,
    file: &str,
    kernel_name: &str,
    reference: bool,
) -> String {
    let mut text = String::from(
        "# Guessed from the kernel's parameters, names and code: check every line with a comment.\nkernel:\n",
    );
    let quoted = |value: &str| Value::from(value).to_string();
    text.push_str(&format!("  kernel_type: {kernel_type}\n  source_file: {}\n", quoted(file)));
    if !guess.io.is_empty() {
        text.push_str(&format!("  metadata:\n    kernel_name: {}\n  io:\n", quoted(kernel_name)));
        let args = guess.io["args"].as_array().into_iter().flatten();
        text.push_str(if args.clone().next().is_some() { "    args:\n" } else { "    args: []\n" });
        for (arg, reason) in args.zip(&guess.reasons) {
            text.push_str(&format!("      # {reason}\n      - {}\n", flow(arg)));
        }
        text.push_str(&format!(
            "    # {}\n    launch: {}\n",
            guess.launch_reason,
            flow(&guess.io["launch"])
        ));
    }
    text.push_str("num_trials: 20\n");
    if reference {
        let outputs = guess.io.get("args").and_then(Value::as_array).into_iter().flatten();
        let outputs =
            outputs.filter(|arg| matches!(arg["role"].as_str(), Some("output" | "inout")));
        text.push_str(
            "# Without `expected` any result passes. A reference is a plain kernel with the same parameters:\n\
             # uncomment the lines below to use one.\n# expected:\n",
        );
        for output in outputs {
            text.push_str(&format!(
                "#   {}:\n#     kernel: {{kernel_type: cuda, source_file: reference.cu, metadata: {{kernel_name: reference}}}}\n",
                flow(&output["name"])
            ));
        }
    }
    text
}

/// Formats a value in flow style. JSON is valid YAML, so strings keep their quotes.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
