//! The decision rule of a comparison: the preset's rule with the overrides of the request.

use warpgauge_contract::CompareRequest;
use warpgauge_statistics::Preset;
use warpgauge_statistics::paired::ComparePolicy;

/// Resolution of times from CUDA events, in milliseconds. The timer of the examined devices
/// advances by 32 ns, and a time is the difference of two readings.
const EVENT_TICK_MS: f64 = 32e-6;

/// Returns the decision rule of a request.
pub(crate) fn policy(request: &CompareRequest) -> ComparePolicy {
    let preset = Preset::builtin(request.measure.preset).compare.policy();
    let asked = request.decision.unwrap_or_default();
    ComparePolicy {
        looks: asked.blocks.map_or(preset.looks, |blocks| vec![blocks]),
        alpha: asked.alpha.unwrap_or(preset.alpha),
        margin: asked.margin.unwrap_or(preset.margin),
        equivalence: asked.equivalence.unwrap_or(preset.equivalence),
        resolution_ms: EVENT_TICK_MS,
        ..ComparePolicy::default()
    }
}

/// Returns the maximum time for measuring a pair of kernels side by side, in seconds.
pub(crate) fn max_time_s(request: &CompareRequest) -> f64 {
    let preset = &Preset::builtin(request.measure.preset).compare;
    request.measure.max_time.unwrap_or(preset.max_time_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_takes_the_place_of_the_presets() {
        let kernel = serde_json::json!({"kernel_type": "ptx", "source_code": "x"});
        let of = |decision: serde_json::Value| {
            let request = serde_json::json!({"ref_kernel": kernel, "custom_kernel": kernel,
                "measure": {"preset": "ci"}, "decision": decision});
            policy(&serde_json::from_value(request).expect("a request"))
        };
        let preset = of(serde_json::json!(null));
        assert_eq!((preset.looks.len(), preset.alpha, preset.margin), (4, 0.01, 0.005));
        let own = of(serde_json::json!({"margin": 0.02, "alpha": 0.002, "blocks": 64}));
        assert_eq!((own.looks.as_slice(), own.alpha, own.margin), (&[64][..], 0.002, 0.02));
        assert_eq!(own.equivalence, preset.equivalence);
    }
}
