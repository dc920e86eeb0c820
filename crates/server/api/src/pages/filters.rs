//! Reads the query parameters of pages with lists. The main type is [`Filters`].

use poem_openapi::types::ParseFromParameter;

use crate::error::ApiError;
use crate::middleware::query::check_names;
use crate::routes::gate::operations::points;
use crate::routes::gate::reply::HistoryFormat;
use warpgauge_gate::SuiteVerdict;
use warpgauge_model::{FailureCode, JobKind, JobState, nearest};
use warpgauge_page::ListFilter;
use warpgauge_report::KernelVerdict;
use warpgauge_service::{HistoryQuery, MAX_HISTORY};

/// Maximum length of a name or value that an error quotes, characters.
const MAX_QUOTED: usize = 64;

/// Query parameters of a page, all of which the page knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filters<'q>(&'q [(String, String)]);

impl<'q> Filters<'q> {
    /// Rejects parameters that the page at this path does not know. `known` contains the names, and
    /// whether each may be repeated.
    pub(super) fn new(
        path: &str,
        query: &'q [(String, String)],
        known: &[(&str, bool)],
    ) -> Result<Self, ApiError> {
        check_names(query, known, |name| {
            let what = format!("the page {path} has no parameter `{}`", quoted(name));
            let message = with_known(&what, name, known.iter().map(|(known, _)| *known).collect());
            ApiError::field(&quoted(name), FailureCode::UnknownParameter, message)
        })?;
        Ok(Self(query))
    }

    /// Returns the values of a parameter. Forms send empty fields, so an empty value is none.
    fn all(self, name: &str) -> impl Iterator<Item = &'q str> {
        let own = self.0.iter().filter(move |(known, _)| known == name);
        own.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn one(self, name: &str) -> Option<&'q str> {
        self.all(name).next()
    }
}

fn quoted(text: &str) -> String {
    text.chars().take(MAX_QUOTED).collect()
}

/// Adds the known words to a message, and the one that is probably meant.
fn with_known(what: &str, given: &str, known: Vec<&str>) -> String {
    let near = nearest(given, known.iter().copied());
    let meant = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    let names = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("{what}{meant}; known: {names}")
}

/// Returns the member of `all` with this name.
fn named<T: Copy>(
    parameter: &str,
    given: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, ApiError> {
    all.iter()
        .copied()
        .find(|one| name(*one) == given)
        .ok_or_else(|| unknown(parameter, given, all.iter().map(|one| name(*one)).collect()))
}

/// Returns the error for a value that a parameter cannot have.
fn unknown(parameter: &str, given: &str, known: Vec<&str>) -> ApiError {
    let what = format!("{parameter}: there is no {parameter} `{}`", quoted(given));
    let message = with_known(&what, given, known);
    ApiError::field(parameter, FailureCode::InvalidParameter, message)
}

/// Parameters of the list of jobs, and whether each may be repeated.
pub(super) const LIST: [(&str, bool); 6] = [
    ("state", true),
    ("kind", false),
    ("verdict", false),
    ("decision", false),
    ("label", false),
    ("cursor", false),
];

/// Reads the filter of the list of jobs.
pub(super) fn list_filter(filters: Filters<'_>) -> Result<ListFilter, ApiError> {
    let mut states = Vec::new();
    for given in filters.all("state") {
        let state = named("state", given, &JobState::ALL, JobState::name)?;
        // Each state of a query is a separate query of the store.
        if !states.contains(&state) {
            states.push(state);
        }
    }
    let kind = filters.one("kind").map(|kind| named("kind", kind, &JobKind::ALL, JobKind::name));
    let verdict = filters
        .one("verdict")
        .map(|given| named("verdict", given, &KernelVerdict::ALL, KernelVerdict::name));
    let decision = filters
        .one("decision")
        .map(|given| named("decision", given, &SuiteVerdict::ALL, SuiteVerdict::name));
    Ok(ListFilter {
        states,
        kind: kind.transpose()?,
        verdict: verdict.transpose()?,
        decision: decision.transpose()?,
        label: filters.one("label").map(str::to_owned),
    })
}

/// Reads the query of the history, the limit if one is given, and the format if one is given.
pub(super) fn history_query(
    filters: Filters<'_>,
) -> Result<(HistoryQuery, Option<u32>, Option<HistoryFormat>), ApiError> {
    let limit = |given: &str| {
        let number = given.parse::<u32>().ok();
        number.filter(|number| (1..=MAX_HISTORY).contains(number)).ok_or_else(|| {
            let message = format!("limit: expected 1 to {MAX_HISTORY}, got `{}`", quoted(given));
            ApiError::field("limit", FailureCode::InvalidParameter, message)
        })
    };
    let format = filters.one("format").map(|given| {
        HistoryFormat::parse_from_parameter(given)
            .map_err(|_| unknown("format", given, ["json", "svg"].to_vec()))
    });
    let limit = filters.one("limit").map(limit).transpose()?;
    let case = filters.one("case").map(str::to_owned);
    Ok((HistoryQuery { case, limit: limit.unwrap_or_else(points) }, limit, format.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn filter(pairs: &[(&str, &str)]) -> Result<ListFilter, String> {
        let query = query(pairs);
        let filters = Filters::new("/", &query, &LIST);
        let filter = filters.and_then(list_filter);
        filter.map_err(|error| error.body().error.clone())
    }

    #[test]
    fn filters_are_read_and_empty_fields_are_none() {
        assert_eq!(
            filter(&[("label", ""), ("kind", ""), ("state", "")]),
            Ok(ListFilter::default())
        );
        let read = filter(&[
            ("state", "timed_out"),
            ("kind", "gate"),
            ("state", "failed"),
            ("state", "failed"),
            ("verdict", "not_checked"),
            ("decision", "REGRESSION"),
            ("label", "a b"),
        ]);
        let read = read.unwrap();
        assert_eq!(read.states, [JobState::TimedOut, JobState::Failed]);
        assert_eq!((read.kind, read.label.as_deref()), (Some(JobKind::Gate), Some("a b")));
        let verdicts = (read.verdict, read.decision);
        assert_eq!(verdicts, (Some(KernelVerdict::NotChecked), Some(SuiteVerdict::Regression)));
    }

    #[test]
    fn unknown_names_and_values_are_errors_with_what_is_known() {
        for (pairs, part) in [
            (&[("state", "done")][..], "state: there is no state `done`; known: submitted, "),
            (&[("kind", "gates")], "`gates` (did you mean `gate`?); known: evaluate, "),
            (&[("verdict", "corect")], "`corect` (did you mean `correct`?); known: correct, "),
            (&[("decision", "FAIL")], "no decision `FAIL`; known: PASS, INCONCLUSIVE, ERROR, "),
            (&[("verdict", "weak"), ("verdict", "wrong")], "verdict: given several times"),
            (&[("knid", "gate")], "no parameter `knid` (did you mean `kind`?); known: state, kind"),
            (&[("kind", "gate"), ("kind", "sweep")], "kind: given several times"),
        ] {
            let error = filter(pairs).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let long = "ä".repeat(5_000);
        for pairs in [[("kind", long.as_str())], [(long.as_str(), "")]] {
            assert!(filter(&pairs).unwrap_err().len() < 400);
        }
    }

    #[test]
    fn a_limit_is_in_its_range() {
        let read = |limit: &str| {
            let query = query(&[("limit", limit)]);
            let read =
                history_query(Filters::new("/history", &query, &[("limit", false)]).unwrap());
            read.map(|(query, given, _)| (query.limit, given)).ok()
        };
        assert_eq!(read(""), Some((1_000, None)));
        assert_eq!(read("20000"), Some((20_000, Some(20_000))));
        for wrong in ["0", "20001", "-1", "many"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
