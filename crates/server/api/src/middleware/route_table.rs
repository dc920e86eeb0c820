//! Paths and their methods: [`RouteTable`]. The table supplies the `Allow` header of answers with
//! status 405, and the operation of each request.

use std::collections::BTreeMap;

use poem::http::HeaderValue;

/// Path templates, in the order in which they are compared with a path.
pub(crate) struct RouteTable(Vec<Template>);

struct Template {
    text: String,
    parts: Vec<String>,
    methods: Vec<String>,
}

impl RouteTable {
    /// Builds the table from templates such as `/jobs/{job_id}` and their methods in upper case. A
    /// template may occur several times; its methods are merged.
    pub(crate) fn new(routes: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        let template = |(text, mut methods): (String, Vec<String>)| {
            methods.sort();
            let parts = text.split('/').map(str::to_owned).collect();
            Template { text, parts, methods }
        };
        let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (text, methods) in routes {
            // A page and an operation may have the same path.
            by_text.entry(text).or_default().extend(methods);
        }
        let mut all: Vec<Template> = by_text.into_iter().map(template).collect();
        // Literal parts precede parameters.
        all.sort_by_key(|template| template.parts.iter().filter(|part| is_open(part)).count());
        Self(all)
    }

    /// Returns the template that a path matches.
    pub(crate) fn template(&self, path: &str) -> Option<&str> {
        self.find(path).map(|template| template.text.as_str())
    }

    pub(crate) fn allow(&self, path: &str) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.find(path)?.methods.join(", ")).ok()
    }

    /// Returns every method with its template.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|template| {
            template.methods.iter().map(|method| (method.as_str(), template.text.as_str()))
        })
    }

    fn find(&self, path: &str) -> Option<&Template> {
        let fits = |template: &&Template| {
            path.split('/').count() == template.parts.len()
                && path
                    .split('/')
                    .zip(&template.parts)
                    .all(|(part, expected)| part == expected || is_open(expected))
        };
        self.0.iter().find(fits)
    }
}

fn is_open(part: &str) -> bool {
    part.starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_out_goes_first() {
        let get = || vec!["GET".to_owned()];
        let routes = RouteTable::new([
            ("/jobs/{id}".to_owned(), get()),
            ("/jobs/all".to_owned(), vec!["POST".to_owned()]),
            ("/jobs/all".to_owned(), get()),
        ]);
        assert_eq!(routes.template("/jobs/all"), Some("/jobs/all"));
        assert_eq!(routes.template("/jobs/7"), Some("/jobs/{id}"));
        assert_eq!(routes.template("/jobs/7/x"), None);
        assert_eq!(routes.allow("/jobs/all").unwrap(), "GET, POST");
        assert_eq!(routes.operations().count(), 3);
    }
}
