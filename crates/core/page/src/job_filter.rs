//! The filter of the list of jobs, as links and a form. The main type is [`ListFilter`].

use maud::{Markup, html};
use warpgauge_model::{JobKind, JobState};

use crate::document::Links;
use crate::text;

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
        let label = self.label.as_deref().map(|label| ("label", label));
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        text::query(states.chain(kind).chain(label).chain(cursor))
    }

    fn has_states(&self, states: &[JobState]) -> bool {
        self.states.len() == states.len() && states.iter().all(|state| self.states.contains(state))
    }

    /// Shows the links that change the filter, and the form for a label.
    pub(crate) fn bar(&self, links: &Links) -> Markup {
        let running = JobState::ALL.into_iter().filter(|state| !state.is_end());
        let running = running.collect::<Vec<_>>();
        let states = [("Any state", &[][..]), ("Running", &running), ("Failed", &FAILED)];
        let kinds = std::iter::once(None).chain(JobKind::ALL.into_iter().map(Some));
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
                        &Self { kind, ..self.clone() },
                        self.kind == kind,
                        links,
                    ))
                }
            }
            form.fields.row method="get" action=(links.to("")) {
                @for state in &self.states { input type="hidden" name="state" value=(state.name()); }
                @if let Some(kind) = self.kind { input type="hidden" name="kind" value=(kind.name()); }
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
    use warpgauge_job_views::JobList;

    const JOBS: &str = include_str!("../../../../openapi/examples/jobs.json");

    #[test]
    fn a_query_has_every_filter_and_nothing_else() {
        assert_eq!(ListFilter::default().query(None), "");
        let filter = ListFilter {
            states: vec![JobState::Failed, JobState::TimedOut],
            kind: Some(JobKind::Gate),
            label: Some("a&kind=b \u{202e}".to_owned()),
        };
        assert_eq!(
            filter.query(Some("c#d")),
            "?state=failed&state=timed_out&kind=gate&label=a%26kind%3Db%20%E2%80%AE&cursor=c%23d"
        );
    }

    #[test]
    fn links_keep_the_other_filters() {
        let links = Links { root: Some("./"), ..Links::none() };
        let filter = ListFilter {
            states: FAILED.to_vec(),
            kind: Some(JobKind::Sweep),
            label: Some("\"><script>".to_owned()),
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
        assert_eq!(html.matches("aria-current").count(), 2, "{html}");
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
        let page = Parsed::of(&html);
        assert!(page.text.contains("The page of a run has the decision of the gate."));
        let label = "label=%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%E2%80%AE%27%22%26";
        assert!(html.contains(&format!("href=\"./?kind=gate&amp;{label}")), "{html}");
        let cursor = jobs.next_cursor.take().unwrap();
        assert!(html.contains(&format!("&amp;cursor={cursor}\" rel=\"next\"")), "{html}");
        // The browser reloads the address that it has, with its filter.
        assert!(shown(&jobs, false).contains("<meta http-equiv=\"refresh\" content=\"3\">"));
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
