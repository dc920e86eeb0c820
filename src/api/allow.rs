//! Which methods a path takes, for the `Allow` header of 405 answers.

use poem::http::HeaderValue;

/// Path templates, split at `/`, and their methods.
pub(super) struct Routes(Vec<(Vec<String>, String)>);

impl Routes {
    /// From templates such as `/jobs/{job_id}` and their methods in capitals.
    pub(super) fn new(routes: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        let split = |path: String| path.split('/').map(str::to_owned).collect();
        let routes = routes.into_iter();
        Self(routes.map(|(path, methods)| (split(path), methods.join(", "))).collect())
    }

    pub(super) fn allow(&self, path: &str) -> Option<HeaderValue> {
        let fits = |template: &[String]| {
            let count = path.split('/').count();
            count == template.len()
                && path
                    .split('/')
                    .zip(template)
                    .all(|(part, expected)| part == expected || expected.starts_with('{'))
        };
        let (_, methods) = self.0.iter().find(|(template, _)| fits(template))?;
        HeaderValue::from_str(methods).ok()
    }
}
