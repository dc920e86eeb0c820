//! The filter of the list of jobs, as links and a form. The main type is [`ListFilter`].

use maud::{Markup, html};
use warpgauge_gate::SuiteVerdict;
use warpgauge_model::{JobKind, JobState};
use warpgauge_report::KernelVerdict;

use crate::document::Links;
use crate::{gate, text};

/// The maximum number of characters of a label in the form. A stored label has at most 255 bytes.
const LABEL: usize = 255;

/// The states of jobs that ended without a report, other than cancelled ones.
const FAILED: [JobState; 2] = [JobState::Failed, JobState::TimedOut];

/// A filter of the list of jobs. Its fields are parameters of `GET /jobs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// The states of the jobs. Empty means any state.
    pub states: Vec<JobState>,
    pub kind: Option<JobKind>,
    pub verdict: Option<KernelVerdict>,
    pub decision: Option<SuiteVerdict>,
    pub label: Option<String>,
}

impl ListFilter {
    /// Returns whether every job matches.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the query string for this filter and a page of the list. It is empty for the first
    /// page of all jobs.
    pub(crate) fn query(&self, cursor: Option<&str>) -> String {
        let states = self.states.iter().map(|state| ("state", state.name()));
        let kind = self.kind.map(|kind| ("kind", kind.name()));
        let verdict = self.verdict.map(|verdict| ("verdict", verdict.name()));
        let decision = self.decision.map(|decision| ("decision", decision.name()));
        let label = self.label.as_deref().map(|label| ("label", label));
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        text::query(states.chain(kind).chain(verdict).chain(decision).chain(label).chain(cursor))
    }

    fn has_states(&self, states: &[JobState]) -> bool {
        self.states.len() == states.len() && states.iter().all(|state| self.states.contains(state))
    }

    /// Returns this filter for another kind. Only gates have a decision.
    fn of_kind(&self, kind: Option<JobKind>) -> Self {
        let decision = self.decision.filter(|_| kind.is_none_or(|kind| kind == JobKind::Gate));
        Self { kind, decision, ..self.clone() }
    }

    /// Shows the links that change the filter, and the form for a label.
    pub(crate) fn bar(&self, links: &Links) -> Markup {
        let running = JobState::ALL.into_iter().filter(|state| !state.is_end());
        let running = running.collect::<Vec<_>>();
        let states = [("Any state", &[][..]), ("Running", &running), ("Failed", &FAILED)];
        let kinds = std::iter::once(None).chain(JobKind::ALL.into_iter().map(Some));
        let is_gate = self.kind == Some(JobKind::Gate);
        let verdicts = std::iter::once(None).chain(KernelVerdict::ALL.into_iter().map(Some));
        let decisions = std::iter::once(None).chain(SuiteVerdict::ALL.into_iter().map(Some));
        html! {
            nav.filters aria-label="State" {
                @for (name, states) in states {
                    (choice(name, &Self { states: states.to_vec(), ..self.clone() }, self.has_states(states), links))
                }
            }
            nav.filters aria-label="Kind" {
                @for kind in kinds {
                    (choice(
                        kind.map_or("Any kind", JobKind::name),
                        &self.of_kind(kind),
                        self.kind == kind,
                        links,
                    ))
                }
            }
            @if !is_gate || self.verdict.is_some() {
                nav.filters aria-label="Verdict" {
                    @for verdict in verdicts {
                        (choice(
                            &verdict.map_or("Any verdict".to_owned(), |one| one.words().to_lowercase()),
                            &Self { verdict, ..self.clone() },
                            self.verdict == verdict,
                            links,
                        ))
                    }
                }
            }
            @if is_gate || self.decision.is_some() {
                nav.filters aria-label="Decision" {
                    @for decision in decisions {
                        (choice(
                            decision.map_or("Any decision", |one| gate::decision(one).1),
                            &Self { decision, ..self.clone() },
                            self.decision == decision,
                            links,
                        ))
                    }
                }
            }
            form.fields.row method="get" action=(links.to("")) {
                @for state in &self.states { input type="hidden" name="state" value=(state.name()); }
                @if let Some(kind) = self.kind { input type="hidden" name="kind" value=(kind.name()); }
                @if let Some(verdict) = self.verdict { input type="hidden" name="verdict" value=(verdict.name()); }
                @if let Some(decision) = self.decision { input type="hidden" name="decision" value=(decision.name()); }
                label for="label" { "Label" }
                input #label type="search" name="label" maxlength=(LABEL)
                    value=(text::shown(self.label.as_deref().unwrap_or_default(), LABEL));
                button { "Filter" }
                @if !self.is_empty() { a href=(links.to("")) { "All jobs" } }
            }
        }
    }

    /// Describes the filter in words, with the states that no link names.
    pub(crate) fn words(&self) -> Markup {
        let states = self.states.iter().map(|state| state.name().replace('_', " "));
        let states = states.collect::<Vec<_>>().join(", ");
        html! {
            @if !states.is_empty() { " State: " (states) "." }
            @if let Some(kind) = self.kind { " Kind: " (kind.name()) "." }
            @if let Some(verdict) = self.verdict { " Verdict: " (verdict.words().to_lowercase()) "." }
            @if let Some(decision) = self.decision { " Decision: " (gate::decision(decision).1) "." }
            @if let Some(label) = &self.label { " Label: " (text::code(label)) "." }
        }
    }
}

fn choice(name: &str, filter: &ListFilter, is_chosen: bool, links: &Links) -> Markup {
    let address = links.to(&filter.query(None));
    html! { a href=(address) aria-current=[is_chosen.then_some("true")] { (name) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{HOSTILE, Parsed};
    use crate::{Listed, list};
    use warpgauge_gate::GateOutcome;
    use warpgauge_gate::report::WorstCase;
    use warpgauge_job_views::JobList;

    const JOBS: &str = include_str!("../../../../openapi/examples/jobs.json");

    #[test]
    fn a_query_has_every_filter_and_nothing_else() {
        assert_eq!(ListFilter::default().query(None), "");
        let filter = ListFilter {
            states: vec![JobState::Failed, JobState::TimedOut],
            kind: Some(JobKind::Gate),
            verdict: Some(KernelVerdict::NotChecked),
            decision: Some(SuiteVerdict::Pass),
            label: Some("a&kind=b \u{202e}".to_owned()),
        };
        assert_eq!(
            filter.query(Some("c#d")),
            "?state=failed&state=timed_out&kind=gate&verdict=not_checked&decision=PASS&label=a%26kind%3Db%20%E2%80%AE&cursor=c%23d"
        );
    }

    #[test]
    fn links_keep_the_other_filters() {
        let links = Links { root: Some("./"), ..Links::none() };
        let filter = ListFilter {
            states: FAILED.to_vec(),
            kind: Some(JobKind::Sweep),
            label: Some("\"><script>".to_owned()),
            ..ListFilter::default()
        };
        let html = filter.bar(&links).into_string();
        let label = "label=%22%3E%3Cscript%3E";
        for link in [
            format!("<a href=\"./?kind=sweep&amp;{label}\">Any state"),
            format!(
                "<a href=\"./?state=failed&amp;state=timed_out&amp;kind=sweep&amp;{label}\" \
                 aria-current=\"true\">Failed"
            ),
            format!(
                "<a href=\"./?state=failed&amp;state=timed_out&amp;kind=gate&amp;{label}\">gate"
            ),
            "name=\"state\" value=\"timed_out\"".to_owned(),
            "value=\"&quot;&gt;&lt;script&gt;\"".to_owned(),
        ] {
            assert!(html.contains(&link), "{link}: {html}");
        }
        // State, kind and verdict.
        assert_eq!(html.matches("aria-current").count(), 3, "{html}");
    }

    #[test]
    fn gates_are_filtered_by_their_decision_and_others_by_their_verdict() {
        let links = Links { root: Some("./"), ..Links::none() };
        let bar = |filter: &ListFilter| filter.bar(&links).into_string();
        let html = bar(&ListFilter::default());
        assert!(html.contains("<a href=\"./?verdict=not_compiled\">not compiled</a>"), "{html}");
        assert!(!html.contains("aria-label=\"Decision\""), "{html}");
        let gates = ListFilter { kind: Some(JobKind::Gate), ..ListFilter::default() };
        let html = bar(&gates);
        assert!(html.contains("?kind=gate&amp;decision=REGRESSION\">regression</a>"), "{html}");
        assert!(!html.contains("aria-label=\"Verdict\""), "{html}");
        let failed = ListFilter {
            decision: Some(SuiteVerdict::Invalid),
            verdict: Some(KernelVerdict::Wrong),
            ..gates
        };
        let html = bar(&failed);
        for part in [
            "<a href=\"./?kind=gate&amp;verdict=wrong\">Any decision</a>",
            "<a href=\"./?kind=gate&amp;decision=INVALID\">Any verdict</a>",
            // No other kind has a decision.
            "<a href=\"./?kind=sweep&amp;verdict=wrong\">sweep</a>",
            "name=\"verdict\" value=\"wrong\"",
            "name=\"decision\" value=\"INVALID\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        let words = failed.words().into_string();
        assert_eq!(words, " Kind: gate. Verdict: wrong. Decision: invalid.");
    }

    #[test]
    fn a_gate_is_listed_with_its_decision_and_its_worst_case() {
        let mut jobs: JobList = serde_json::from_str(JOBS).unwrap();
        let job = &mut jobs.jobs[1];
        job.kind = JobKind::Gate;
        (job.verdict, job.decision) =
            (Some(KernelVerdict::Correct), Some(SuiteVerdict::Regression));
        job.worst_case = Some(WorstCase {
            name: HOSTILE.to_owned(),
            outcome: GateOutcome::Regression,
            metric: "time".to_owned(),
            ratio: Some(1.03),
            ci_low: Some(1.02),
            ci_high: Some(1.04),
            margin: 0.005,
        });
        let links = Links { root: Some("./"), ..Links::none() };
        let filter = ListFilter::default();
        let html = list(Listed { jobs: &jobs, filter: &filter, is_later: false }, &links);
        assert!(html.contains("<span class=\"tag bad\">regression</span>"), "{html}");
        assert!(!html.contains("<span class=\"tag good\">correct</span>"), "{html}");
        let text = Parsed::of(&html).text;
        assert!(text.contains("+3.00 % [+2.00 %, +4.00 %], margin 0.50 %"), "{text}");
        assert!(!html.contains("<img"), "{html}");
        // A job of an earlier version has a verdict only.
        jobs.jobs[1].decision = None;
        let html = list(Listed { jobs: &jobs, filter: &filter, is_later: false }, &links);
        assert!(html.contains("<span class=\"tag good\">correct</span>"), "{html}");
    }

    #[test]
    fn a_filtered_list_keeps_its_filter_and_names_it() {
        let mut jobs: JobList = serde_json::from_str(JOBS).unwrap();
        let links = Links { root: Some("./"), ..Links::none() };
        let kind = Some(JobKind::Gate);
        let filter = ListFilter { kind, label: Some(HOSTILE.to_owned()), ..ListFilter::default() };
        let shown =
            |jobs: &JobList, is_later| list(Listed { jobs, filter: &filter, is_later }, &links);
        let html = shown(&jobs, true);
        let label = "label=%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%E2%80%AE%27%22%26";
        assert!(html.contains(&format!("href=\"./?kind=gate&amp;{label}")), "{html}");
        let cursor = jobs.next_cursor.take().unwrap();
        assert!(html.contains(&format!("&amp;cursor={cursor}\" rel=\"next\"")), "{html}");
        // The browser reloads the address that it has, with its filter.
        assert!(
            shown(&jobs, false)
                .contains("<noscript><meta http-equiv=\"refresh\" content=\"3\"></noscript>")
        );
        jobs.jobs.clear();
        let html = shown(&jobs, false);
        let text = Parsed::of(&html).text;
        assert!(
            text.contains("No job matches the filter. Kind: gate. Label: <img src=x"),
            "{text}"
        );
        assert!(!html.contains('\u{202e}') && !text.contains("There are no jobs yet"), "{html}");
    }
}
