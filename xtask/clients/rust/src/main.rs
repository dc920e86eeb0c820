//! Evaluates a kernel through a client that progenitor generated, and reads every kind of answer.
//!
//!     warpgauge-generated-client SPEC SERVER
//!
//! SPEC is what `warpgauge openapi --client` prints, SERVER a URL.

use std::error::Error;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use client::types::{
    Batch, BatchItem, CompareRequest, CompileRequest, EvaluateRequest, GateRequest, JobKind,
    JobState, SweepRequest,
};

#[allow(warnings, reason = "it is as progenitor writes it")]
mod client {
    include!(concat!(env!("OUT_DIR"), "/client.rs"));
}

/// Longest wait for the end of a job.
const PATIENCE: Duration = Duration::from_secs(120);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, spec, server] = arguments.as_slice() else {
        return Err("usage: warpgauge-generated-client SPEC SERVER".into());
    };
    let document = serde_json::from_slice(&std::fs::read(spec)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // progenitor's own client gives up after 15 s.
    let http = reqwest::Client::builder().timeout(PATIENCE).build()?;
    let client = client::Client::new_with_client(server, http);
    let median_ms = runtime.block_on(evaluate(&client, &document))?;
    runtime.block_on(the_rest(&client, &document))?;
    println!("progenitor: median {median_ms} ms");
    Ok(())
}

/// The example of an operation's body, as the client's type.
fn example<T: DeserializeOwned>(document: &Value, path: &str) -> Outcome<T> {
    let content = &document["paths"][path]["post"]["requestBody"]["content"];
    Ok(serde_json::from_value(content["application/json"]["example"].clone())?)
}

/// Waits for a report, then leaves the same as a job; returns the median.
async fn evaluate(client: &client::Client, document: &Value) -> Outcome<f64> {
    let request: EvaluateRequest = example(document, "/evaluate")?;
    let report = client.evaluate(None, None, None, None, &request).await?.into_inner();
    let result = &report.kernel_exec_result;
    assert!(result.compiled && result.correctness == Some(true), "{result:?}");
    let device = report.device.as_ref().ok_or("the report names its device")?;
    assert!(device.memory_bytes > i64::from(u32::MAX), "{}", device.memory_bytes);

    let item = BatchItem {
        kind: Some(JobKind::Evaluate),
        request: serde_json::to_value(&request)?,
        label: Some("progenitor".to_owned()),
        idempotency_key: None,
        priority: None,
        webhook: None,
    };
    let accepted = client.submit_jobs(&Batch { jobs: vec![item] }).await?.into_inner();
    let job_id = &accepted.jobs[0].job_id;
    let start = Instant::now();
    let job = loop {
        let job = client.get_job(job_id).await?.into_inner();
        if job.state == JobState::Completed {
            break job;
        }
        assert!(start.elapsed() < PATIENCE, "{job_id} is {}", job.state);
    };
    let left = job.result.ok_or("the job holds the report")?;
    assert_eq!(left.kernel_exec_result.correctness, Some(true));
    assert_eq!(client.get_job_state(job_id).await?.status, JobState::Completed);

    let times = result.runtime_stats.as_ref().ok_or("the report has times")?;
    Ok(times.median)
}

/// Every other kind of answer, and an error.
async fn the_rest(client: &client::Client, document: &Value) -> Outcome<()> {
    let compiled: CompileRequest = example(document, "/compile")?;
    assert!(client.compile(&compiled).await?.compiled);
    let run: EvaluateRequest = example(document, "/execute")?;
    assert!(!client.execute(None, None, None, None, &run).await?.outputs.is_empty());
    let plan: EvaluateRequest = example(document, "/profile/plan")?;
    client.plan_profile(&plan).await?;
    let kernels: CompareRequest = example(document, "/compare")?;
    assert_eq!(client.compare(None, None, None, None, &kernels).await?.candidates.len(), 1);
    let sweep: SweepRequest = example(document, "/sweep")?;
    assert!(!client.sweep(None, None, None, None, &sweep).await?.points.is_empty());
    let suite: GateRequest = example(document, "/gate")?;
    assert_eq!(client.run_gate(None, None, None, None, &suite).await?.cases.len(), 1);

    assert!(
        !client
            .list_jobs(None, None, None, None, None, None, None, None, None, None)
            .await?
            .jobs
            .is_empty()
    );
    assert!(client.stats().await?.job_stats.total_jobs > 0);
    assert!(!client.info().await?.devices.is_empty());
    client.history(None, None).await?;
    client.list_baselines().await?;
    client.devices().await?;
    client.cuda_info().await?;
    client.capabilities(None).await?;
    client.health().await?;

    let nothing: EvaluateRequest = serde_json::from_str(r#"{"kernel": {"kernel_type": "cuda"}}"#)?;
    match client.evaluate(None, None, None, None, &nothing).await {
        Err(client::Error::ErrorResponse(refused)) => {
            assert_eq!(refused.status().as_u16(), 400);
            assert!(!refused.validation_errors.is_empty(), "{refused:?}");
        }
        other => return Err(format!("a contract without a kernel: {other:?}").into()),
    }
    Ok(())
}
