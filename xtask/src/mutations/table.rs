//! The defences, and how to remove each.

/// One defence.
pub struct Mutation {
    /// Its name, and the extension of the program without it.
    pub name: &'static str,
    /// What it is, for people.
    pub what: &'static str,
    /// The file that holds it.
    pub file: &'static str,
    /// The defence: text that stands once in the file.
    pub text: &'static str,
    /// What stands there without it.
    pub replacement: &'static str,
}

/// Defences that the emulated device can show.
pub const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "guard_bands",
        what: "guard bands are looked at",
        file: "crates/worker/src/child/intact.rs",
        text: "judge_bands(&self.bands, buffers, findings)?;",
        replacement: "",
    },
    Mutation {
        name: "input_comparison",
        what: "inputs are compared with what they held",
        file: "crates/worker/src/child/intact.rs",
        text: "judge_inputs(self.inputs, buffers, findings)",
        replacement: "Ok(())",
    },
    Mutation {
        name: "poison",
        what: "outputs are poisoned before each launch",
        file: "crates/worker/src/child/buffers.rs",
        text: "self.memory.fill_words(at, self.bytes, filling.word(self.spec.dtype), stream)",
        replacement: "Ok(())",
    },
    Mutation {
        name: "fillings",
        what: "each launch finds another filling, drawn at random",
        file: "crates/validate/src/filling.rs",
        text: "self.kind == Kind::Fixed",
        replacement: "self.kind == Kind::Fixed || self.bits > 0",
    },
    Mutation {
        name: "written_proof",
        what: "unwritten elements count whatever share of mismatches is allowed",
        file: "crates/worker/src/child/verify.rs",
        text: "trace.held > 0 && all.is_proof()",
        replacement: "trace.held > 0 && all.is_proof() && false",
    },
    Mutation {
        name: "written_later",
        what: "they count in all verified launches, not in the first two alone",
        file: "crates/worker/src/child/verify.rs",
        text: "self.note(name, buffer, (&trace, &comparison), &launch)?;",
        replacement: "let _ = (&trace, &launch);",
    },
    Mutation {
        name: "moving_inputs",
        what: "launches find random inputs of seeds that nobody knows",
        file: "crates/worker/src/child/evaluate.rs",
        text: "fresh && plan.checks.files.is_empty() && !plan.sanitize",
        replacement: "fresh && false",
    },
    Mutation {
        name: "state_wipe",
        what: "variables are put back before each timed launch",
        file: "crates/worker/src/child/trials/timed.rs",
        text: "arm.forget(stream)?;",
        replacement: "",
    },
    Mutation {
        name: "constants",
        what: "constants are put back too, where inputs stay",
        file: "crates/worker/src/child/loaded.rs",
        text: "if inputs.are_all_moving(buffers) { Self::Variables } else { Self::ConstantsToo }",
        replacement: "let _ = (inputs, buffers); Self::Variables",
    },
    Mutation {
        name: "last_look",
        what: "guard bands and inputs are looked at after the last launch",
        file: "crates/worker/src/child/evaluate.rs",
        text: "oracle.aside(executor, |_| look(executor, buffers))",
        replacement: "{ let _ = look; oracle.aside(executor, |_| Ok(())) }",
    },
    Mutation {
        name: "history",
        what: "launches that keep their variables are verified",
        file: "crates/worker/src/child/trials/mod.rs",
        text: "HISTORY_LAUNCHES.saturating_sub(before).min(count_now)",
        replacement: "0",
    },
    Mutation {
        name: "timed_audits",
        what: "results of timed launches are verified",
        file: "crates/worker/src/child/trials/mod.rs",
        text: "secret.choose(share, count)",
        replacement: "secret.choose(0 * share, count)",
    },
    Mutation {
        name: "non_finite",
        what: "NaN matches nothing unless the contract allows it",
        file: "crates/validate/src/compare.rs",
        text: "tolerance.allow_non_finite && same",
        replacement: "!y.is_nan() || same",
    },
    Mutation {
        name: "sanitizer",
        what: "a fault that memory checks find speaks against the kernel",
        file: "crates/exec/src/assemble.rs",
        text: "validation.reasons.extend(fault.into_iter().chain(faster));",
        replacement: "validation.reasons.extend(faster); let _ = fault;",
    },
    Mutation {
        name: "lint",
        what: "contracts that a useless kernel passes are reported as weak",
        file: "crates/worker/src/child/evaluate.rs",
        text: "told.weaknesses = oracle.lint(executor, buffers, &canonical, other.as_ref())?;",
        replacement: "let _ = (&canonical, &other);",
    },
    Mutation {
        name: "no_expectation",
        what: "outputs without an expectation are reported as weak",
        file: "crates/exec/src/assemble.rs",
        text: "weaknesses.extend(unchecked.iter().map(|name| no_expectation(name)));",
        replacement: "",
    },
    Mutation {
        name: "comparison",
        what: "results for the contract's own inputs are compared",
        file: "crates/worker/src/child/verify.rs",
        text: "told.push(OutputCheck { buffer, comparison: judged });",
        replacement: "told.push(OutputCheck { buffer, comparison: Comparison { passed: true, \
                      ..judged } });",
    },
];

/// Defences that the emulated device cannot show, and why.
pub const GPU_ONLY: &[(&str, &str)] = &[
    (
        "no time is below the floor of the contract's work",
        "only a GPU has a floor (`faster_than_light`)",
    ),
    (
        "L2 is flushed, and persisting lines are reset",
        "changes times alone, on a GPU (`l2_evict_last`, `l2_cache_policy`)",
    ),
    (
        "shared memory is cleared where inputs do not move",
        "changes times alone, on a GPU (`stash_in_shared` with `inputs: same`)",
    ),
];

#[cfg(test)]
mod tests {
    use super::MUTATIONS;
    use crate::shell;

    #[test]
    fn every_defence_is_where_the_table_says() {
        for mutation in MUTATIONS {
            let source = std::fs::read_to_string(shell::root().join(mutation.file)).unwrap();
            assert_eq!(source.matches(mutation.text).count(), 1, "{}", mutation.name);
        }
    }
}
