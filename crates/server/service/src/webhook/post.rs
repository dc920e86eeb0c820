//! One attempt to deliver a webhook message.

use std::time::Duration;

use ureq::http::Uri;

use super::policy::WebhookRefusal;
use super::signature::{SIGNATURE_HEADER, signature};

/// Time limit for an attempt, from the name look-up to the end of the response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of a response that are read. The content is ignored.
const MAX_ANSWER_BYTES: u64 = 4 << 10;

/// Reasons why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The receiver did not accept the message.
    #[error("the receiver answered {0}")]
    Status(u16),
    /// The receiver cannot be reached, or did not respond.
    #[error("no response from the receiver: {0}")]
    Transport(#[from] Box<ureq::Error>),
    /// The operator no longer allows the URL.
    #[error(transparent)]
    Refused(#[from] WebhookRefusal),
    /// The job was removed in the meantime.
    #[error("the job is no longer stored")]
    NoJob,
    /// An internal error.
    #[error("the attempt failed: {0}")]
    Internal(String),
}

impl Failed {
    /// Returns whether a retry may succeed.
    pub(super) fn may_pass(&self) -> bool {
        !matches!(self, Failed::Refused(_) | Failed::NoJob)
    }
}

/// Posts a body, signed with the current time. Any status from 200 to 299 is a success. Redirects
/// are not followed, because they could lead to any host. The call blocks for at most [`TIMEOUT`].
pub(super) fn post(url: &str, secret: &str, unix_s: u64, body: &[u8]) -> Result<(), Failed> {
    let response = agent(url)
        .post(url)
        .header("Content-Type", "application/json")
        .header(SIGNATURE_HEADER, signature(secret, unix_s, body))
        .send(body)
        .map_err(Box::new)?;
    let status = response.status().as_u16();
    // The body is read so that the connection closes properly. An error here has no effect.
    let _ = response.into_body().into_with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
    if (200..300).contains(&status) { Ok(()) } else { Err(Failed::Status(status)) }
}

fn agent(url: &str) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(TIMEOUT))
        .max_response_header_size(16 << 10)
        .user_agent(concat!("warpgauge/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        // A proxy cannot reach this machine's loopback address.
        config = config.proxy(None);
    }
    config.build().new_agent()
}

fn is_loopback(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}
