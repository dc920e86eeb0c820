//! The style sheet of all pages.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Sizes, spacings and colours of all pages, as variables. They come before every style sheet.
pub const TOKENS: &str = include_str!("tokens.css");

/// The style sheet.
pub const CSS: &str = concat!(include_str!("tokens.css"), include_str!("page.css"));

/// Hexadecimal digits of the hash in the name of the file.
const NAME_DIGITS: usize = 16;

static DIGEST: LazyLock<[u8; 32]> = LazyLock::new(|| Sha256::digest(CSS).into());

static NAME: LazyLock<String> = LazyLock::new(|| {
    let hex = DIGEST.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("page-{}.css", &hex[..NAME_DIGITS])
});

/// Returns the path of the style sheet from the root of a server on. It contains a hash of the content, so that browsers
/// may keep the file for ever.
pub fn path() -> String {
    format!("assets/{}", *NAME)
}

/// Returns the content security policy of a page with the style sheet in it: nothing is loaded, nothing runs.
pub(crate) fn inline_policy() -> String {
    let digest = STANDARD.encode(*DIGEST);
    format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
}
