//! The style sheet of all pages.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The sizes, spacings and colours of all pages, as variables. They come before every style sheet.
pub const TOKENS: &str = include_str!("tokens.css");

/// The style sheet.
pub const CSS: &str = concat!(include_str!("tokens.css"), include_str!("page.css"));

/// The icon of pages: a dial, as a URL that contains the drawing.
pub const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
    %3Cpath d='M2 12a6 6 0 1 1 12 0M8 12l3-5' fill='none' stroke='%231f5fbf' stroke-width='2' \
    stroke-linecap='round'/%3E%3C/svg%3E";

/// The number of hexadecimal digits of the hash in the file name.
const NAME_DIGITS: usize = 16;

static DIGEST: LazyLock<[u8; 32]> = LazyLock::new(|| Sha256::digest(CSS).into());

static NAME: LazyLock<String> = LazyLock::new(|| {
    let hex = DIGEST.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("page-{}.css", &hex[..NAME_DIGITS])
});

/// Returns the path of the style sheet, relative to the root of a server. It contains a hash of the
/// content, so browsers may cache the file indefinitely.
pub fn path() -> String {
    format!("assets/{}", *NAME)
}

/// Returns the content security policy of a page that contains its style sheet: the page may load
/// and run nothing.
pub(crate) fn inline_policy() -> String {
    let digest = STANDARD.encode(*DIGEST);
    format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
}
