//! Creates the page on which a user chooses a report to import.

use maud::{Markup, html};

use crate::document::{Content, Links};

/// Writes the page with the form for a report, and for an earlier one to compare it with.
pub fn import_form(links: &Links) -> String {
    let content = Content {
        title: "import".to_owned(),
        about: html! { "reports of profilers" },
        refresh: None,
        main: main(links),
    };
    content.whole(links)
}

fn main(links: &Links) -> Markup {
    html! {
        h1.page { "Import a report" }
        section.sheet {
            form.fields method="post" enctype="multipart/form-data" action=(links.to("import")) {
                label for="report" { "Report" }
                input #report type="file" name="report" required;
                p.small.dim {
                    "A page of Nsight Compute (" code { "ncu --csv --page raw" } "), tables or an SQLite export of "
                    "Nsight Systems, or a log of compute-sanitizer; also compressed with gzip."
                }
                label for="against" { "Earlier report, for a comparison" }
                input #against type="file" name="against";
                p {
                    button { "Import" } " "
                    button formaction=(links.to("import/changes")) { "Compare" }
                }
                p.small.dim { "The server stores nothing of a report." }
            }
        }
    }
}
