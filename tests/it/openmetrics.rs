//! A strict parser of the OpenMetrics text format 1.0: Prometheus accepts what it accepts.

use std::collections::{BTreeMap, BTreeSet};

/// Names and values of a sample's labels, in order.
type Labels = Vec<(String, String)>;

/// Samples of one name, as declared.
#[derive(Debug, Default)]
pub struct Family {
    pub kind: String,
    pub help: Option<String>,
    pub unit: Option<String>,
    /// Name with suffix, labels in order, value.
    pub samples: Vec<(String, Labels, f64)>,
}

/// Families by name. Panics with the line that breaks a rule.
pub fn parse(text: &str) -> BTreeMap<String, Family> {
    let body = text.strip_suffix("# EOF\n").expect("ends with `# EOF` and a line feed");
    assert!(body.is_empty() || body.ends_with('\n'), "a line feed before EOF");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (what, name) = (words.next().unwrap(), words.next().expect("a name"));
            let value = words.next().unwrap_or_default().to_owned();
            assert!(is_name(name), "{line}");
            if name != current {
                let none = families.insert(name.to_owned(), Family::default()).is_none();
                assert!(none, "families stand together: {line}");
                name.clone_into(&mut current);
            }
            let family = families.get_mut(name).unwrap();
            assert!(family.samples.is_empty(), "what describes goes before samples: {line}");
            match what {
                "TYPE" => family.kind = value,
                "HELP" => assert!(family.help.replace(value).is_none(), "{line}"),
                "UNIT" => {
                    assert!(name.ends_with(&format!("_{value}")), "{line}");
                    family.unit = Some(value);
                }
                _ => panic!("no such keyword: {line}"),
            }
            continue;
        }
        let (name, labels, value) = sample(line);
        assert!(seen.insert((name.clone(), labels.clone())), "twice: {line}");
        let family = families.get_mut(&current).unwrap_or_else(|| panic!("undeclared: {line}"));
        let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("of another: {line}"));
        let allowed: &[&str] = match family.kind.as_str() {
            "counter" => &["_total", "_created"],
            "histogram" => &["_bucket", "_count", "_sum", "_created"],
            "gauge" => &[""],
            "info" => &["_info"],
            other => panic!("type {other:?}: {line}"),
        };
        assert!(allowed.contains(&suffix), "{} has no such sample: {line}", family.kind);
        if family.kind != "gauge" {
            assert!(value >= 0.0, "negative or not a number: {line}");
        }
        family.samples.push((name, labels, value));
    }
    families.values().filter(|family| family.kind == "histogram").for_each(check_histogram);
    families
}

impl Family {
    /// The value of the sample whose labels have all of these.
    #[track_caller]
    pub fn value(&self, suffix: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |sample: &&(String, Vec<(String, String)>, f64)| {
            let has = |(name, value): &(&str, &str)| {
                sample.1.iter().any(|(key, is)| key == name && is == value)
            };
            sample.0.ends_with(suffix) && labels.iter().all(has)
        };
        let found: Vec<_> = self.samples.iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{suffix} {labels:?} in {:?}", self.samples);
        found[0].2
    }
}

fn check_histogram(family: &Family) {
    let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (_, labels, count) in family.samples.iter().filter(|(name, ..)| name.ends_with("_bucket")) {
        let mut labels = labels.clone();
        let place = labels.iter().position(|(name, _)| name == "le").expect("le");
        let bound = labels.remove(place).1;
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
        buckets.entry(labels).or_default().push((bound, *count));
    }
    for (labels, buckets) in buckets {
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{labels:?}: {buckets:?}");
        let (bound, all) = *buckets.last().expect("buckets");
        assert!(bound.is_infinite(), "{labels:?} has no +Inf");
        let of = |suffix: &str| {
            let mut found = family
                .samples
                .iter()
                .filter(|(name, of, _)| name.ends_with(suffix) && *of == labels);
            found.next().unwrap_or_else(|| panic!("{labels:?} has no {suffix}")).2
        };
        assert_eq!(of("_count"), all, "{labels:?}");
        assert!(of("_sum") >= 0.0, "{labels:?}");
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let (head, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let value = match value {
        "+Inf" => f64::INFINITY,
        text => text.parse().unwrap_or_else(|_| panic!("no number: {line}")),
    };
    let (name, labels) = match head.split_once('{') {
        None => (head, Vec::new()),
        Some((name, rest)) => {
            let rest = rest.strip_suffix('}').unwrap_or_else(|| panic!("no }}: {line}"));
            (name, labels(rest, line))
        }
    };
    assert!(is_name(name), "{line}");
    (name.to_owned(), labels, value)
}

fn labels(text: &str, line: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("label: {line}"));
        assert!(is_name(name), "{line}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().unwrap_or_else(|| panic!("open quote: {line}")) {
                (at, '"') => break at,
                (_, '\\') => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                    other => panic!("escape {other:?}: {line}"),
                },
                (_, plain) => value.push(plain),
            }
        };
        let twice = labels.iter().any(|(other, _): &(String, String)| other == name);
        assert!(!twice, "label twice: {line}");
        labels.push((name.to_owned(), value));
        rest = &after[end + 1..];
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').unwrap_or_else(|| panic!("no comma: {line}"));
        }
    }
    labels
}

#[test]
fn the_reader_refuses_what_breaks_a_rule() {
    let right = "# HELP a_seconds h.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
                 a_seconds_sum{x=\"\\\"\"} 1.0\na_seconds_count{x=\"\\\"\"} 2\n\
                 a_seconds_bucket{x=\"\\\"\",le=\"1.0\"} 1\na_seconds_bucket{x=\"\\\"\",le=\"+Inf\"} 2\n\
                 # TYPE b counter\nb_total 3\n# EOF\n";
    let families = parse(right);
    assert_eq!(families["b"].value("_total", &[]), 3.0);
    assert_eq!(families["a_seconds"].value("_count", &[("x", "\"")]), 2.0);
    for (from, to) in [
        ("# EOF\n", ""),
        ("b_total 3\n", "b_total 3\nb_total 3\n"),
        ("b_total 3\n", "b 3\n"),
        ("b_total 3\n", "b_total -1\n"),
        ("b_total 3\n", "c_total 1\n"),
        ("b_total 3\n", "b_total{x=\"1} 3\n"),
        ("le=\"+Inf\"} 2", "le=\"+Inf\"} 3"),
        ("le=\"1.0\"} 1", "le=\"1.0\"} 5"),
        ("UNIT a_seconds seconds", "UNIT a_seconds bytes"),
        ("counter\nb_total 3\n", "counter\nb_total 3\n# HELP a_seconds again\n"),
    ] {
        let wrong = right.replacen(from, to, 1);
        assert!(std::panic::catch_unwind(|| parse(&wrong)).is_err(), "taken: {wrong}");
    }
}
