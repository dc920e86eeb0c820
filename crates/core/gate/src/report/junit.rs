//! JUnit XML for CI systems: one suite, with one test case per case.

use super::{CaseReport, GateReport, words};
use crate::GateOutcome;
use warpgauge_svg::xml::escape;

/// Formats the report as JUnit XML. A case that fails the suite is a `failure`, or an `error` if it
/// could not be measured. Any other case passes or is `skipped`, whatever its outcome. Thus the
/// JUnit report fails exactly if the gate fails.
pub(super) fn junit(report: &GateReport) -> String {
    let count = |kind: Kind| report.cases.iter().filter(|case| kind_of(case) == kind).count();
    let totals = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\"",
        report.cases.len(),
        count(Kind::Failure),
        count(Kind::Error),
        report.duration_s,
    );
    // The schema of Jenkins' xUnit plugin allows `skipped` only for single suites.
    let skipped = count(Kind::Skipped);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"warpgauge gate\" \
         {totals}>\n  <testsuite name=\"{}\" {totals} \
         skipped=\"{skipped}\">\n    <properties>\n",
        escape(&report.suite)
    );
    for (name, value) in [
        ("verdict", report.verdict.name().to_owned()),
        ("baseline", words::baseline(report)),
        ("device", words::device(report)),
        ("statement", report.statement.clone()),
    ] {
        let value = escape(&value);
        xml.push_str(&format!("      <property name=\"{name}\" value=\"{value}\"/>\n"));
    }
    xml.push_str("    </properties>\n");
    for case in &report.cases {
        push_case(&mut xml, report, case);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Passed,
    Failure,
    Error,
    Skipped,
}

fn kind_of(case: &CaseReport) -> Kind {
    match case.outcome {
        GateOutcome::Pass | GateOutcome::Improved | GateOutcome::New => Kind::Passed,
        GateOutcome::Error | GateOutcome::Missing if case.blocking => Kind::Error,
        _ if case.blocking => Kind::Failure,
        _ => Kind::Skipped,
    }
}

fn push_case(xml: &mut String, report: &GateReport, case: &CaseReport) {
    xml.push_str(&format!(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">\n",
        escape(&report.suite),
        escape(&case.name),
        case.duration_s
    ));
    let outcome = words::outcome(case.outcome);
    let why = escape(&words::why(case));
    let measured = escape(&words::measured(case));
    match kind_of(case) {
        Kind::Passed => {}
        Kind::Skipped => xml.push_str(&format!("      <skipped message=\"{outcome}: {why}\"/>\n")),
        Kind::Failure | Kind::Error => {
            let element = if kind_of(case) == Kind::Error { "error" } else { "failure" };
            xml.push_str(&format!(
                "      <{element} type=\"{outcome}\" message=\"{why}\">{measured}</{element}>\n"
            ));
        }
    }
    let mut out = format!("{outcome} {measured}");
    if case.outcome == GateOutcome::New {
        // The case passes, but readers should see that nothing was compared.
        out.push_str(&format!("; {why}"));
    }
    if let Some(effect) = words::detectable(case) {
        out.push_str(&format!("; detects slowdowns of {effect} or more"));
    }
    xml.push_str(&format!("      <system-out>{out}</system-out>\n    </testcase>\n"));
}
