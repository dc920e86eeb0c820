//! Counts of a Triton kernel, from the hardware of a GPU or from the emulated device.

use serde_json::json;

use super::{ADD, available, triton};
use crate::server::Server;

/// 1000 elements in blocks of 256, two for each thread. 1000 is no multiple of 16, so that a thread has a
/// load of its own for each of the two, and every sector is asked for twice. What masks leave out is
/// added all the same.
#[test]
fn sectors_and_additions_are_those_of_the_code_that_triton_makes() {
    needs!("Triton", available());
    let server = Server::start();
    let expected = [
        ("global_load_sectors", 500.0),
        ("global_store_sectors", 250.0),
        ("fadd_instructions", 1024.0),
    ];
    let ids = expected.map(|(id, _)| id);
    let body = json!({"kernel": triton(ADD), "num_trials": 2, "profile": {"metrics": ids}});
    let report = server.evaluate(&body);
    assert_eq!(report["profile"]["available"], true, "{}", report["profile"]);
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"]["metrics"];
    for (id, expected) in expected {
        assert_eq!(metrics[id]["value"].as_f64(), Some(expected), "{id}: {metrics}");
    }
}
