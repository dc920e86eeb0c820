//! Answers of the gate, in the format that the caller requests.

use poem::http::{HeaderMap, header};
use poem::{IntoResponse, Response};
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiResponse, Enum};

use crate::blocking::run_blocking;
use crate::error::{ApiError, JSON};
use crate::response::accepted::Accepted;
use crate::response::accepted::AcceptedReply;
use crate::response::reply::JsonReply;
use crate::schema;
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::{FORMATS, GateReport};

/// Format of a gate report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "lowercase")]
pub(crate) enum GateFormat {
    /// Complete report in JSON.
    Json,
    /// JUnit XML.
    Junit,
    /// Markdown, for a comment on a pull request.
    Markdown,
    /// Bencher Metric Format.
    Bmf,
    /// `customSmallerIsBetter` of github-action-benchmark.
    Benchmark,
    /// Table with a row for each case and each count.
    Csv,
    /// HTML page with drawings of the intervals.
    Html,
}

/// Format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "lowercase")]
pub(crate) enum HistoryFormat {
    /// Series in JSON.
    Json,
    /// Drawing of the series.
    Svg,
}

const SVG: &str = "image/svg+xml";

/// Media types that choose a format.
const ACCEPTED: [(&str, GateFormat); 7] = [
    (JSON, GateFormat::Json),
    ("application/xml", GateFormat::Junit),
    ("text/xml", GateFormat::Junit),
    ("text/markdown", GateFormat::Markdown),
    ("text/csv", GateFormat::Csv),
    ("text/html", GateFormat::Html),
    ("*/*", GateFormat::Json),
];

/// Returns the media types in an `Accept` header, in the order of the header.
fn accepted(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::ACCEPT).iter();
    let types = values.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
    types.map(|accepted| accepted.split(';').next().unwrap_or_default().trim())
}

impl GateFormat {
    /// Returns the format in the query. If there is none, returns the format of the first known
    /// media type in `Accept`.
    pub(crate) fn wanted(format: Option<Self>, headers: &HeaderMap) -> Self {
        let known = |name: &str| {
            ACCEPTED.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
        };
        format.or_else(|| accepted(headers).find_map(known)).unwrap_or(Self::Json)
    }

    /// Returns the name of the file that the command line writes in this format, and its media
    /// type.
    fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => ("gate.json", JSON),
            Self::Junit => ("junit.xml", "application/xml; charset=utf-8"),
            Self::Markdown => ("comment.md", "text/markdown; charset=utf-8"),
            Self::Bmf => ("bmf.json", JSON),
            Self::Benchmark => ("benchmark.json", JSON),
            Self::Csv => ("gate.csv", "text/csv; charset=utf-8"),
            Self::Html => ("gate.html", "text/html; charset=utf-8"),
        }
    }
}

impl HistoryFormat {
    /// Returns the format in the query. If there is none, returns the format of the first known
    /// media type in `Accept`.
    pub(crate) fn wanted(format: Option<Self>, headers: &HeaderMap) -> Self {
        let known = |name: &str| match name {
            SVG => Some(Self::Svg),
            JSON | "*/*" => Some(Self::Json),
            _ => None,
        };
        format.or_else(|| accepted(headers).find_map(known)).unwrap_or(Self::Json)
    }
}

/// Answers of `POST /gate`.
pub(crate) enum GateReply {
    Report(JsonReply<GateReport>),
    Text(&'static str, String),
    Accepted(AcceptedReply),
}

impl GateReply {
    /// Writes the report in a format. This runs outside the async threads, because the measurements
    /// make the report long.
    pub(crate) async fn of(report: GateReport, format: GateFormat) -> Result<Self, ApiError> {
        run_blocking("gate", "writing the report", move || {
            if format == GateFormat::Json {
                return JsonReply::new(&report).map(Self::Report);
            }
            let (file, media_type) = format.file();
            let render = FORMATS.iter().find(|format| format.file == file);
            let text = render.map(|format| (format.render)(&report));
            match text {
                Some(Ok(text)) => Ok(Self::Text(media_type, text)),
                Some(Err(error)) => {
                    tracing::error!(%error, file, "a report cannot be written");
                    Err(ApiError::internal("gate", "the report cannot be written in this format"))
                }
                None => Err(ApiError::internal("gate", "the format has no writer")),
            }
        })
        .await?
    }
}

impl IntoResponse for GateReply {
    fn into_response(self) -> Response {
        match self {
            Self::Report(reply) => reply.into_response(),
            Self::Text(media_type, text) => file(media_type, text),
            Self::Accepted(accepted) => accepted.into_response(),
        }
    }
}

/// Returns a file that a browser may show. The file can neither run scripts nor send requests.
fn file(media_type: &'static str, text: String) -> Response {
    Response::builder()
        .content_type(media_type)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        )
        .body(text)
}

fn text(content_type: &'static str, description: &'static str) -> MetaMediaType {
    MetaMediaType {
        content_type,
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
            description: Some(description),
            ..MetaSchema::new("string")
        })),
    }
}

impl ApiResponse for GateReply {
    fn meta() -> MetaResponses {
        let report = MetaResponse {
            description: "Report of the run, with its verdict. The formats of the two benchmark services are JSON \
                          too; their schemas are not listed here.",
            status: Some(200),
            status_range: None,
            content: vec![
                MetaMediaType { content_type: JSON, schema: schema::reference::<GateReport>() },
                text("application/xml", "JUnit XML."),
                text("text/markdown", "Markdown, for a comment on a pull request."),
                text("text/csv", "Table with a row for each case and each count."),
                text("text/html", "HTML page with drawings of the intervals."),
            ],
            headers: vec![],
        };
        MetaResponses { responses: vec![report, AcceptedReply::described()] }
    }

    fn register(registry: &mut Registry) {
        schema::register::<GateReport>(registry);
        schema::register::<Accepted>(registry);
    }
}

/// Answers of `GET /history`.
pub(crate) enum HistoryReply {
    Series(JsonReply<HistoryAnswer>),
    Drawing(String),
}

impl HistoryReply {
    /// Returns the series in the given format.
    pub(crate) fn of(answer: &HistoryAnswer, format: HistoryFormat) -> Result<Self, ApiError> {
        Ok(match format {
            HistoryFormat::Json => Self::Series(JsonReply::new(answer)?),
            HistoryFormat::Svg => Self::Drawing(warpgauge_gate::history::svg(&answer.series)),
        })
    }
}

impl IntoResponse for HistoryReply {
    fn into_response(self) -> Response {
        match self {
            Self::Series(reply) => reply.into_response(),
            Self::Drawing(svg) => file(SVG, svg),
        }
    }
}

impl ApiResponse for HistoryReply {
    fn meta() -> MetaResponses {
        let answer = MetaResponse {
            description: "Series of the case. Empty for a case without results.",
            status: Some(200),
            status_range: None,
            content: vec![
                MetaMediaType { content_type: JSON, schema: schema::reference::<HistoryAnswer>() },
                text(SVG, "Drawing of the series, with confidence intervals and changes of level."),
            ],
            headers: vec![],
        };
        MetaResponses { responses: vec![answer] }
    }

    fn register(registry: &mut Registry) {
        schema::register::<HistoryAnswer>(registry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, header::HeaderValue::from_static(value))])
    }

    #[test]
    fn the_query_goes_before_the_accept_header() {
        use GateFormat::{Csv, Html, Json, Junit, Markdown};
        for (format, header, wanted) in [
            (None, "", Json),
            (None, "*/*", Json),
            (None, "text/html, */*", Html),
            (None, "application/xml;q=0.9", Junit),
            (None, "image/png, text/markdown", Markdown),
            (Some(Csv), "text/html", Csv),
        ] {
            assert_eq!(GateFormat::wanted(format, &accept(header)), wanted, "{header}");
        }
        assert_eq!(HistoryFormat::wanted(None, &accept(SVG)), HistoryFormat::Svg);
        assert_eq!(HistoryFormat::wanted(None, &accept("text/html")), HistoryFormat::Json);
    }

    #[test]
    fn every_format_has_a_writer() {
        for format in [
            GateFormat::Json,
            GateFormat::Junit,
            GateFormat::Markdown,
            GateFormat::Bmf,
            GateFormat::Benchmark,
            GateFormat::Csv,
            GateFormat::Html,
        ] {
            assert!(FORMATS.iter().any(|known| known.file == format.file().0), "{format:?}");
        }
    }
}
