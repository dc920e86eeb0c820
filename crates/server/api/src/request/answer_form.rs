//! The form of a report. Fields of the CUDA Evaluation Server that have no value contain
//! placeholders, or are absent ([`AnswerForm`]).

use std::sync::LazyLock;

use poem::http::HeaderMap;
use poem::{Addr, FromRequest, Request, RequestBody};

use warpgauge_report::{CompareResponse, EvaluateResponse, Pod};

/// Header of RFC 7240 with which a client can request a report without placeholders.
const PREFER: &str = "prefer";
const MINIMAL: &str = "return=minimal";

/// Name of this machine.
static HOST: LazyLock<String> = LazyLock::new(|| {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
});

/// The form of the report that a request prefers.
pub(crate) enum AnswerForm {
    /// Reports contain placeholders, and the name of the machine that answers.
    Full(Pod),
    /// Fields without a value are null or absent.
    Minimal,
}

impl<'a> FromRequest<'a> for AnswerForm {
    async fn from_request(request: &'a Request, _: &mut RequestBody) -> poem::Result<Self> {
        if wants_minimal(request.headers()) {
            return Ok(Self::Minimal);
        }
        let ip = match &request.local_addr().0 {
            Addr::SocketAddr(address) => address.ip().to_canonical().to_string(),
            Addr::Unix(_) | Addr::Custom(..) => String::new(),
        };
        Ok(Self::Full(Pod { name: HOST.clone(), ip }))
    }
}

fn wants_minimal(headers: &HeaderMap) -> bool {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let mut preferences = values.flat_map(|value| value.split([',', ';']));
    preferences.any(|preference| preference.trim().eq_ignore_ascii_case(MINIMAL))
}

/// A report with fields of the CUDA Evaluation Server.
pub(crate) trait HasPlaceholders: Sized {
    /// Returns the report in this form.
    fn in_form(self, form: AnswerForm) -> Self;
}

impl HasPlaceholders for EvaluateResponse {
    fn in_form(mut self, form: AnswerForm) -> Self {
        if let AnswerForm::Full(pod) = form {
            self.add_placeholders(pod);
        }
        self
    }
}

impl HasPlaceholders for CompareResponse {
    fn in_form(mut self, form: AnswerForm) -> Self {
        if let AnswerForm::Full(pod) = form {
            self.add_placeholders(pod);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preference_is_one_of_several() {
        for (value, minimal) in [
            ("return=minimal", true),
            ("respond-async, Return=Minimal; wait=10", true),
            ("return=representation", false),
            ("return=minimally", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(PREFER, value.parse().unwrap());
            assert_eq!(wants_minimal(&headers), minimal, "{value}");
        }
        assert!(!wants_minimal(&HeaderMap::new()));
    }
}
