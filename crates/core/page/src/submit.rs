//! Creates the page on which a user submits a kernel.

use maud::{Markup, html};

use crate::document::{Content, Links};
use crate::parts::{self, Tone};
use crate::text;

/// Languages of a kernel: the value of the form field, which is the extension of the kernel's file,
/// and its name.
pub const LANGUAGES: [(&str, &str); 3] =
    [("cu", "CUDA C++"), ("ptx", "PTX"), ("py", "Python: Triton or PyTorch")];

/// Content of the form.
#[derive(Debug, Clone, Copy, Default)]
pub struct Submission<'a> {
    /// Extension of the kernel's file, from [`LANGUAGES`].
    pub language: &'a str,
    pub source: &'a str,
    /// Contract in YAML or JSON. If it is empty, the server infers one.
    pub contract: &'a str,
    pub label: &'a str,
    /// Reason why the kernel was not accepted.
    pub error: Option<&'a str>,
    /// Assumptions of an inferred contract.
    pub assumed: &'a [String],
    /// Names of the examples.
    pub examples: &'a [&'static str],
}

/// Writes the page with the form.
pub fn submit(submission: Submission<'_>, links: &Links) -> String {
    let content = Content {
        title: "submit a kernel".to_owned(),
        about: html! { "evaluates GPU kernels" },
        refresh: None,
        main: main(submission, links),
    };
    content.whole(links)
}

fn main(submission: Submission<'_>, links: &Links) -> Markup {
    let rows = |text: &str, least: usize| text.lines().count().clamp(least, 40);
    html! {
        h1.page { "Submit a kernel" }
        @if let Some(error) = submission.error {
            (parts::verdict(Tone::Bad, "not accepted", html! { "The kernel did not start" }, &[text::message(error)]))
        }
        section.sheet {
            form.fields method="post" enctype="multipart/form-data" action=(links.to("submit")) {
                p.small {
                    "Examples: "
                    @for name in submission.examples {
                        a href={ (links.to("submit?example=")) (name) } { (name) } " "
                    }
                }
                label for="language" { "Language" }
                select #language name="language" {
                    @for (value, name) in LANGUAGES {
                        option value=(value) selected[value == submission.language] { (name) }
                    }
                }
                label for="source" { "Kernel" }
                textarea.mono #source name="source" rows=(rows(submission.source, 12)) spellcheck="false" autocomplete="off" { "\n" (submission.source) }
                label for="file" { "or a file with the kernel" }
                input #file type="file" name="file";
                label for="contract" { "Contract (YAML)" }
                p.small.dim #contract-help {
                    "Arguments, launch and expected outputs. Without a contract, the server infers one from the kernel, "
                    "and checks no outputs. "
                    a href=(links.to("book/contract")) { "All fields" }
                }
                textarea.mono #contract name="contract" rows=(rows(submission.contract, 8)) spellcheck="false" autocomplete="off" aria-describedby="contract-help" { "\n" (submission.contract) }
                @if !submission.assumed.is_empty() {
                    ul.plain.small { @for one in submission.assumed { li { (text::message(one)) } } }
                }
                label for="label" { "Label" }
                input #label name="label" maxlength="255" value=(submission.label);
                p {
                    button name="action" value="evaluate" { "Evaluate" } " "
                    button name="action" value="contract" { "Infer a contract" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_stays_text() {
        let hostile = "</textarea><script>alert(1)</script>";
        let assumed = [hostile.to_owned()];
        let submission = Submission {
            language: "ptx",
            source: hostile,
            contract: hostile,
            label: "\" autofocus onfocus=\"x",
            error: Some(hostile),
            assumed: &assumed,
            examples: &["vector_add"],
        };
        let html = submit(submission, &Links { root: Some("./"), ..Links::none() });
        assert!(!html.contains("<script"), "{html}");
        assert_eq!(html.matches("</textarea>").count(), 2, "{html}");
        assert!(!html.contains("\" autofocus"), "{html}");
        assert!(html.contains("<option value=\"ptx\" selected>PTX</option>"), "{html}");
        assert!(html.contains("href=\"./submit?example=vector_add\""), "{html}");
    }
}
