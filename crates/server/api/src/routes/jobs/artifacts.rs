//! Answers with artifacts of jobs.

use poem::http::{HeaderValue, header};
use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};

use crate::response::reply::BodyLength;
use warpgauge_job_views::JobView;
use warpgauge_metrics::{Caption, roofline_svg};
use warpgauge_service::{ArtifactContent, ArtifactKind, ServiceError};

const SVG: &str = "image/svg+xml";

/// The content of an artifact.
pub(crate) struct ArtifactReply(pub(crate) ArtifactContent);

/// Returns the kind of artifact to which a path refers.
pub(crate) fn kind(name: &str, job_id: &str) -> Result<ArtifactKind, ServiceError> {
    ArtifactKind::named(name).ok_or_else(|| {
        let known = ArtifactKind::ALL.map(ArtifactKind::name).join(", ");
        let name: String = name.chars().take(64).collect();
        ServiceError::NoArtifact {
            what: format!("{name:?} of job {job_id}"),
            reason: format!("the artifacts are {known}"),
        }
    })
}

impl IntoResponse for ArtifactReply {
    fn into_response(self) -> Response {
        let ArtifactContent { kind, file_name, content } = self.0;
        let mut response = Response::builder().content_type(kind.media_type()).finish();
        response.set_data(BodyLength(content.len()));
        let headers = response.headers_mut();
        // A browser must not show content of a caller's kernel as a page of this server.
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let disposition = format!("attachment; filename=\"{file_name}\"");
        if let Ok(value) = HeaderValue::from_str(&disposition) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        response.set_body(content);
        response
    }
}

fn text(format: Option<&'static str>, description: &'static str) -> MetaSchemaRef {
    MetaSchemaRef::Inline(Box::new(MetaSchema {
        description: Some(description),
        ..match format {
            Some(format) => MetaSchema::new_with_format("string", format),
            None => MetaSchema::new("string"),
        }
    }))
}

fn found(description: &'static str, content: Vec<MetaMediaType>) -> MetaResponses {
    MetaResponses {
        responses: vec![MetaResponse {
            description,
            status: Some(200),
            status_range: None,
            content,
            headers: vec![],
        }],
    }
}

impl ApiResponse for ArtifactReply {
    fn meta() -> MetaResponses {
        let content = vec![
            MetaMediaType {
                content_type: "application/octet-stream",
                schema: text(Some("binary"), "`cubin`, `ncu-rep`, `nsys-rep`."),
            },
            MetaMediaType {
                content_type: "text/plain",
                schema: text(None, "`ptx`, `sass`, `log`, `ttir`, `ttgir`, `llir`, in UTF-8."),
            },
        ];
        found("Content of the artifact.", content)
    }

    fn register(_: &mut Registry) {}
}

/// A roofline as an SVG picture.
pub(crate) struct RooflineReply(String);

impl RooflineReply {
    /// Returns the roofline of a job's kernel.
    pub(crate) fn of(job: &JobView) -> Result<Self, ServiceError> {
        let absent = |reason: &str| ServiceError::NoArtifact {
            what: format!("roofline of job {}", job.job_id),
            reason: reason.to_owned(),
        };
        if job.sweep.is_some() {
            return Err(absent(
                "a sweep has no roofline; evaluate a point's contract with `profile`",
            ));
        }
        let report = job.result.as_ref().ok_or_else(|| {
            absent(job.error.as_deref().unwrap_or("the job has not ended; retry after its end"))
        })?;
        let metadata = &report.kernel_exec_result.metadata;
        let Some(metrics) = &metadata.device_metrics else {
            let reason = report.profile.as_ref().and_then(|profile| profile.reason.as_deref());
            return Err(absent(reason.unwrap_or(
                "the request asked for no device metrics; evaluate with `profile: {}`",
            )));
        };
        let roofline = metrics.roofline.as_ref().ok_or_else(|| {
            absent("the metrics include neither operations nor bytes; request more metrics")
        })?;
        if roofline.time.is_none() {
            return Err(absent(
                "a roofline shows rates, and the launch has no time, as on the emulated \
                 device; the report has the intensities (`device_metrics.roofline`)",
            ));
        }
        let caption = Caption {
            kernel: metadata.kernel_name.as_deref().unwrap_or(&metrics.kernel),
            device: report.device.as_ref().map_or("", |device| &device.name),
            tool: &metrics.tool,
        };
        Ok(Self(roofline_svg(roofline, caption)))
    }
}

impl IntoResponse for RooflineReply {
    fn into_response(self) -> Response {
        let mut response = Response::builder().content_type(SVG).finish();
        response.set_data(BodyLength(self.0.len()));
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // The picture needs only its style. The policy disables any other content.
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
        );
        response.set_body(self.0);
        response
    }
}

impl ApiResponse for RooflineReply {
    fn meta() -> MetaResponses {
        let schema = text(None, "Self-contained SVG document, for light and dark backgrounds.");
        found("Drawing of the roofline.", vec![MetaMediaType { content_type: SVG, schema }])
    }

    fn register(_: &mut Registry) {}
}
