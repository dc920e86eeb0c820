//! Resources of a job, identified by URIs: its report and its artifacts. The main type is [`Part`].

use rmcp::model::ResourceTemplate;

use super::backend::JobBackendError;
use warpgauge_service::ArtifactKind;

/// Prefix of every URI.
const JOBS: &str = "warpgauge://jobs/";

/// Maximum length of a job's id and of a kernel's name in a URI, bytes.
const MAX_PIECE_BYTES: usize = 256;

/// A part of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The report in JSON.
    Report,
    /// An artifact. In a comparison, it is the artifact of the named kernel.
    Artifact { kind: ArtifactKind, kernel: Option<String> },
}

impl Part {
    /// Returns the part with this name: `report`, or the name of an artifact.
    pub(crate) fn named(name: &str, kernel: Option<String>) -> Result<Self, JobBackendError> {
        if name == "report" {
            return Ok(Self::Report);
        }
        let kind = ArtifactKind::named(name).ok_or_else(|| {
            let known = ArtifactKind::ALL.map(ArtifactKind::name).join(", ");
            let name: String = name.chars().take(64).collect();
            let message =
                format!("read: a job has no part {name:?}; the parts are report, {known}");
            JobBackendError::at("read", "no_such_artifact", message)
        })?;
        Ok(Self::Artifact { kind, kernel })
    }

    /// Returns the media type of the content.
    pub(crate) fn media_type(&self) -> &'static str {
        match self {
            Self::Report => "application/json",
            Self::Artifact { kind, .. } => kind.media_type(),
        }
    }

    /// Returns the path in the HTTP API that returns the complete part.
    pub(crate) fn http_path(&self, job_id: &str) -> String {
        match self {
            Self::Report => format!("/jobs/{job_id}"),
            Self::Artifact { kind, .. } => format!("/jobs/{job_id}/artifacts/{}", kind.name()),
        }
    }
}

/// Returns the URI of a job's report.
pub(crate) fn report_uri(job_id: &str) -> String {
    format!("{JOBS}{job_id}/report")
}

/// Returns the URI of a job's artifact.
pub(crate) fn artifact_uri(job_id: &str, kind: ArtifactKind) -> String {
    format!("{JOBS}{job_id}/artifacts/{}", kind.name())
}

/// Parses a URI into a job's id and a part.
pub(crate) fn parse(uri: &str) -> Result<(String, Part), JobBackendError> {
    let unknown = || {
        let shown: String = uri.chars().take(128).collect();
        let message = format!(
            "there is no resource {shown:?}; the resources are {JOBS}{{job_id}}/report and \
             {JOBS}{{job_id}}/artifacts/{{name}}"
        );
        JobBackendError::new("not_found", message)
    };
    let (path, query) =
        uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
    let rest = path.strip_prefix(JOBS).ok_or_else(unknown)?;
    let kernel = match query {
        None => None,
        Some(query) => {
            let name = query.strip_prefix("kernel=").and_then(decoded).ok_or_else(unknown)?;
            Some(name)
        }
    };
    let pieces: Vec<&str> = rest.split('/').collect();
    let (job_id, part) = match pieces.as_slice() {
        [job_id, "report"] if kernel.is_none() => (*job_id, Part::Report),
        [job_id, "artifacts", name] => {
            let kind = ArtifactKind::named(name).ok_or_else(unknown)?;
            (*job_id, Part::Artifact { kind, kernel })
        }
        _ => return Err(unknown()),
    };
    if job_id.is_empty() || job_id.len() > MAX_PIECE_BYTES {
        return Err(unknown());
    }
    Ok((job_id.to_owned(), part))
}

/// Decodes percent escapes in a part of a URI. Returns `None` if an escape is invalid, or if the
/// text is too long.
fn decoded(text: &str) -> Option<String> {
    if text.len() > MAX_PIECE_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            u8::try_from(16 * high + low).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the templates of all resource URIs.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{JOBS}{{job_id}}/report"), "report")
            .with_title("Report of a job")
            .with_description(
                "State of the job and, once it has ended, its report as JSON; long lists and texts \
                 are truncated, and listed in `left_out`.",
            )
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{JOBS}{{job_id}}/artifacts/{{name}}{{?kernel}}"), "artifact")
            .with_title("Artifact of a job")
            .with_description(
                "ptx, sass, cubin, log (of the compiler), ttir, ttgir, llir, ncu-rep or nsys-rep; for a \
                 comparison, the one of the named kernel: `reference` or a candidate's name.",
            ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_name_what_they_were_made_for() {
        let id = "0192";
        assert_eq!(parse(&report_uri(id)), Ok((id.to_owned(), Part::Report)));
        let sass = |kernel: Option<&str>| Part::Artifact {
            kind: ArtifactKind::Sass,
            kernel: kernel.map(str::to_owned),
        };
        let uri = artifact_uri(id, ArtifactKind::Sass);
        assert_eq!(parse(&uri), Ok((id.to_owned(), sass(None))));
        let uri = format!("{uri}?kernel=a%20%C3%A4");
        assert_eq!(parse(&uri), Ok((id.to_owned(), sass(Some("a ä")))));
    }

    #[test]
    fn other_uris_are_refused() {
        let long = format!("{JOBS}{}/report", "x".repeat(300));
        for uri in [
            "",
            "file:///etc/passwd",
            "warpgauge://jobs/",
            "warpgauge://jobs//report",
            "warpgauge://jobs/1",
            "warpgauge://jobs/1/report?kernel=a",
            "warpgauge://jobs/1/artifacts/passwd",
            "warpgauge://jobs/1/artifacts/../report",
            "warpgauge://jobs/1/artifacts/sass?kernel=%zz",
            "warpgauge://jobs/1/artifacts/sass?other=1",
            long.as_str(),
        ] {
            assert!(parse(uri).is_err(), "{uri}");
        }
    }
}
