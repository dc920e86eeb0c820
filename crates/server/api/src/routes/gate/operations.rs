//! Handlers of the operations of the gate: runs, baselines and the history.

use poem::http::HeaderMap;
use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::{Path, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::{GateFormat, GateReply, HistoryFormat, HistoryReply};
use crate::blocking::run_blocking;
use crate::error::operation::{
    BaselineErrors, ContractErrors, KeyErrors, NamedBodyErrors, OperationError,
};
use crate::request::parsed_body::ParsedBody;
use crate::request::submission::SubmissionParams;
use crate::response::accepted::{AcceptedReply, form_without_report, yes};
use crate::response::reply::JsonReply;
use crate::routes::tags::Tag;
use warpgauge_gate::{Baseline, BaselineSummary, GateRequest, NewBaseline, Promotion};
use warpgauge_service::{Caller, HistoryQuery, JobRequest, Services};

/// Operations of the gate.
pub(crate) struct Gate {
    pub(crate) service: Services,
}

/// Stored baselines of the caller.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Baselines {
    /// Baselines, sorted by name.
    pub baselines: Vec<BaselineSummary>,
}

/// Result of removing a baseline.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRemoved {
    /// Name of the removed baseline.
    pub name: String,
}

/// Returns the default number of points of a history.
pub(crate) fn points() -> u32 {
    1_000
}

#[OpenApi]
impl Gate {
    /// Run the gate
    ///
    /// Compares every case of a suite with its baseline, interleaved on one device, and reports
    /// which cases are slower. The decision accounts for noise and for the number of cases. A case
    /// that seems slower is compared again in fresh processes. A regression is a result (200) with
    /// its verdict in the report, not an HTTP error. On the emulated device, exact counts decide.
    /// With `wait=false` the job is accepted at once, and `GET /jobs/{job_id}` returns the report.
    #[oai(path = "/gate", method = "post", operation_id = "run_gate", tag = "Tag::Gate")]
    async fn gate(
        &self,
        params: SubmissionParams,
        headers: &HeaderMap,
        /// Whether to wait for the report.
        #[oai(default = "yes")]
        wait: Query<bool>,
        /// Format of the report. Default: the format in `Accept`.
        format: Query<Option<GateFormat>>,
        /// Suite with its kernels, and the baseline.
        request: ParsedBody<GateRequest>,
    ) -> Result<GateReply, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        if !wait.0 {
            if format.0.is_some_and(|format| format != GateFormat::Json) {
                Err(form_without_report("format", "it"))?;
            }
            let request = JobRequest::Gate(Box::new(value));
            let accepted = AcceptedReply::of(&self.service, request, params.0).await?;
            return Ok(GateReply::Accepted(accepted));
        }
        let report = self.service.gate.gate(value, params.0).await?;
        drop(share);
        Ok(GateReply::of(report, GateFormat::wanted(format.0, headers)).await?)
    }

    /// Store a baseline
    ///
    /// Stores the code of a suite's cases under a name, and replaces an earlier baseline of that
    /// name. The server first compiles and runs each case once. Stored times do not affect a
    /// verdict: a run of the gate builds this code again and measures it next to the candidate. A
    /// baseline is valid for the device, driver and method with which it was stored. If any of them
    /// differs, the gate rejects the baseline and names the difference.
    #[oai(path = "/baselines", method = "post", operation_id = "put_baseline", tag = "Tag::Gate")]
    async fn put_baseline(
        &self,
        caller: Data<&Caller>,
        /// Name of the baseline, and its cases.
        request: ParsedBody<NewBaseline>,
    ) -> Result<JsonReply<BaselineSummary>, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        let stored = self.service.gate.put_baseline(value, &caller).await?;
        drop(share);
        Ok(JsonReply::new(&stored)?)
    }

    /// List baselines
    ///
    /// Returns the caller's baselines, sorted by name, without their code.
    #[oai(path = "/baselines", method = "get", operation_id = "list_baselines", tag = "Tag::Gate")]
    async fn baselines(
        &self,
        caller: Data<&Caller>,
    ) -> Result<JsonReply<Baselines>, OperationError<KeyErrors>> {
        let baselines = self.service.gate.baselines(&caller).await?;
        Ok(JsonReply::new(&Baselines { baselines })?)
    }

    /// Get a baseline
    ///
    /// Returns the baseline with the code of its cases.
    #[oai(
        path = "/baselines/:name",
        method = "get",
        operation_id = "get_baseline",
        tag = "Tag::Gate"
    )]
    async fn baseline(
        &self,
        caller: Data<&Caller>,
        /// Name of the baseline.
        name: Path<String>,
    ) -> Result<JsonReply<Baseline>, OperationError<BaselineErrors>> {
        let baseline = self.service.gate.baseline(&name, &caller).await?;
        // The code may be long.
        Ok(JsonReply::with_content(baseline, usize::MAX).await?)
    }

    /// Promote a candidate
    ///
    /// Makes the candidate of a gate job the baseline of this name, if the verdict of the job is
    /// `PASS`. The baseline is valid for the device, driver and method of that job.
    #[oai(
        path = "/baselines/:name/promote",
        method = "post",
        operation_id = "promote_baseline",
        tag = "Tag::Gate"
    )]
    async fn promote(
        &self,
        caller: Data<&Caller>,
        /// Name of the baseline.
        name: Path<String>,
        /// Job whose candidate becomes the baseline.
        request: ParsedBody<Promotion>,
    ) -> Result<JsonReply<BaselineSummary>, OperationError<NamedBodyErrors>> {
        let job_id = request.value.job_id;
        Ok(JsonReply::new(&self.service.gate.promote(&name, &job_id, &caller).await?)?)
    }

    /// Remove a baseline
    ///
    /// Removes the baseline with its code. Reports of earlier runs that used the baseline remain.
    #[oai(
        path = "/baselines/:name",
        method = "delete",
        operation_id = "remove_baseline",
        tag = "Tag::Gate"
    )]
    async fn remove_baseline(
        &self,
        caller: Data<&Caller>,
        /// Name of the baseline.
        name: Path<String>,
    ) -> Result<JsonReply<BaselineRemoved>, OperationError<BaselineErrors>> {
        self.service.gate.remove_baseline(&name, &caller).await?;
        Ok(JsonReply::new(&BaselineRemoved { name: name.0 })?)
    }

    /// Get the history
    ///
    /// Returns the results of a case over time, from evaluations and runs of the gate. There is one
    /// series for each device, driver, method and metric, with the points at which its level
    /// changed. E-divisive means (Matteson and James 2014) finds changes of times; for counts,
    /// every difference is a change. No verdict depends on a series. Browsers receive a page.
    #[oai(path = "/history", method = "get", operation_id = "history", tag = "Tag::Gate")]
    async fn history(
        &self,
        caller: Data<&Caller>,
        headers: &HeaderMap,
        /// Name of the case. Default: all cases.
        case: Query<Option<String>>,
        /// Maximum number of points, 1–20000. The newest points are returned.
        #[oai(default = "points", validator(minimum(value = "1"), maximum(value = "20000")))]
        limit: Query<u32>,
        /// Format: `json`, or a drawing as `svg`. Default: the format in `Accept`.
        format: Query<Option<HistoryFormat>>,
    ) -> Result<HistoryReply, OperationError<KeyErrors>> {
        let query = HistoryQuery { case: case.0, limit: limit.0 };
        let answer = self.service.gate.history(query, &caller).await?;
        let format = HistoryFormat::wanted(format.0, headers);
        let written = move || HistoryReply::of(&answer, format);
        Ok(run_blocking("history", "writing the answer", written).await??)
    }
}
