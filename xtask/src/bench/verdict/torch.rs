//! Creates requests for problems in PyTorch, and the useless candidates that are derived from each
//! reference.

use serde_json::{Value, json};

/// For each useless candidate, its name and the expression that replaces each tensor `t` of the
/// reference's result. `args` are the inputs.
const VARIANTS: [(&str, &str); 10] = [
    ("zeros", "torch.zeros_like(t)"),
    ("constant", "torch.ones_like(t)"),
    ("plus_one", "~t if t.dtype == torch.bool else t + 1"),
    (
        "scaled",
        "t * (1.05 if t.dtype == torch.bfloat16 else 1.005) if t.is_floating_point() else t",
    ),
    ("half", "t.half().to(t.dtype) if wide(t) else t"),
    ("bfloat16", "t.bfloat16().to(t.dtype) if wide(t) else t"),
    ("second_half_zero", "half_zero(t)"),
    ("one_element", "changed(t)"),
    ("copy", "copied(t, args)"),
    ("first_result", "t"),
];

/// Returns the names and the sources of the useless candidates. They apply to every reference.
pub fn variants() -> Vec<(&'static str, String)> {
    let of = |(name, expression): (&'static str, &str)| {
        let keeps = if name == "first_result" { "True" } else { "False" };
        let text = include_str!("altered.py").replace("EXPRESSION", expression);
        (name, text.replace("KEEPS", keeps))
    };
    VARIANTS.into_iter().map(of).collect()
}

/// First lines of each source. Tensors that the source creates are then on the device of its
/// inputs.
const HEADER: &str = "if torch.cuda.is_available():\n    torch.set_default_device('cuda')\n";

/// Returns a request to compare candidates with the reference. Each candidate's source begins with
/// the text of the reference.
pub fn request(candidates: &[(&str, &str)], reference: &str, backward: bool) -> Value {
    let reference = &format!("{HEADER}{reference}");
    let kernel = |source: &str| json!({"kernel_type": "torch", "source_code": source, "metadata": {"backward": backward}});
    let of = |(name, source): &(&str, &str)| json!({"name": name, "kernel": kernel(&format!("{reference}\n{source}"))});
    json!({
        "ref_kernel": kernel(reference),
        "candidates": candidates.iter().map(of).collect::<Vec<_>>(),
        "num_trials": super::TRIALS,
        "timeout": super::TIMEOUT_S
    })
}
