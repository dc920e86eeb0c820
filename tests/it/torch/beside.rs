//! Comparisons of two torch kernels on a GPU by the judge's clock.

use serde_json::{Value, json};

use super::available;
use super::on_gpu::{ADD, adding, doing};
use crate::server::{Server, emulated};

/// Comparisons that are made for a verdict: other tests may use the device meanwhile.
const TRIES: usize = 4;

/// By the judge's clock: both ways round, neither of two that are the same, and not by having the other one
/// wait.
#[test]
fn who_is_faster_on_the_gpu_is_found_side_by_side() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    let server = Server::start();
    let server = &server;
    let more = "def f(a, b):\n    return (a + b) + 0.0 * (a - b)";
    for (what, reference, candidate, found) in [
        ("slower", ADD, more, Some("slower")),
        ("faster", more, ADD, Some("faster")),
        ("the same", ADD, ADD, None),
        ("the same, longer", more, more, None),
    ] {
        let mut verdicts = Vec::new();
        while verdicts.len() < TRIES
            && !found.is_some_and(|found| verdicts.iter().any(|v| v == found))
        {
            let report = beside(server, what, reference, candidate);
            let comparison = &report["comparison"];
            let verdict = match comparison["verdict"].as_str() {
                Some(verdict) => verdict.to_owned(),
                // Something slowed the reference.
                None => report["not_compared"].as_str().unwrap().to_owned(),
            };
            let speedup = comparison["speedup"].as_f64();
            println!("{what}: {verdict}, {speedup:?}, margin {}", comparison["margin"]);
            let wrong = ["faster", "slower"].into_iter().filter(|wrong| found != Some(*wrong));
            assert!(!wrong.into_iter().any(|wrong| verdict == wrong), "{what}: {report:#}");
            // 9 vectors are moved and 3 are.
            let honest = match what {
                "slower" => 0.15..0.7,
                "faster" => 1.5..7.0,
                _ => 0.5..2.0,
            };
            let is_verdict = comparison["verdict"].is_string();
            assert!(
                !is_verdict || speedup.is_some_and(|it| honest.contains(&it)),
                "{comparison:#}"
            );
            verdicts.push(verdict);
        }
        let right = found.is_none_or(|found| verdicts.iter().any(|verdict| verdict == found));
        assert!(right, "{what}: {verdicts:?}");
    }
    // Nothing waits for the side stream, whose work goes on beside the next call, or in the reference's turn.
    let leaves = "global s
if 's' not in globals():
    s = torch.cuda.Stream()
    for found in gc.get_objects():
        if type(found).__name__ == 'Device':
            found.synchronize = lambda: torch.cuda.current_stream().synchronize()
with torch.cuda.stream(s):
    torch.cuda._sleep(2000000)";
    let source = doing(leaves)["kernel"]["source_code"].as_str().unwrap().to_owned();
    let report = beside(server, "leaves work", ADD, &source);
    let verdict = &report["comparison"]["verdict"];
    println!("leaves work: {verdict}, {}", report["not_compared"]);
    assert_ne!(*verdict, "faster", "{report:#}");
}

/// A comparison of two functions of the vectors.
fn beside(server: &Server, what: &str, reference: &str, candidate: &str) -> Value {
    let reference = adding(reference)["kernel"].clone();
    let candidate = adding(candidate)["kernel"].clone();
    let both = json!({"ref_kernel": reference, "custom_kernel": candidate, "num_trials": 20,
        "timeout": 60.0});
    let answer = server.post_json("/compare", &both);
    assert_eq!(answer.status, 200, "{what}: {}\n{}", answer.text, server.output());
    let own = &answer.json["kernel_exec_result"];
    assert_eq!(own["correctness"], true, "{what}: {:#}", answer.json);
    answer.json
}
