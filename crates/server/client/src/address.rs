//! Checks the addresses of servers that users enter.

use ureq::http::Uri;

use crate::ClientError;

/// Returns the base URL of a server, without a trailing slash. The URL may contain a path.
///
/// # Errors
/// The text is not the URL of a server, or contains a user name or password.
pub(crate) fn base(server: &str) -> Result<&str, ClientError> {
    if let Some(url) = without_login(server) {
        return Err(ClientError::Login { url });
    }
    let refuse = || ClientError::Url { url: server.to_owned() };
    let base = server.trim_end_matches('/');
    let uri: Uri = base.parse().map_err(|_| refuse())?;
    let host = uri.host().is_some_and(|host| !host.is_empty());
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    if !web || !host || base.contains(['?', '#']) {
        return Err(refuse());
    }
    Ok(base)
}
/// Removes the user name and password from the URL. Returns `None` if there are none.
fn without_login(server: &str) -> Option<String> {
    let (scheme, rest) = server.split_once("://").unwrap_or(("", server));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (_, host) = rest[..end].rsplit_once('@')?;
    let scheme = if scheme.is_empty() { "http" } else { scheme };
    Some(format!("{scheme}://{host}{}", &rest[end..]))
}

/// Returns whether the address belongs to this machine, where no proxy is needed.
pub(crate) fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns whether other parties on the network can read data that is sent to this URL.
pub(crate) fn is_readable_by_others(url: &str) -> bool {
    let scheme = url.parse::<Uri>().ok().and_then(|uri| uri.scheme_str().map(str::to_owned));
    scheme.as_deref() == Some("http") && !is_loopback(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (server, expected) in [
            ("http://h:1/", "http://h:1"),
            ("http://h/base", "http://h/base"),
            ("https://h", "https://h"),
            ("HTTPS://h:8443/gpu/", "HTTPS://h:8443/gpu"),
            ("https://[::1]:8443", "https://[::1]:8443"),
        ] {
            assert_eq!(base(server).unwrap(), expected);
        }
        let wrong = ["h:8000", "", "ftp://h", "http://", "https://", "http://h/?q=1", "http://a b"];
        for wrong in wrong.into_iter().chain(["https://h/#x", "https://h/?", "https:///x"]) {
            assert!(matches!(base(wrong), Err(ClientError::Url { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn a_login_is_refused_and_not_repeated() {
        for login in ["https://me:sesame@h:1/gpu", "http://sesame@h:1/gpu", "me:sesame@h:1/gpu"] {
            let error = base(login).unwrap_err().to_string();
            assert!(error.contains("://h:1/gpu") && !error.contains("sesame"), "{error}");
            assert!(error.contains("--api-key"), "{error}");
        }
        assert!(base("http://h/a@b").is_ok());
    }

    #[test]
    fn loopback_is_told_from_the_network() {
        for url in ["http://localhost:1/x", "http://127.0.0.2/x", "http://[::1]:8000/x"] {
            assert!(is_loopback(url) && !is_readable_by_others(url), "{url}");
        }
        for url in ["http://localhost.example/x", "http://10.0.0.1/x", "http://[::2]/x"] {
            assert!(!is_loopback(url) && is_readable_by_others(url), "{url}");
        }
        assert!(!is_readable_by_others("https://10.0.0.1/x"));
    }
}
