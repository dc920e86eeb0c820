//! A self-contained HTML page, which loads nothing and contains no script.

use super::{CaseReport, GateReport, plot, words};
use warpgauge_svg::xml::escape;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8886;--bad:#c62828;--good:#2e7d32;--dim:#888}\
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%}\
th,td{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}\
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}\
.regression,.invalid,.error,.missing{color:var(--bad)}.improved{color:var(--good)}\
.inconclusive{color:var(--dim)}.new{font-weight:bold}svg{max-width:100%;height:auto}\
svg .grid{stroke:var(--line)}svg .zero{stroke:currentColor}svg .margin{fill:#8883}\
svg .interval{stroke:currentColor;stroke-width:2.5}svg .point{fill:currentColor}\
svg .break{stroke:currentColor;stroke-width:1.5}\
svg text{font:12px system-ui,sans-serif;fill:currentColor}";

/// Content security policy of the page, which needs only its own style.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Formats the report as a page.
pub(super) fn html(report: &GateReport) -> String {
    let verdict = report.verdict.name();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n<meta name=\"viewport\" content=\"width=device-width\"/>\n\
         <title>{verdict}: {suite}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1 class=\"{class}\">{verdict}</h1>\n<p>{totals} on {device}, against {baseline}. \
         {statement}</p>\n",
        suite = escape(&report.suite),
        class = verdict.to_lowercase(),
        totals = words::totals(report),
        device = escape(&words::device(report)),
        baseline = escape(&words::baseline(report)),
        statement = escape(&report.statement),
    );
    if let Some(drawn) = plot::intervals(&report.cases) {
        page.push_str(&drawn.svg);
        page.push_str(&format!("<p>{}</p>\n", drawn.caption));
    }
    page.push_str(
        "<table>\n<thead><tr><th>case</th><th>outcome</th><th>change</th><th>detectable \
         slowdown</th><th>why</th></tr></thead>\n<tbody>\n",
    );
    for case in &report.cases {
        push_row(&mut page, case);
    }
    page.push_str("</tbody>\n</table>\n");
    if !report.notes.is_empty() {
        page.push_str("<ul>\n");
        for note in &report.notes {
            page.push_str(&format!("<li>{}</li>\n", escape(note)));
        }
        page.push_str("</ul>\n");
    }
    if let Some(url) = report.page.as_deref().filter(|url| words::is_web(url)) {
        page.push_str(&format!("<p><a href=\"{}\">Page of this run</a></p>\n", escape(url)));
    }
    page.push_str(&format!(
        "<p>warpgauge {}, {:.1} s.</p>\n</body>\n</html>\n",
        escape(&report.warpgauge_version),
        report.duration_s
    ));
    page
}

fn push_row(page: &mut String, case: &CaseReport) {
    let outcome = words::outcome(case.outcome);
    let advisory = if case.policy.advisory { " (advisory)" } else { "" };
    page.push_str(&format!(
        "<tr><td>{}</td><td class=\"{}\">{outcome}{advisory}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td>{}</td></tr>\n",
        escape(&case.name),
        outcome.to_lowercase(),
        escape(&words::measured(case)),
        words::detectable(case).unwrap_or_default(),
        escape(&words::why(case)),
    ));
}
