//! The parts of a page that surround its content. The main type is [`Content`].

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::script::PageScript;
use crate::{style, text};

/// The targets of a page's links. Paths belong to the server that shows the page.
#[derive(Debug, Clone, Default)]
pub struct Links {
    /// The relative path from the page to the root of the server, such as `../`, because a server
    /// may be below a path that it does not know. Without it, the page is a file that contains the
    /// style sheet.
    pub root: Option<&'static str>,
    /// Artifacts of the job that can be downloaded.
    pub artifacts: Vec<ArtifactLink>,
    /// Pages of the code, one for each kernel whose code is known.
    pub code: Vec<ArtifactLink>,
    /// The reason why the artifacts are unknown.
    pub no_artifacts: Option<String>,
}

/// An artifact of a job.
#[derive(Debug, Clone)]
pub struct ArtifactLink {
    pub name: String,
    /// `kernel`. In a comparison: `reference` or the name of a candidate.
    pub kernel: String,
    /// The path and query, relative to the root of the server.
    pub url: String,
}

impl Links {
    /// Returns the links for a page in a separate file.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the address of a path that is relative to the root of the server.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}{}", self.root.unwrap_or("./"), path.trim_start_matches('/'))
    }

    /// Returns the artifacts of one kernel of a comparison.
    pub(crate) fn of_kernel(&self, kernel: &str) -> Self {
        let own = |links: &[ArtifactLink]| -> Vec<ArtifactLink> {
            links.iter().filter(|one| one.kernel == kernel).cloned().collect()
        };
        Self { artifacts: own(&self.artifacts), code: own(&self.code), ..self.clone() }
    }
}

/// The way in which a page of a server stays up to date. The number is that of the seconds after
/// which a browser reloads the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// The browser reloads the page.
    Reload(u32),
    /// A script updates the page. A browser without scripts reloads it, if there is a number.
    Script(PageScript, Option<u32>),
}

/// The content of a page.
pub(crate) struct Content {
    /// The title of the window, as plain text.
    pub title: String,
    /// The kind of report, and its id.
    pub about: Markup,
    /// How the page of a server stays up to date.
    pub refresh: Option<Refresh>,
    /// The content between header and footer.
    pub main: Markup,
}

impl Content {
    /// Writes the whole document.
    pub(crate) fn whole(self, links: &Links) -> String {
        let Content { title, about, refresh, main } = self;
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    // The forms of a server need their origin.
                    meta name="referrer" content={ @if links.root.is_some() { "same-origin" } @else { "no-referrer" } };
                    @match refresh.filter(|_| links.root.is_some()) {
                        Some(Refresh::Reload(seconds)) => { meta http-equiv="refresh" content=(seconds); }
                        Some(Refresh::Script(script, seconds)) => {
                            @if let Some(seconds) = seconds {
                                noscript { meta http-equiv="refresh" content=(seconds); }
                            }
                            script type="module" src=(links.to(script.path())) {}
                        }
                        None => {}
                    }
                    @match links.root {
                        Some(_) => {
                            link rel="stylesheet" href=(links.to(&style::path()));
                            // Without it, browsers request an icon that the server does not have.
                            link rel="icon" href=(style::ICON);
                        }
                        None => {
                            meta http-equiv="Content-Security-Policy" content=(style::inline_policy());
                            // HTML does not escape the text of a style element, and the sheet is a
                            // constant.
                            style { (PreEscaped(style::CSS)) }
                        }
                    }
                    title { (text::shown(&title, text::NAME)) }
                }
                body {
                    a.skip href="#main" { "Skip to the report" }
                    header.bar-top {
                        @if links.root.is_some() {
                            strong { a href=(links.to("")) { "warpgauge" } }
                        } @else {
                            strong { "warpgauge" }
                        }
                        span { (about) }
                        @if links.root.is_some() {
                            nav aria-label="Pages" {
                                a href=(links.to("")) { "Jobs" }
                                a href=(links.to("submit")) { "Submit" }
                                a href=(links.to("devices")) { "Devices" }
                                a href=(links.to("history")) { "History" }
                                a href=(links.to("import")) { "Import" }
                                a href=(links.to("docs")) { "API" }
                            }
                        }
                    }
                    main #main { (main) }
                    footer { "warpgauge " (env!("CARGO_PKG_VERSION")) }
                }
            }
        };
        document.into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Notice, notice};

    #[test]
    fn every_page_of_a_server_leads_to_the_others() {
        let links = Links { root: Some("../"), ..Links::none() };
        let about = Notice { word: "w", heading: "h", sentence: "s", commands: "" };
        let html = notice(about, &links);
        for (path, name) in [
            ("", "Jobs"),
            ("devices", "Devices"),
            ("history", "History"),
            ("import", "Import"),
            ("docs", "API"),
        ] {
            assert!(html.contains(&format!("<a href=\"../{path}\">{name}</a>")), "{name}: {html}");
        }
        assert!(!notice(about, &Links::none()).contains("<nav"), "a file leads nowhere");
    }
}
