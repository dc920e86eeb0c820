//! The table of defences against hostile kernels, and how each is removed.

/// A defence, and how it is removed.
pub struct Mutation {
    /// Name of the defence. It is also the file extension of the program without the defence.
    pub name: &'static str,
    /// Description of the defence, for the printed table.
    pub what: &'static str,
    /// Source file that contains the defence.
    pub file: &'static str,
    /// Code of the defence, which occurs exactly once in the file.
    pub text: &'static str,
    /// Code that replaces it when the defence is removed.
    pub replacement: &'static str,
    /// Exploits or tests that detect the removal.
    pub noticed: Noticed,
}

/// Exploits or tests that detect the removal of a defence.
pub enum Noticed {
    /// At least one of these exploits ends differently from its table row.
    By(&'static [&'static str]),
    /// At least one of these integration tests fails.
    ByTest(&'static [&'static str]),
}

use Noticed::{By, ByTest};

/// Defences that can be tested on the emulated device.
pub const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "guard_bands",
        what: "guard bands are checked",
        file: "crates/run/worker/src/child/verify/surroundings.rs",
        text: "judge_bands(&self.bands, buffers, findings)?;",
        replacement: "",
        noticed: By(&[
            "finds_guard_bands",
            "writes_past_end",
            "writes_before_start",
            "stash_in_slack",
        ]),
    },
    Mutation {
        name: "input_comparison",
        what: "inputs are compared with their source",
        file: "crates/run/worker/src/child/verify/surroundings.rs",
        text: "judge_inputs(self.inputs, buffers, findings)",
        replacement: "Ok(())",
        noticed: By(&["input_stash_alternating"]),
    },
    Mutation {
        name: "poison",
        what: "outputs are filled before each launch",
        file: "crates/run/worker/src/child/memory/buffers.rs",
        text: "writes.fill(&self.memory, (at, self.bytes), filling.word(self.spec.dtype))",
        replacement: "Ok(())",
        noticed: By(&["assumes_positive", "knows_the_filling", "partial_unwipeable"]),
    },
    Mutation {
        name: "fillings",
        what: "each launch has a different random filling",
        file: "crates/core/validate/src/filling.rs",
        text: "self.kind == Kind::Fixed",
        replacement: "self.kind == Kind::Fixed || self.bits > 0",
        noticed: By(&["filling_as_result", "knows_the_filling", "reads_uninitialised"]),
    },
    Mutation {
        name: "written_proof",
        what: "unwritten elements are an error whatever share of mismatches is allowed",
        file: "crates/run/worker/src/child/verify/written.rs",
        text: "trace.held > 0 && all.is_proof()",
        replacement: "trace.held > 0 && all.is_proof() && false",
        noticed: By(&["partial_within_ratio", "partial_bytes_within_ratio", "unwritten_nan"]),
    },
    Mutation {
        name: "written_later",
        what: "they are an error in all verified launches, not only in the first two",
        file: "crates/run/worker/src/child/verify/verdicts.rs",
        text: "self.note(name, *buffer, (&trace, &comparison), otherwise.launch)?;",
        replacement: "if otherwise.launch == \"the second launch\" { self.note(name, *buffer, (&trace, \
                      &comparison), otherwise.launch)?; }",
        noticed: By(&["partial_after_two_launches", "partial_unwipeable"]),
    },
    Mutation {
        name: "moving_inputs",
        what: "random inputs have secret seeds",
        file: "crates/run/worker/src/child/timing/inputs.rs",
        text: "wants_fresh(plan) && plan.checks.files.is_empty()",
        replacement: "wants_fresh(plan) && false",
        noticed: By(&["cache_replay", "hard_coded_seed"]),
    },
    Mutation {
        name: "state_wipe",
        what: "variables are restored before each timed launch",
        file: "crates/run/worker/src/child/timing/stage.rs",
        text: "arm.forget(stream)?;",
        replacement: "",
        noticed: By(&[
            "counter_after_a_declaration",
            "counter_after_warm_up",
            "counter_in_a_list",
            "counter_without_spaces",
        ]),
    },
    Mutation {
        name: "lasting",
        what: "launches that keep their variables run in sequence, and the last are verified",
        file: "crates/run/worker/src/child/tasks/evaluation.rs",
        text: "is_proven(plan) && program.keeps_state()",
        replacement: "{ let _ = is_proven(plan) && program.keeps_state(); false }",
        noticed: By(&["counter_goes_wrong_at_launch_60", "counter_goes_wrong_at_launch_150"]),
    },
    Mutation {
        name: "constants",
        what: "constants are also restored if inputs stay the same",
        file: "crates/run/worker/src/child/timing/inputs.rs",
        text: "if self.are_all_moving(buffers) { Restored::Variables } else { Restored::ConstantsToo }",
        replacement: "let _ = buffers; Restored::Variables",
        noticed: By(&["counter_in_a_constant", "counter_in_a_list_of_constants"]),
    },
    Mutation {
        name: "unlisted_state",
        what: "a time has no rank if state cannot be listed and inputs stay the same",
        file: "crates/run/engine/src/reporting/unranked.rs",
        text: "barely_verified(device, outcome).or_else(|| unlisted(request, outcome))",
        replacement: "{ let _ = (unlisted, request); barely_verified(device, outcome) }",
        noticed: ByTest(&["unlisted_state::a_time_has_no_rank_where_state_cannot_be_listed"]),
    },
    Mutation {
        name: "last_look",
        what: "guard bands and inputs are checked after the last launch",
        file: "crates/run/worker/src/child/tasks/evaluation.rs",
        text: "oracle.aside(executor, |_| look(executor, buffers))",
        replacement: "{ let _ = look; oracle.aside(executor, |_| Ok(())) }",
        noticed: By(&["writes_past_end_later"]),
    },
    Mutation {
        name: "history",
        what: "launches that keep their variables are verified",
        file: "crates/run/worker/src/child/timing/trials.rs",
        text: "HISTORY_LAUNCHES.saturating_sub(before).min(count_now)",
        replacement: "0",
        noticed: By(&["counter_warm_up_only", "counter_wrong_in_the_middle"]),
    },
    Mutation {
        name: "timed_audits",
        what: "results of timed launches are verified",
        file: "crates/run/worker/src/child/timing/trials.rs",
        text: "secret.choose(share(of_all, count, all), count)",
        replacement: "secret.choose(0 * share(of_all, count, all), count)",
        noticed: By(&["counter_in_managed_memory", "counter_unwipeable"]),
    },
    Mutation {
        name: "non_finite",
        what: "NaN matches nothing unless the contract allows it",
        file: "crates/core/validate/src/compare/mod.rs",
        text: "tolerance.allow_non_finite && same",
        replacement: "!y.is_nan() || same",
        noticed: By(&["nan_output", "infinite_output", "nan_where_allowed"]),
    },
    Mutation {
        name: "sanitizer",
        what: "a fault that memory checks find rejects the kernel",
        file: "crates/run/engine/src/reporting/assemble.rs",
        text: "validation.reasons.extend(fault.into_iter().chain(faster));",
        replacement: "validation.reasons.extend(faster); let _ = fault;",
        noticed: By(&["restores_what_it_overwrote"]),
    },
    Mutation {
        name: "lint",
        what: "contracts that a useless kernel passes are reported as weak",
        file: "crates/run/worker/src/child/tasks/evaluation.rs",
        text: "told.weaknesses = lint::weaknesses(executor, buffers, checks, &canonical, &others)?;",
        replacement: "let _ = (&canonical, checks, &others);",
        noticed: By(&["assumes_ones", "copies_input", "hard_coded_answer"]),
    },
    Mutation {
        name: "no_expectation",
        what: "outputs without an expectation are reported as weak",
        file: "crates/run/engine/src/reporting/assemble.rs",
        text: "weaknesses.extend(unchecked.iter().map(|name| no_expectation(name)));",
        replacement: "",
        noticed: By(&["unchecked_output"]),
    },
    Mutation {
        name: "comparison",
        what: "results for the contract's own inputs are compared",
        file: "crates/run/worker/src/child/verify/verdicts.rs",
        text: "told.push(OutputCheck { buffer, comparison: judged });",
        replacement: "let mut comparison = judged; comparison.passed = true; \
                      told.push(OutputCheck { buffer, comparison });",
        noticed: By(&["precision_downgrade", "wrong_tail", "data_race"]),
    },
    Mutation {
        name: "sealed_verdict",
        what: "the judge verifies the results of a sealed launch",
        file: "crates/run/worker/src/child/tasks/sealed_share.rs",
        text: "oracle.takes(0) && oracle.verify(rig.executor, rig.buffers, audit)?",
        replacement: "let _ = audit; false",
        noticed: By(&["counter_where_all_are_sealed"]),
    },
    Mutation {
        name: "sealed_ahead",
        what: "the judge verifies the results of a launch whose inputs it prepared ahead",
        file: "crates/run/worker/src/child/tasks/prepared_sets.rs",
        text: "oracle.takes(0) && oracle.verify(executor, buffers, audit)?",
        replacement: "{ let _ = audit; false }",
        noticed: By(&["counter_where_all_are_sealed_ahead"]),
    },
    Mutation {
        name: "sealed_answer",
        what: "the judge's verdict is the verdict of the evaluation",
        file: "crates/run/worker/src/fleet/sealed.rs",
        text: "outcome.failure = Some(own.unwrap_or(failure));",
        replacement: "let _ = (own, failure);",
        noticed: By(&["counter_where_all_are_sealed"]),
    },
    Mutation {
        name: "sealed_share",
        what: "some timed launches of every evaluation are sealed",
        file: "crates/run/worker/src/child/timing/trials.rs",
        text: "turns.begin(done, places(plan.sealed), later(plan.sealed));",
        replacement: "turns.begin(done, places(0), later(0));",
        noticed: ByTest(&["sealed::some_timed_launches_of_every_evaluation_are_sealed"]),
    },
    Mutation {
        name: "sealed_all",
        what: "with `isolation: sealed` a separate process judges every launch",
        file: "crates/run/engine/src/backends/device/mod.rs",
        text: "lease.run_sealed(run, timeout, &on_event).await",
        replacement: "lease.run(run, timeout, false, &on_event).await",
        noticed: ByTest(&["sealed::every_launch_of_a_sealed_evaluation_is_judged_apart"]),
    },
    Mutation {
        name: "load_audits",
        what: "launches of the load phase are verified (`sustained`)",
        file: "crates/run/worker/src/child/timing/load.rs",
        text: "self.verified.pop_if(|place| *place == index).is_some()",
        replacement: "false",
        noticed: ByTest(&["regime::a_kernel_that_does_nothing_under_load_is_found"]),
    },
    Mutation {
        name: "counted",
        what: "the counted launch is verified",
        file: "crates/run/worker/src/child/verify/oracle.rs",
        text: "self.counted.take().filter(|_| right)",
        replacement: "self.counted.take().filter(|_| false)",
        noticed: By(&["rests_while_counted"]),
    },
    Mutation {
        name: "reference_repeated",
        what: "a reference whose results vary rejects no kernel",
        file: "crates/run/worker/src/child/verify/explanation.rs",
        text: "varying_expectation(expect, against, checks, &specs)",
        replacement: "let _ = (expect, against, checks); Ok(None::<usize>)",
        noticed: By(&["reference_races"]),
    },
    Mutation {
        name: "reference_filled",
        what: "elements that a reference never wrote reject no kernel",
        file: "crates/run/worker/src/child/verify/comparison.rs",
        text: "filling.left_in(dtype, content.bytes())",
        replacement: "None",
        noticed: By(&["reference_leaves_elements"]),
    },
    Mutation {
        name: "reference_fillings",
        what: "the fillings of a reference's outputs are secret",
        file: "crates/run/worker/src/child/verify/references.rs",
        text: "Filling::drawn(self.fillings.bits())",
        replacement: "Filling::FIXED",
        noticed: By(&["guesses_what_a_reference_left"]),
    },
    Mutation {
        name: "observed_stops",
        what: "a torch kernel counts as stopped only when its threads are observed to be stopped",
        file: "crates/run/torch/src/session.rs",
        text: "!self.observed",
        replacement: "true",
        noticed: ByTest(&["torch::stopped::no_torch_kernel_computes_while_its_time_is_not_taken"]),
    },
];

/// Defences that cannot be tested on the emulated device, with the reason.
pub const GPU_ONLY: &[(&str, &str)] = &[
    (
        "no time is below the lower bound from the contract's work",
        "the lower bound applies only to a GPU (`faster_than_light`)",
    ),
    (
        "L2 is flushed and persisting lines are reset",
        "affects only times on a GPU (`l2_evict_last`, `l2_cache_policy`)",
    ),
    (
        "shared memory is cleared if inputs stay at their addresses",
        "affects only times on a GPU (`stash_in_shared` with `inputs: same`)",
    ),
    (
        "no two buffers share a page if inputs stay at their addresses",
        "the emulated device reports an access outside a buffer as a fault (`stash_in_page`)",
    ),
    (
        "page-locked memory is cleared after a verification if inputs stay at their addresses",
        "emulated kernels cannot access it",
    ),
    (
        "compared outputs are overwritten if inputs stay at their addresses",
        "the emulated device compares outputs on the host",
    ),
    (
        "times of sealed and of other launches must agree; otherwise those of sealed launches count",
        "emulated times cannot show it; `warpgauge-statistics` tests the rule",
    ),
    ("the mean ranks where launches differ, and nothing where too few were verified", "the same"),
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
