//! The scripts that keep pages of a server up to date. The main type is [`PageScript`].

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// The number of hexadecimal digits of the hash in a file name.
const NAME_DIGITS: usize = 16;

/// A script that a page of a server loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageScript {
    /// The script of the page of a job that has not ended.
    Job,
    /// The script of the list of jobs.
    List,
}

static PATHS: LazyLock<[String; 2]> = LazyLock::new(|| {
    PageScript::ALL.map(|script| {
        let digest = Sha256::digest(script.source());
        let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("assets/{}-{}.js", script.name(), &hex[..NAME_DIGITS])
    })
});

impl PageScript {
    /// All scripts.
    pub const ALL: [Self; 2] = [Self::Job, Self::List];

    fn name(self) -> &'static str {
        match self {
            Self::Job => "live",
            Self::List => "list",
        }
    }

    /// Returns the script.
    pub fn source(self) -> &'static str {
        match self {
            Self::Job => include_str!("live.js"),
            Self::List => include_str!("list.js"),
        }
    }

    /// Returns the path of the script, relative to the root of a server. It contains a hash of the
    /// content, so browsers may cache the file indefinitely.
    pub fn path(self) -> &'static str {
        &PATHS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_write_no_markup_and_ask_this_server_only() {
        for script in PageScript::ALL {
            let source = script.source();
            for word in [
                "innerHTML",
                "outerHTML",
                "DOMParser",
                "insertAdjacent",
                "document.write",
                "eval(",
                "http:",
                "https:",
            ] {
                assert!(!source.contains(word), "{word} in {script:?}");
            }
            assert!(source.lines().count() < 110, "{script:?} is long");
            let path = script.path();
            assert!(path.starts_with("assets/") && path.ends_with(".js"), "{path}");
        }
        assert_ne!(PageScript::Job.path(), PageScript::List.path());
    }
}
